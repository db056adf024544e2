//! Dissects MQTT: finds the control packets that end in a stream's bytes, and counts header bytes. The parser
//! stores no payload, only a packet's type, its identifier and the number of its remaining bytes. An
//! acknowledgement with a code of failure has two types: `REFUSED`, and then its own.

#[cfg(test)]
mod follow_tests;
mod plausible;

use std::cell::Cell;
use std::rc::Rc;

use super::{Dissector, Notes, Stream, Streams};

pub const DISSECTOR: Dissector = Dissector {
    name: "mqtt",
    type_name: |kind| NAMES[usize::from(kind) - 1].into(),
    tcp_ports: &[1883],
    streams: Some(streams),
    ..Dissector::NONE
};

/// The names of packet types, at the index of type - 1.
const NAMES: [&str; 16] = [
    "CONNECT",
    "CONNACK",
    "PUBLISH",
    "PUBACK",
    "PUBREC",
    "PUBREL",
    "PUBCOMP",
    "SUBSCRIBE",
    "SUBACK",
    "UNSUBSCRIBE",
    "UNSUBACK",
    "PINGREQ",
    "PINGRESP",
    "DISCONNECT",
    "AUTH",
    "REFUSED",
];
const REFUSED: u16 = 16;
const CONNECT: u8 = 1;
const CONNACK: u8 = 2;
const PUBLISH: u8 = 3;
const PUBACK: u8 = 4;
const PUBCOMP: u8 = 7;
const SUBSCRIBE: u8 = 8;
const SUBACK: u8 = 9;
const UNSUBACK: u8 = 11;
/// The lowest reason code of a failure (MQTT 5, 2.4; 0x80 of SUBACK in 3.1.1, too).
const FAILURE: u8 = 0x80;
/// The number of bytes of a CONNECT before the protocol level: the name "MQTT" with its length.
const BEFORE_LEVEL: u32 = 6;
/// The lowest protocol level at which a PUBLISH has properties.
const WITH_PROPERTIES: u8 = 5;

fn streams() -> Streams {
    let level = Rc::new(Cell::new(0));
    let one = || {
        Box::new(Mqtt {
            state: State::Start,
            level: level.clone(),
            id: 0,
            refused: false,
        })
    };
    [one(), one()]
}

/// The state of one direction of a connection. Both directions share the protocol level of the CONNECT, which
/// is 0 before it was captured.
struct Mqtt {
    state: State,
    level: Rc<Cell<u8>>,
    /// The identifier of the present packet so far; 0 if it has none.
    id: u16,
    /// Whether the present packet states a failure.
    refused: bool,
}

/// The parser's position in the control packets of a stream.
#[derive(Clone, Copy, Debug)]
enum State {
    Start,
    Length { first: u8, value: u32, shift: u32 },
    Body { first: u8, left: u32, part: Part },
}

/// The part of a control packet's body that comes next.
#[derive(Clone, Copy, Debug)]
enum Part {
    /// Only header bytes follow up to the packet's end.
    Header,
    BeforeLevel(u32),
    Level,
    TopicHigh,
    TopicLow {
        high: u8,
    },
    /// The number of bytes that remain of the topic and the packet identifier.
    Fields(u32),
    PropertyLength {
        value: u32,
        shift: u32,
    },
    Properties(u32),
    Payload,
    /// The number of bytes that remain of the identifier at the beginning of the body.
    Identifier(u32),
    /// The flags of a CONNACK.
    Flags,
    /// The single reason code of an acknowledgement; in a CONNACK, only 0 is a success.
    Reason,
    /// The reason codes, one for each topic.
    Reasons,
}

impl Part {
    fn first(kind: u8) -> Self {
        match kind {
            CONNECT => Self::BeforeLevel(BEFORE_LEVEL),
            PUBLISH => Self::TopicHigh,
            CONNACK => Self::Flags,
            PUBACK..=PUBCOMP | SUBSCRIBE..=UNSUBACK => Self::Identifier(2),
            _ => Self::Header,
        }
    }

    /// Returns the most bytes of the part that can be consumed at once.
    fn step(self) -> u32 {
        match self {
            Self::Header | Self::Payload => u32::MAX,
            Self::BeforeLevel(left) | Self::Fields(left) | Self::Properties(left) => left,
            _ => 1,
        }
    }
}

impl Mqtt {
    /// Consumes one byte of the remaining length. A byte holds seven bits, and there are at most four bytes
    /// (MQTT 5, 1.5.5); returns false if there are more.
    fn length(&mut self, first: u8, value: u32, shift: u32, byte: u8, notes: &mut Notes) -> bool {
        let value = value | u32::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            self.body(first, value, Part::first(first >> 4), notes);
        } else {
            let shift = shift + 7;
            self.state = State::Length {
                first,
                value,
                shift,
            };
        }
        byte & 0x80 == 0 || shift < 21
    }

    fn body(&mut self, first: u8, left: u32, part: Part, notes: &mut Notes) {
        if left == 0 {
            if std::mem::take(&mut self.refused) {
                notes.push_numbered(REFUSED, self.id.into());
            }
            notes.push_numbered((first >> 4).into(), self.id.into());
            self.id = 0;
            self.state = State::Start;
        } else {
            self.state = State::Body { first, left, part };
        }
    }

    /// Returns the part of a PUBLISH that follows the length of its topic: the topic with the packet
    /// identifier, if these have any bytes, else the next part. Only QoS above 0 has an identifier.
    fn after_topic(&self, first: u8, topic: u32) -> Part {
        let identifier = if first & 0b110 == 0 { 0 } else { 2 };
        match topic + identifier {
            0 => self.after_fields(),
            left => Part::Fields(left),
        }
    }

    fn after_fields(&self) -> Part {
        if self.level.get() < WITH_PROPERTIES {
            return Part::Payload;
        }
        Part::PropertyLength { value: 0, shift: 0 }
    }

    /// Returns the part that follows `step` bytes of `part`; `byte` is the last of them.
    fn after(&self, first: u8, part: Part, step: u32, byte: u8) -> Part {
        match part {
            Part::Header | Part::Payload => part,
            Part::BeforeLevel(left) if left > step => Part::BeforeLevel(left - step),
            Part::BeforeLevel(_) => Part::Level,
            Part::Level => {
                self.level.set(byte);
                Part::Header
            }
            Part::TopicHigh => Part::TopicLow { high: byte },
            Part::TopicLow { high } => {
                self.after_topic(first, u16::from_be_bytes([high, byte]).into())
            }
            Part::Fields(left) if left > step => Part::Fields(left - step),
            Part::Fields(_) => self.after_fields(),
            Part::PropertyLength { value, shift } => {
                let value = value | u32::from(byte & 0x7f) << shift;
                match (byte & 0x80 != 0 && shift < 21, value) {
                    (true, _) => Part::PropertyLength {
                        value,
                        shift: shift + 7,
                    },
                    (false, 0) if matches!(first >> 4, SUBACK | UNSUBACK) => Part::Reasons,
                    (false, 0) => Part::Payload,
                    (false, left) => Part::Properties(left),
                }
            }
            Part::Properties(left) if left > step => Part::Properties(left - step),
            Part::Properties(_) if matches!(first >> 4, SUBACK | UNSUBACK) => Part::Reasons,
            Part::Properties(_) => Part::Payload,
            Part::Identifier(left) if left > step => Part::Identifier(left - step),
            Part::Identifier(_) => match first >> 4 {
                PUBACK..=PUBCOMP => Part::Reason,
                SUBACK | UNSUBACK if self.level.get() >= WITH_PROPERTIES => {
                    Part::PropertyLength { value: 0, shift: 0 }
                }
                SUBACK => Part::Reasons,
                _ => Part::Header,
            },
            Part::Flags => Part::Reason,
            Part::Reason => Part::Header,
            Part::Reasons => part,
        }
    }

    /// Stores the packet identifier, or whether a reason code states a failure, from the next `bytes` of the
    /// body; `part` says which of these the bytes are. Bytes of other parts change nothing.
    fn note(&mut self, first: u8, part: Part, bytes: &[u8]) {
        match part {
            // The packet identifier follows the topic, so the last two of these bytes are kept.
            Part::Fields(_) if first & 0b110 != 0 => self.shift_in(bytes),
            Part::Identifier(_) => self.shift_in(bytes),
            Part::Reason if first >> 4 == CONNACK => self.refused = bytes[0] != 0,
            Part::Reason | Part::Reasons => self.refused |= bytes[0] >= FAILURE,
            _ => {}
        }
    }

    fn shift_in(&mut self, bytes: &[u8]) {
        for &byte in &bytes[bytes.len().saturating_sub(2)..] {
            self.id = self.id << 8 | u16::from(byte);
        }
    }

    /// Skips `count` bytes of the body that were not captured, counts their header bytes, and returns the
    /// next part. If the length of the header is not known, all bytes count as payload.
    fn unseen(first: u8, part: Part, count: u32, notes: &mut Notes) -> Part {
        if first >> 4 != PUBLISH {
            notes.header += count;
            return Part::Header;
        }
        notes.header += match part {
            Part::Fields(left) | Part::Properties(left) => count.min(left),
            _ => 0,
        };
        match part {
            Part::Fields(left) if count < left => Part::Fields(left - count),
            Part::Properties(left) if count < left => Part::Properties(left - count),
            _ => Part::Payload,
        }
    }
}

impl Stream for Mqtt {
    fn begin(&mut self) {
        self.state = State::Start;
        (self.id, self.refused) = (0, false);
    }

    fn plausible(&self, data: &[u8], cut: bool) -> bool {
        plausible::beginning(data, cut)
    }

    fn parse(&mut self, mut data: &[u8], notes: &mut Notes) -> bool {
        while let Some((&byte, rest)) = data.split_first() {
            match self.state {
                State::Start if byte >> 4 == 0 => return false,
                State::Start => {
                    notes.header += 1;
                    let first = byte;
                    self.state = State::Length {
                        first,
                        value: 0,
                        shift: 0,
                    };
                }
                State::Length {
                    first,
                    value,
                    shift,
                } => {
                    notes.header += 1;
                    if !self.length(first, value, shift, byte, notes) {
                        return false;
                    }
                }
                State::Body { first, left, part } => {
                    let step = (data.len() as u32).min(left).min(part.step());
                    if !matches!(part, Part::Payload) {
                        notes.header += step;
                    }
                    self.note(first, part, &data[..step as usize]);
                    let last = data[step as usize - 1];
                    let next = self.after(first, part, step, last);
                    self.body(first, left - step, next, notes);
                    data = &data[step as usize..];
                    continue;
                }
            }
            data = rest;
        }
        true
    }

    fn skip(&mut self, count: u32, notes: &mut Notes) -> bool {
        let State::Body { first, left, part } = self.state else {
            return false;
        };
        let inside = left.min(count);
        let next = Self::unseen(first, part, inside, notes);
        self.body(first, left - inside, next, notes);
        count <= left
    }
}
