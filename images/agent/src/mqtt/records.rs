//! The lines of messages.csv, exactly as docs/contracts.md has them.

use std::io::Write;

/// One scheduled message on its way.
#[derive(Debug, Clone, Default)]
pub struct Message {
    pub seq: u64,
    pub scheduled_ns: i64,
    pub sent_ns: i64,
    pub attempts: u32,
}

/// A field with commas or quotes is quoted (RFC 4180).
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        return format!(
            "\"{}\"",
            text.replace('"', "\"\"").replace(['\n', '\r'], " ")
        );
    }
    text.to_owned()
}

fn push(out: &mut Vec<u8>, line: std::fmt::Arguments) {
    // Writing to memory cannot fail.
    out.write_fmt(line).expect("memory");
    out.push(b'\n');
}

/// S: what became of a scheduled message.
pub fn scheduled(
    out: &mut Vec<u8>,
    publisher: &str,
    topic: &str,
    qos: u8,
    m: &Message,
    acked_ns: i64,
    outcome: &str,
) {
    let (publisher, topic) = (field(publisher), field(topic));
    let Message {
        seq,
        scheduled_ns,
        sent_ns,
        attempts,
    } = m;
    push(
        out,
        format_args!(
            "S,{publisher},{seq},{topic},{qos},{scheduled_ns},{sent_ns},{acked_ns},{attempts},{outcome}"
        ),
    );
}

/// R: a message that the application got.
pub fn received(
    out: &mut Vec<u8>,
    subscriber: &str,
    publisher: &str,
    seq: u64,
    qos: u8,
    dup: bool,
    at_ns: i64,
) {
    let (subscriber, publisher, dup) = (field(subscriber), field(publisher), u8::from(dup));
    push(
        out,
        format_args!("R,{subscriber},{publisher},{seq},{qos},{dup},{at_ns}"),
    );
}

/// C: a step in a client's life.
pub fn client(out: &mut Vec<u8>, client: &str, what: &str, at_ns: i64, detail: &str) {
    push(
        out,
        format_args!("C,{},{what},{at_ns},{}", field(client), field(detail)),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_the_contract() {
        let mut out = Vec::new();
        let m = Message {
            seq: 3,
            scheduled_ns: 10,
            sent_ns: 11,
            attempts: 2,
        };
        scheduled(&mut out, "c1", "a/b", 1, &m, 12, "acked");
        received(&mut out, "s1", "c1", 3, 1, true, 13);
        client(&mut out, "c1", "disconnected", 14, "a, \"b\"");
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text,
            "S,c1,3,a/b,1,10,11,12,2,acked\nR,s1,c1,3,1,1,13\nC,c1,disconnected,14,\"a, \"\"b\"\"\"\n"
        );
    }
}
