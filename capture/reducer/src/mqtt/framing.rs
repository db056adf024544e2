//! MQTT's framing in a stream of bytes: which control packets end where. No payload is kept: a control packet is its type
//! and the bytes still to come.

use crate::plausible;

/// Where in the framing the stream stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    Start,
    Length {
        kind: u8,
        value: u32,
        shift: u32,
    },
    Body {
        kind: u8,
        left: u32,
    },
    #[default]
    Lost,
}

impl Framing {
    /// Where the place was lost: begins again if `data` looks like a beginning (`cut`: more of it was not captured).
    pub fn find(&mut self, data: &[u8], cut: bool) {
        if *self == Self::Lost && plausible::beginning(data, cut) {
            *self = Self::Start;
        }
    }

    /// Goes over captured bytes; pushes the types that end in them onto `out`.
    pub fn parse(&mut self, mut data: &[u8], out: &mut Vec<u8>) {
        while let Some((&byte, rest)) = data.split_first() {
            match *self {
                Self::Start if byte >> 4 == 0 => *self = Self::Lost,
                Self::Start => {
                    *self = Self::Length {
                        kind: byte >> 4,
                        value: 0,
                        shift: 0,
                    }
                }
                Self::Length { kind, value, shift } => self.length(kind, value, shift, byte, out),
                Self::Body { kind, left } => {
                    let step = data.len().min(left as usize);
                    self.body(kind, left - step as u32, out);
                    data = &data[step..];
                    continue;
                }
                Self::Lost => return,
            }
            data = rest;
        }
    }

    /// One byte of the remaining length: seven bits each, at most four bytes (MQTT 5, 1.5.5).
    fn length(&mut self, kind: u8, value: u32, shift: u32, byte: u8, out: &mut Vec<u8>) {
        let value = value | u32::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            self.body(kind, value, out);
        } else if shift == 21 {
            *self = Self::Lost;
        } else {
            *self = Self::Length {
                kind,
                value,
                shift: shift + 7,
            };
        }
    }

    fn body(&mut self, kind: u8, left: u32, out: &mut Vec<u8>) {
        if left == 0 {
            out.push(kind);
            *self = Self::Start;
        } else {
            *self = Self::Body { kind, left };
        }
    }

    /// Goes over `count` bytes that nobody captured.
    pub fn skip(&mut self, count: u32, out: &mut Vec<u8>) {
        match *self {
            _ if count == 0 => {}
            Self::Body { kind, left } if left >= count => self.body(kind, left - count, out),
            Self::Body { kind, .. } => {
                out.push(kind);
                *self = Self::Lost;
            }
            _ => *self = Self::Lost,
        }
    }
}
