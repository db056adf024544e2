//! Parses lines of an HTTP/1.x message: start lines, the two header fields that determine the body's
//! length, and chunk sizes.

/// The most bytes of a line that are kept, enough for all lines that matter.
const KEPT: usize = 64;

/// The names of methods, at the index of method number - 1. Numbers from 100 on are statuses.
const METHODS: [&str; 9] = [
    "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH",
];
pub const HEAD: u16 = 2;
pub const CONNECT: u16 = 6;
const VERSION: &[u8] = b"HTTP/1.";

pub fn is_status(kind: u16) -> bool {
    kind >= 100
}

/// Returns the number of a method's name; None if it is unknown.
pub fn method(name: &[u8]) -> Option<u16> {
    let place = METHODS.iter().position(|known| known.as_bytes() == name)?;
    Some(place as u16 + 1)
}

pub fn type_name(kind: u16) -> String {
    if is_status(kind) {
        kind.to_string()
    } else {
        METHODS[usize::from(kind) - 1].into()
    }
}

pub enum Start {
    Request(u16),
    Response(u16),
}

pub enum Field {
    Length(u64),
    Chunked,
}

/// The first `KEPT` bytes of a line, without its end.
#[derive(Default)]
pub struct Line {
    kept: Vec<u8>,
}

impl Line {
    pub fn clear(&mut self) {
        self.kept.clear();
    }

    pub fn extend(&mut self, part: &[u8]) {
        let room = KEPT - self.kept.len();
        self.kept.extend_from_slice(&part[..part.len().min(room)]);
        while matches!(self.kept.last(), Some(b'\n' | b'\r')) {
            self.kept.pop();
        }
    }

    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Returns true if the bytes so far can be the beginning of a start line.
    pub fn may_start(&self) -> bool {
        let begins = |word: &[u8]| {
            let common = word.len().min(self.kept.len());
            self.kept[..common] == word[..common]
        };
        let method_begins = |method: &&str| {
            begins(method.as_bytes()) && matches!(self.kept.get(method.len()), None | Some(b' '))
        };
        begins(VERSION) || METHODS.iter().any(method_begins)
    }

    pub fn start(&self) -> Option<Start> {
        if let Some(rest) = self.kept.strip_prefix(VERSION) {
            let status = rest.get(2..5).map(digits)??;
            return (100..=999)
                .contains(&status)
                .then_some(Start::Response(status as u16));
        }
        let word = self.kept.split(|&byte| byte == b' ').next()?;
        let number = method(word)?;
        (self.kept.len() > word.len()).then_some(Start::Request(number))
    }

    /// Parses a header field that determines the body's length: Content-Length with a number, or
    /// Transfer-Encoding that ends with "chunked"; None for any other line.
    pub fn field(&self) -> Option<Field> {
        let colon = self.kept.iter().position(|&byte| byte == b':')?;
        let (name, value) = (&self.kept[..colon], self.kept[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-length") {
            digits(value).map(Field::Length)
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            let last = value.len().saturating_sub(b"chunked".len());
            value[last..]
                .eq_ignore_ascii_case(b"chunked")
                .then_some(Field::Chunked)
        } else {
            None
        }
    }

    /// Parses a chunk size (RFC 9112, 7.1): hexadecimal digits, then an optional extension; None if there are
    /// no digits.
    pub fn chunk_size(&self) -> Option<u64> {
        let end = self.kept.iter().position(|byte| !byte.is_ascii_hexdigit());
        let text = std::str::from_utf8(&self.kept[..end.unwrap_or(self.kept.len())]).ok()?;
        u64::from_str_radix(text, 16).ok()
    }
}

fn digits(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
