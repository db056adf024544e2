//! Formats the lines of messages.csv, the message records (docs/contracts/records.md).

use crate::proto::Session;
use std::io::Write;

/// A scheduled message at its sender. Times are Unix nanoseconds; `sent_ns` is 0 until the message is
/// sent, and `attempts` counts how often it was sent.
#[derive(Debug, Clone, Default)]
pub struct Message {
    pub seq: u64,
    pub scheduled_ns: i64,
    pub sent_ns: i64,
    pub attempts: u32,
}

/// The outcome of a scheduled message, from the best to the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Acknowledged; for a request, all replies have arrived.
    Settled,
    /// The message has left the sender, and the protocol guarantees nothing more.
    Sent,
    /// The message was sent, but its acknowledgement or a reply is missing.
    Unsettled,
    /// The message was never sent.
    Unsent,
    /// The sender dropped the message, because a queue of its role, its library or its interface was full.
    Dropped,
}

impl Outcome {
    fn name(self) -> &'static str {
        match self {
            Self::Settled => "settled",
            Self::Sent => "sent",
            Self::Unsettled => "unsettled",
            Self::Unsent => "unsent",
            Self::Dropped => "dropped",
        }
    }
}

/// Quotes a field that contains commas, quotes or line breaks (RFC 4180); replaces line breaks by spaces.
fn field(text: &str) -> std::borrow::Cow<'_, str> {
    if text.contains([',', '"', '\n', '\r']) {
        return format!(
            "\"{}\"",
            text.replace('"', "\"\"").replace(['\n', '\r'], " ")
        )
        .into();
    }
    text.into()
}

fn push(out: &mut Vec<u8>, line: std::fmt::Arguments) {
    // Writing to memory cannot fail.
    out.write_fmt(line).expect("memory");
    out.push(b'\n');
}

/// Appends an S record, the outcome of a scheduled message; `settled_ns` is 0 if the message was not settled.
pub fn scheduled(
    out: &mut Vec<u8>,
    flow: u32,
    bytes: usize,
    message: &Message,
    settled_ns: i64,
    outcome: Outcome,
) {
    let Message {
        seq,
        scheduled_ns,
        sent_ns,
        attempts,
    } = message;
    let outcome = outcome.name();
    push(
        out,
        format_args!(
            "S,{flow},{seq},{bytes},{scheduled_ns},{sent_ns},{settled_ns},{attempts},{outcome}"
        ),
    );
}

/// Appends an R record: the arrival of a message at `receiver` (leg 0), or of its reply at the flow's sender
/// (leg 1). `copy`: the transport marks the message as a repetition.
pub fn received(
    out: &mut Vec<u8>,
    flow: u32,
    seq: u64,
    receiver: &str,
    leg: u8,
    at_ns: i64,
    copy: bool,
) {
    let (receiver, copy) = (field(receiver), u8::from(copy));
    push(
        out,
        format_args!("R,{flow},{seq},{receiver},{leg},{at_ns},{copy}"),
    );
}

impl Session {
    /// Appends a C record: a step of the endpoint's session.
    pub fn record(&self, what: &str, at_ns: i64, detail: &str, out: &mut Vec<u8>) {
        let (endpoint, detail) = (field(&self.endpoint), field(detail));
        push(out, format_args!("C,{endpoint},{what},{at_ns},{detail}"));
    }
}

/// Appends a C record: a step of a session's connection to `peer`.
pub fn connection(
    out: &mut Vec<u8>,
    endpoint: &str,
    what: &str,
    at_ns: i64,
    detail: &str,
    peer: &str,
) {
    let (endpoint, detail, peer) = (field(endpoint), field(detail), field(peer));
    push(
        out,
        format_args!("C,{endpoint},{what},{at_ns},{detail},{peer}"),
    );
}

/// Appends a B record: cumulative progress of a bulk flow, which has no messages, counted by its sender (leg
/// 0) or its receiver (leg 1). `counts`: packets, lost, retransmits and rtt_ns; unknown ones (None) stay
/// empty.
pub fn progress(
    out: &mut Vec<u8>,
    flow: u32,
    endpoint: &str,
    leg: u8,
    at_ns: i64,
    bytes: u64,
    counts: [Option<u64>; 4],
) {
    let endpoint = field(endpoint);
    let [packets, lost, retransmits, rtt_ns] =
        counts.map(|c| c.map_or(String::new(), |c| c.to_string()));
    push(
        out,
        format_args!(
            "B,{flow},{endpoint},{leg},{at_ns},{bytes},{packets},{lost},{retransmits},{rtt_ns}"
        ),
    );
}

/// Appends a W record: the congestion window of a TCP connection of a flow, from the kernel of its sender.
pub fn window(
    out: &mut Vec<u8>,
    (flow, endpoint): (u32, &str),
    stream: usize,
    at_ns: i64,
    info: &Window,
) {
    let endpoint = field(endpoint);
    let Window {
        segments,
        threshold,
        segment_bytes,
        rtt_ns,
    } = info;
    let threshold = threshold.map_or(String::new(), |t| t.to_string());
    push(
        out,
        format_args!(
            "W,{flow},{endpoint},{stream},{at_ns},{segments},{threshold},{segment_bytes},{rtt_ns}"
        ),
    );
}

/// A congestion window in segments of `segment_bytes` bytes; `threshold` is None before slow start has met a
/// limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub segments: u32,
    pub threshold: Option<u32>,
    pub segment_bytes: u32,
    pub rtt_ns: u64,
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
        scheduled(&mut out, 7, 100, &m, 12, Outcome::Settled);
        received(&mut out, 7, 3, "s1", 0, 13, true);
        progress(
            &mut out,
            7,
            "s1",
            1,
            13,
            1000,
            [Some(10), None, Some(0), None],
        );
        let session = Session {
            endpoint: "c1".into(),
            connect_ns: 0,
            disconnect_ns: 0,
            listens: false,
        };
        session.record("disconnected", 14, "a, \"b\"", &mut out);
        connection(&mut out, "c1", "failed", 15, "no", "s1");
        let open = Window {
            segments: 10,
            threshold: None,
            segment_bytes: 1448,
            rtt_ns: 5,
        };
        window(&mut out, (7, "s1"), 2, 16, &open);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text,
            "S,7,3,100,10,11,12,2,settled\nR,7,3,s1,0,13,1\nB,7,s1,1,13,1000,10,,0,\nC,c1,disconnected,14,\"a, \"\"b\"\"\"\nC,c1,failed,15,no,s1\nW,7,s1,2,16,10,,1448,5\n"
        );
    }
}
