//! Parses what a NATS server sends (docs.nats.io, "Client Protocol"), and writes what a client sends.

use crate::os::Res;

/// The longest control line in bytes: a server's INFO lists all servers of its cluster.
const LONGEST_LINE: usize = 64 << 10;
const END: &[u8] = b"\r\n";

#[derive(Debug, PartialEq, Eq)]
pub enum Operation {
    Info,
    /// A message's payload.
    Message(Vec<u8>),
    Ping,
    Pong,
    Ok,
    Error(String),
}

/// The received bytes of a connection that are not yet a whole operation.
#[derive(Default)]
pub struct Parser {
    partial: Vec<u8>,
}

impl Parser {
    /// Takes bytes and appends the operations that they complete. An error for bytes that are no operation,
    /// for a line that is too long, and for a payload of more than `most` bytes.
    pub fn feed(&mut self, bytes: &[u8], most: usize, found: &mut Vec<Operation>) -> Res<()> {
        self.partial.extend_from_slice(bytes);
        let mut from = 0;
        while let Some((operation, length)) = next(&self.partial[from..], most)? {
            found.push(operation);
            from += length;
        }
        self.partial.drain(..from);
        Ok(())
    }
}

/// Returns the operation with which `bytes` begin, and its length; None if it is not complete.
fn next(bytes: &[u8], most: usize) -> Res<Option<(Operation, usize)>> {
    let searched = &bytes[..bytes.len().min(LONGEST_LINE)];
    let Some(end) = searched.windows(2).position(|two| two == END) else {
        return if bytes.len() < LONGEST_LINE {
            Ok(None)
        } else {
            Err(format!("a line of more than {LONGEST_LINE} bytes"))
        };
    };
    let line = String::from_utf8_lossy(&bytes[..end]);
    let (word, rest) = line.split_once([' ', '\t']).unwrap_or((&line, ""));
    let whole = end + END.len();
    let operation = match word.to_ascii_uppercase().as_str() {
        "MSG" => return message(bytes, whole, rest, most),
        "INFO" => Operation::Info,
        "PING" => Operation::Ping,
        "PONG" => Operation::Pong,
        "+OK" => Operation::Ok,
        "-ERR" => Operation::Error(rest.trim().trim_matches('\'').to_owned()),
        _ => {
            let line: String = line.chars().take(60).collect();
            return Err(format!("no operation of NATS: {line:?}"));
        }
    };
    Ok(Some((operation, whole)))
}

/// Parses a message whose payload begins at `from`: subject, number of the subscription, a subject for
/// replies if it has one, and the payload's length.
fn message(
    bytes: &[u8],
    from: usize,
    arguments: &str,
    most: usize,
) -> Res<Option<(Operation, usize)>> {
    let words: Vec<&str> = arguments.split_ascii_whitespace().collect();
    let length: Option<usize> = words.last().and_then(|word| word.parse().ok());
    let Some(length) = length.filter(|_| matches!(words.len(), 3 | 4)) else {
        return Err(format!("no arguments of MSG: {arguments:?}"));
    };
    if length > most {
        return Err(format!("a message of {length} bytes; {most} are the most"));
    }
    let to = from + length;
    match bytes.get(to..to + END.len()) {
        None => Ok(None),
        Some(END) => Ok(Some((
            Operation::Message(bytes[from..to].to_vec()),
            to + END.len(),
        ))),
        Some(_) => Err("a message is longer than its length".to_owned()),
    }
}

pub fn subscribe(subject: &str, group: Option<&str>, number: usize, out: &mut Vec<u8>) {
    let group = group.map_or(String::new(), |group| format!("{group} "));
    out.extend_from_slice(format!("SUB {subject} {group}{number}\r\n").as_bytes());
}

pub fn publish(subject: &str, payload: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("PUB {subject} {}\r\n", payload.len()).as_bytes());
    out.extend_from_slice(payload);
    out.extend_from_slice(END);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(stream: &[u8], step: usize) -> Res<Vec<Operation>> {
        let (mut parser, mut found) = (Parser::default(), Vec::new());
        for piece in stream.chunks(step) {
            parser.feed(piece, 1000, &mut found)?;
        }
        Ok(found)
    }

    #[test]
    fn operations_come_out_whole_however_the_stream_is_cut() {
        let stream =
            b"INFO {\"a\":1}\r\nMSG a.b 9 11\r\nHello World\r\nmsg a.b 9 inbox 2\r\n\r\n\r\n\
            PING\r\nPONG\r\n+OK\r\nMSG a 1 0\r\n\r\n-ERR 'Slow Consumer'\r\nPI";
        let expected = [
            Operation::Info,
            Operation::Message(b"Hello World".to_vec()),
            Operation::Message(b"\r\n".to_vec()),
            Operation::Ping,
            Operation::Pong,
            Operation::Ok,
            Operation::Message(Vec::new()),
            Operation::Error("Slow Consumer".to_owned()),
        ];
        for step in [1, 3, 20, stream.len()] {
            assert_eq!(parsed(stream, step).unwrap(), expected);
        }
    }

    #[test]
    fn what_is_no_operation_or_too_long_is_refused() {
        for (wrong, rule) in [
            (&b"HTTP/1.1 400 Bad Request\r\n"[..], "no operation"),
            (b"MSG a 1\r\n", "no arguments"),
            (b"MSG a 1 x\r\n", "no arguments"),
            (b"MSG a 1 1001\r\n", "the most"),
            (b"MSG a 1 1\r\nabc\r\n", "longer than"),
            (&[b'a'; LONGEST_LINE], "a line of more"),
        ] {
            let error = parsed(wrong, 7).unwrap_err();
            assert!(error.contains(rule), "{error}");
        }
    }

    #[test]
    fn a_client_writes_the_operations_of_the_protocol() {
        let mut out = Vec::new();
        subscribe("a.*", None, 1, &mut out);
        subscribe("a.>", Some("g"), 2, &mut out);
        publish("a.b", b"hi", &mut out);
        assert_eq!(out, b"SUB a.* 1\r\nSUB a.> g 2\r\nPUB a.b 2\r\nhi\r\n");
    }
}
