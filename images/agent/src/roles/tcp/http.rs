//! Frames messages as requests and answers of HTTP/1.1 (RFC 9112). A request is a POST whose body is the
//! message; its answer has the status 200, and its body is the reply.

use crate::os::Res;
use serde::Deserialize;

/// The longest head in bytes, and the longest body.
const LONGEST_HEAD: usize = 16 << 10;
const LONGEST: usize = super::frames::LONGEST;
/// The protocol's name in TLS (ALPN).
pub const ALPN: &[u8] = b"http/1.1";
const END_OF_HEAD: &[u8] = b"\r\n\r\n";
const REFUSAL: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";

/// The settings of HTTP in the `spec` of a role.
#[derive(Debug, Clone, Deserialize)]
pub struct Settings {
    pub path: String,
    /// Whether a connection carries more than one request.
    pub keep_alive: bool,
    /// The version, 1 or 2; a server speaks both.
    #[serde(default = "first_version")]
    pub version: u8,
}

fn first_version() -> u8 {
    1
}

/// Appends a request with this body to the server `host`.
pub fn request(settings: &Settings, host: &str, body: &[u8], out: &mut Vec<u8>) {
    let (path, length) = (&settings.path, body.len());
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/octet-stream\r\n\
         Content-Length: {length}\r\n{}\r\n",
        if settings.keep_alive {
            ""
        } else {
            "Connection: close\r\n"
        }
    );
    out.extend_from_slice(head.as_bytes());
    out.extend_from_slice(body);
}

/// Appends an answer with this body.
pub fn answer(body: &[u8], out: &mut Vec<u8>) {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    out.extend_from_slice(head.as_bytes());
    out.extend_from_slice(body);
}

/// Appends the answer to a request that does not come from vNET.
pub fn refuse(out: &mut Vec<u8>) {
    out.extend_from_slice(REFUSAL);
}

/// The head of a message: the number of bytes before the body, the body's length, whether the connection ends
/// with the message, and whether it can be vNET's: a POST, or an answer with the status 200.
struct Head {
    bytes: usize,
    body: usize,
    close: bool,
    ours: bool,
}

/// Extracts the bodies of messages from the bytes of one connection.
#[derive(Default)]
pub struct Messages {
    partial: Vec<u8>,
    /// The number of bytes that the next message needs, as far as that is known; with fewer bytes the parser
    /// does not look at them again.
    needed: usize,
    /// True if the other side ends the connection after the last message.
    pub closes: bool,
}

impl Messages {
    /// Passes the bodies of completed messages to `take` until it returns false, and an empty body for a
    /// message that cannot be vNET's; keeps the rest for the next call. Returns an error for bytes that are
    /// not HTTP/1.1, for a body without a stated length, and for a body that is too long.
    pub fn feed_while(&mut self, bytes: &[u8], mut take: impl FnMut(&[u8]) -> bool) -> Res<()> {
        self.partial.extend_from_slice(bytes);
        let mut from = 0;
        while self.partial.len() - from >= self.needed.max(1) {
            let rest = &self.partial[from..];
            let Some(head) = head(rest)? else { break };
            let whole = head.bytes + head.body;
            if rest.len() < whole {
                self.needed = whole;
                break;
            }
            self.needed = 0;
            self.closes |= head.close;
            from += whole;
            let body = &rest[head.bytes..whole];
            if !take(if head.ours { body } else { b"" }) {
                break;
            }
        }
        if from == self.partial.len() {
            self.partial = Vec::new(); // frees the memory of a long message
        } else {
            self.partial.drain(..from);
        }
        Ok(())
    }
}

/// Parses the head at the beginning of `bytes`; None if the head is incomplete.
fn head(bytes: &[u8]) -> Res<Option<Head>> {
    let searched = &bytes[..bytes.len().min(LONGEST_HEAD)];
    let end = searched
        .windows(END_OF_HEAD.len())
        .position(|four| four == END_OF_HEAD);
    let Some(end) = end else {
        return if bytes.len() < LONGEST_HEAD {
            Ok(None)
        } else {
            Err(format!("a head of more than {LONGEST_HEAD} bytes"))
        };
    };
    let text = std::str::from_utf8(&bytes[..end]).map_err(|_| "no head of HTTP/1.1".to_owned())?;
    let mut lines = text.split("\r\n");
    let first = lines.next().unwrap_or_default();
    let (ours, old) = start(first).ok_or_else(|| format!("no start line of HTTP/1: {first:?}"))?;
    let (mut body, mut close) = (0, old);
    for line in lines {
        let Some((name, value)) = line.split_once(':') else {
            return Err(format!("no header field: {line:?}"));
        };
        let value = value.trim();
        if name.eq_ignore_ascii_case("content-length") {
            body = value
                .parse()
                .ok()
                .filter(|&length| length <= LONGEST)
                .ok_or_else(|| format!("Content-Length: {value:?}; {LONGEST} are the most"))?;
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(format!(
                "Transfer-Encoding: {value}: only Content-Length is spoken"
            ));
        } else if name.eq_ignore_ascii_case("connection") {
            close |= value.eq_ignore_ascii_case("close");
        }
    }
    Ok(Some(Head {
        bytes: end + END_OF_HEAD.len(),
        body,
        close,
        ours,
    }))
}

/// Returns whether a start line can be vNET's, and whether it is of HTTP/1.0; None if it is not a start line.
fn start(line: &str) -> Option<(bool, bool)> {
    let mut words = line.splitn(3, ' ');
    let (first, second, third) = (words.next()?, words.next()?, words.next().unwrap_or(""));
    let old = |version: &str| match version {
        "HTTP/1.1" => Some(false),
        "HTTP/1.0" => Some(true),
        _ => None,
    };
    match old(first) {
        Some(old) => Some((second == "200", old)),
        None => old(third).map(|old| (first == "POST", old)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bodies(stream: &[u8], step: usize) -> Res<(Vec<Vec<u8>>, bool)> {
        let (mut messages, mut found) = (Messages::default(), Vec::new());
        for piece in stream.chunks(step) {
            messages.feed_while(piece, |body| {
                found.push(body.to_vec());
                true
            })?;
        }
        Ok((found, messages.closes))
    }

    #[test]
    fn bodies_come_out_whole_however_the_stream_is_cut() {
        let mut settings = Settings {
            path: "/a".to_owned(),
            keep_alive: true,
            version: 1,
        };
        let mut stream = Vec::new();
        request(&settings, "h", b"one", &mut stream);
        stream.extend_from_slice(b"GET / HTTP/1.1\r\nhost: h\r\n\r\n");
        stream.extend_from_slice(b"HTTP/1.1 503 Busy\r\ncontent-length:4\r\n\r\nbusy");
        answer(b"", &mut stream);
        settings.keep_alive = false;
        let open = stream.clone();
        request(&settings, "h", &[b'x'; 3000], &mut stream);
        for step in [1, 5, 100, stream.len()] {
            let (found, closes) = bodies(&stream, step).unwrap();
            assert_eq!(found, [&b"one"[..], b"", b"", b"", &[b'x'; 3000]]);
            assert!(closes && !bodies(&open, step).unwrap().1);
        }
    }

    #[test]
    fn what_is_no_http_or_too_long_is_refused() {
        let long = vec![b'a'; LONGEST_HEAD];
        for (wrong, rule) in [
            (&b"\x16\x03\x01\r\n\r\n"[..], "start line"),
            (b"SSH-2.0-x\r\n\r\n", "start line"),
            (b"GET / HTTP/2\r\n\r\n", "start line"),
            (b"POST / HTTP/1.1\r\nnonsense\r\n\r\n", "header field"),
            (
                b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
                "the most",
            ),
            (
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                "Content-Length",
            ),
            (&long, "a head of more"),
        ] {
            let error = bodies(wrong, 7).unwrap_err();
            assert!(error.contains(rule), "{error}");
        }
    }
}
