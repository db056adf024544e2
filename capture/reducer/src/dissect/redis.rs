//! Dissects RESP, the protocol of Redis (versions 2 and 3), into values by their type; lines with types and
//! lengths are header, and contents of strings are payload.
//!
//! A client's value is a command, a server's value is the reply. A value is noted at its end; a nested array
//! counts once.

use super::{Dissector, Notes, Stream};

pub const DISSECTOR: Dissector = Dissector {
    name: "redis",
    type_name,
    tcp_ports: &[6379],
    streams: Some(|| [Box::<Resp>::default(), Box::<Resp>::default()]),
    ..Dissector::NONE
};

const NAMES: [&str; 8] = [
    "ARRAY",
    "SIMPLE_STRING",
    "ERROR",
    "INTEGER",
    "BULK_STRING",
    "INLINE",
    "PUSH",
    "OTHER",
];
const ARRAY: u16 = 1;
const SIMPLE_STRING: u16 = 2;
const ERROR: u16 = 3;
const INTEGER: u16 = 4;
const BULK_STRING: u16 = 5;
const INLINE: u16 = 6;
const PUSH: u16 = 7;
const OTHER: u16 = 8;
/// The longest line with a type and a number; longer lines are text, whose content does not matter.
const KEPT: usize = 32;
/// The most levels of nested arrays that are followed; Redis's own clients have the same limit.
const DEEPEST: usize = 32;
/// The largest length of a string (512 MiB; proto-max-bulk-len of Redis) and number of values of an array.
const LARGEST: u64 = 512 << 20;
const END_OF_STRING: u64 = 2;

fn type_name(kind: u16) -> String {
    NAMES[usize::from(kind - 1)].into()
}

/// Returns the type of the value that begins with this byte; None if no value does.
fn kind_of(first: u8) -> Option<u16> {
    Some(match first {
        b'*' | b'~' | b'%' => ARRAY,
        b'+' => SIMPLE_STRING,
        b'-' | b'!' => ERROR,
        b':' => INTEGER,
        b'$' => BULK_STRING,
        b'>' => PUSH,
        b'_' | b'#' | b',' | b'(' | b'=' | b'|' => OTHER,
        b'a'..=b'z' | b'A'..=b'Z' => INLINE,
        _ => return None,
    })
}

#[derive(Default)]
struct Resp {
    line: Vec<u8>,
    /// The number of bytes that remain of a string's content and its end of line.
    content: u64,
    /// For each open array, the number of values that are still missing.
    open: Vec<u64>,
    /// The type of the outermost value; 0 between values.
    kind: u16,
}

impl Resp {
    /// Handles the complete line in `self.line`; returns false if it is invalid.
    fn end_of_line(&mut self, notes: &mut Notes) -> bool {
        let line = std::mem::take(&mut self.line);
        let Some(kind) = line.first().and_then(|&first| kind_of(first)) else {
            return false;
        };
        if self.open.is_empty() {
            self.kind = kind;
        } else if kind == INLINE {
            return false;
        }
        match line[0] {
            b'*' | b'~' | b'>' => self.array(&line, 1, notes),
            b'%' => self.array(&line, 2, notes),
            // An attribute consists of pairs of values, and precedes the value that it describes.
            b'|' => self.array(&line, 2, notes) && self.one_more(),
            b'$' | b'!' | b'=' => self.string(&line, notes),
            _ => self.end_of_value(notes),
        }
    }

    /// Opens an array whose line states a number of elements; an element has `times` values.
    fn array(&mut self, line: &[u8], times: u64, notes: &mut Notes) -> bool {
        match number(line) {
            Some(None | Some(0)) if line[0] != b'|' => self.end_of_value(notes),
            Some(count) if self.open.len() < DEEPEST => {
                self.open.push(times * count.unwrap_or_default());
                true
            }
            _ => false,
        }
    }

    fn one_more(&mut self) -> bool {
        if let Some(missing) = self.open.last_mut() {
            *missing += 1;
        }
        true
    }

    fn string(&mut self, line: &[u8], notes: &mut Notes) -> bool {
        match number(line) {
            Some(None) => self.end_of_value(notes),
            Some(Some(length)) => {
                self.content = length + END_OF_STRING;
                true
            }
            None => false,
        }
    }

    /// Ends a value, and each array whose last value it is; notes the outermost value when it ends.
    fn end_of_value(&mut self, notes: &mut Notes) -> bool {
        while let Some(missing) = self.open.last_mut() {
            *missing = missing.saturating_sub(1);
            if *missing > 0 {
                return true;
            }
            self.open.pop();
        }
        notes.push(self.kind);
        self.kind = 0;
        true
    }

    fn pass(&mut self, count: u64, notes: &mut Notes) {
        self.content -= count;
        if self.content == 0 {
            self.end_of_value(notes);
        }
    }
}

/// Returns the number after the type; Some(None) for -1 (null), None if there is no number within the limit.
fn number(line: &[u8]) -> Option<Option<u64>> {
    let digits = line[1..].strip_suffix(b"\r\n")?;
    if digits == b"-1" {
        return Some(None);
    }
    let text = std::str::from_utf8(digits).ok()?;
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let value = text.parse().ok().filter(|&value| value <= LARGEST)?;
    plain.then_some(Some(value))
}

impl Stream for Resp {
    fn begin(&mut self) {
        *self = Self::default();
    }

    fn plausible(&self, data: &[u8], _cut: bool) -> bool {
        let line = data.split_inclusive(|&byte| byte == b'\n').next();
        line.is_some_and(|line| match line[0] {
            b'*' | b'$' | b':' | b'%' | b'~' | b'>' => number(line).is_some(),
            b'+' | b'-' => line.ends_with(b"\r\n"),
            _ => false,
        })
    }

    fn parse(&mut self, mut data: &[u8], notes: &mut Notes) -> bool {
        while !data.is_empty() {
            if self.content > 0 {
                let step = (data.len() as u64).min(self.content);
                self.pass(step, notes);
                data = &data[step as usize..];
                continue;
            }
            let end = data.iter().position(|&byte| byte == b'\n');
            let (line, rest) = data.split_at(end.map_or(data.len(), |end| end + 1));
            data = rest;
            notes.header += line.len() as u32;
            let room = KEPT.saturating_sub(self.line.len()).min(line.len());
            self.line.extend_from_slice(&line[..room]);
            if kind_of(self.line[0]).is_none() {
                return false;
            }
            if end.is_some() && !self.end_of_line(notes) {
                return false;
            }
        }
        true
    }

    fn skip(&mut self, count: u32, notes: &mut Notes) -> bool {
        let inside = u64::from(count) <= self.content;
        if inside {
            self.pass(count.into(), notes);
        }
        inside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the types of the values in `data`, parsed in pieces of `step` bytes; None if the position is
    /// lost.
    fn types(data: &[u8], step: usize) -> Option<Vec<String>> {
        let (mut resp, mut notes) = (Resp::default(), Notes::default());
        let placed = data.chunks(step).all(|piece| resp.parse(piece, &mut notes));
        let kind = |&noted: &u16| type_name(noted & 0x3ff);
        placed.then(|| notes.types.iter().map(kind).collect())
    }

    #[test]
    fn values_end_once_however_they_are_cut_and_nested() {
        let data = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n+OK\r\n-ERR no\r\n:7\r\n$-1\r\n*0\r\n*-1\r\n\
            *2\r\n*1\r\n:1\r\n$2\r\n\r\n\r\n%1\r\n+a\r\n:1\r\n|1\r\n+ttl\r\n:9\r\n:5\r\n>1\r\n+m\r\nPING\r\n";
        let wanted = [
            "ARRAY",
            "SIMPLE_STRING",
            "ERROR",
            "INTEGER",
            "BULK_STRING",
            "ARRAY",
            "ARRAY",
            "ARRAY",
            "ARRAY",
            "OTHER",
            "PUSH",
            "INLINE",
        ];
        for step in 1..data.len() {
            assert_eq!(
                types(data, step).as_deref(),
                Some(&wanted.map(String::from)[..])
            );
        }
    }

    #[test]
    fn what_is_no_value_loses_the_position() {
        for data in [
            &b"\x16\x03\x01"[..],
            b"*x\r\n",
            b"$99999999999\r\n",
            b"*1\r\nPING\r\n",
            b"*3\n",
            b"$+1\r\n",
        ] {
            assert_eq!(types(data, 64), None, "{data:?}");
        }
        let deep = b"*1\r\n".repeat(DEEPEST + 1);
        assert_eq!(types(&deep, 64), None);
    }
}
