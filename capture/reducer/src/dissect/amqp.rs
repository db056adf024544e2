//! Dissects AMQP 0-9-1: finds the methods that end in a stream's bytes, and counts header bytes.
//!
//! A frame consists of type, channel, size, payload and an end octet; everything except the payload of a body
//! frame counts as header.

use super::head::Head;
use super::{Dissector, Notes, Stream};

pub const DISSECTOR: Dissector = Dissector {
    name: "amqp",
    type_name: |kind| NAMES[usize::from(kind) - 1].2.into(),
    tcp_ports: &[5672],
    streams: Some(|| [Box::<Amqp>::default(), Box::<Amqp>::default()]),
    ..Dissector::NONE
};

const METHOD: u8 = 1;
const HEADER: u8 = 2;
const BODY: u8 = 3;
const HEARTBEAT: u8 = 8;
const END: u8 = 0xce;
/// The number of bytes of a frame before its payload: type, channel and size.
const BEFORE: usize = 7;
/// The number of bytes of class and method at the beginning of a method's payload.
const IDS: usize = 4;
/// The protocol header: "AMQP" and a version, one byte longer than `BEFORE`. It counts as a frame of a type
/// of its own.
const GREETING: &[u8] = b"AMQP";
const GREETED: u8 = 0xff;

/// Class, method and name of each method (AMQP 0-9-1, 1.5; RabbitMQ's extensions), then of the other frames.
const NAMES: [(u16, u16, &str); 66] = [
    (10, 10, "Connection.Start"),
    (10, 11, "Connection.Start-Ok"),
    (10, 20, "Connection.Secure"),
    (10, 21, "Connection.Secure-Ok"),
    (10, 30, "Connection.Tune"),
    (10, 31, "Connection.Tune-Ok"),
    (10, 40, "Connection.Open"),
    (10, 41, "Connection.Open-Ok"),
    (10, 50, "Connection.Close"),
    (10, 51, "Connection.Close-Ok"),
    (10, 60, "Connection.Blocked"),
    (10, 61, "Connection.Unblocked"),
    (20, 10, "Channel.Open"),
    (20, 11, "Channel.Open-Ok"),
    (20, 20, "Channel.Flow"),
    (20, 21, "Channel.Flow-Ok"),
    (20, 40, "Channel.Close"),
    (20, 41, "Channel.Close-Ok"),
    (40, 10, "Exchange.Declare"),
    (40, 11, "Exchange.Declare-Ok"),
    (40, 20, "Exchange.Delete"),
    (40, 21, "Exchange.Delete-Ok"),
    (40, 30, "Exchange.Bind"),
    (40, 31, "Exchange.Bind-Ok"),
    (40, 40, "Exchange.Unbind"),
    (40, 51, "Exchange.Unbind-Ok"),
    (50, 10, "Queue.Declare"),
    (50, 11, "Queue.Declare-Ok"),
    (50, 20, "Queue.Bind"),
    (50, 21, "Queue.Bind-Ok"),
    (50, 30, "Queue.Purge"),
    (50, 31, "Queue.Purge-Ok"),
    (50, 40, "Queue.Delete"),
    (50, 41, "Queue.Delete-Ok"),
    (50, 50, "Queue.Unbind"),
    (50, 51, "Queue.Unbind-Ok"),
    (60, 10, "Basic.Qos"),
    (60, 11, "Basic.Qos-Ok"),
    (60, 20, "Basic.Consume"),
    (60, 21, "Basic.Consume-Ok"),
    (60, 30, "Basic.Cancel"),
    (60, 31, "Basic.Cancel-Ok"),
    (60, 40, "Basic.Publish"),
    (60, 50, "Basic.Return"),
    (60, 60, "Basic.Deliver"),
    (60, 70, "Basic.Get"),
    (60, 71, "Basic.Get-Ok"),
    (60, 72, "Basic.Get-Empty"),
    (60, 80, "Basic.Ack"),
    (60, 90, "Basic.Reject"),
    (60, 100, "Basic.Recover-Async"),
    (60, 110, "Basic.Recover"),
    (60, 111, "Basic.Recover-Ok"),
    (60, 120, "Basic.Nack"),
    (85, 10, "Confirm.Select"),
    (85, 11, "Confirm.Select-Ok"),
    (90, 10, "Tx.Select"),
    (90, 11, "Tx.Select-Ok"),
    (90, 20, "Tx.Commit"),
    (90, 21, "Tx.Commit-Ok"),
    (90, 30, "Tx.Rollback"),
    (90, 31, "Tx.Rollback-Ok"),
    (0, GREETED as u16, "Protocol-Header"),
    (0, HEADER as u16, "Content-Header"),
    (0, BODY as u16, "Content-Body"),
    (0, HEARTBEAT as u16, "Heartbeat"),
];
/// The class in `NAMES` of frames that are not methods; their method number is the frame type.
const NO_CLASS: u16 = 0;

/// Returns the message type of a method, or of another frame (class 0 and the frame's type); None if `NAMES`
/// lacks it.
fn kind(class: u16, id: u16) -> Option<u16> {
    let place = NAMES
        .iter()
        .position(|known| (known.0, known.1) == (class, id));
    place.map(|place| place as u16 + 1)
}

#[derive(Default)]
struct Amqp {
    before: Head<BEFORE>,
    ids: Head<IDS>,
    state: State,
}

/// The parser's position in the frames of a stream.
#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Start,
    /// In the payload of a method, before its class and method numbers; the number is the payload's length.
    Ids(u32),
    /// After the beginning of a frame of this type: the bytes of payload that remain, and then of header.
    Rest {
        kind: u16,
        payload: u32,
        header: u32,
    },
}

/// Parses the beginning of a frame: returns its type and size, or None if the bytes do not begin a frame.
fn beginning(head: &[u8]) -> Option<(u8, u32)> {
    if head.starts_with(GREETING) {
        return Some((GREETED, 0));
    }
    let (first, size) = (*head.first()?, head.get(3..BEFORE)?);
    let size = u32::from_be_bytes(size.try_into().ok()?);
    let fits = match first {
        METHOD => size >= IDS as u32,
        HEADER | BODY => true,
        HEARTBEAT => size == 0,
        _ => false,
    };
    // The sum leaves room for the end octet.
    (fits && size < u32::MAX).then_some((first, size))
}

/// Returns the message type for the class and method numbers in `ids`; None if AMQP does not have them.
fn known(ids: &[u8]) -> Option<u16> {
    let (class, id) = (ids.get(..2)?, ids.get(2..4)?);
    let number = |bytes: &[u8]| Some(u16::from_be_bytes(bytes.try_into().ok()?));
    kind(number(class)?, number(id)?).filter(|_| class != NO_CLASS.to_be_bytes())
}

impl Amqp {
    fn rest(&mut self, kind: u16, payload: u32, header: u32, notes: &mut Notes) {
        self.state = State::Rest {
            kind,
            payload,
            header,
        };
        if payload + header == 0 {
            notes.push(kind);
            self.state = State::Start;
        }
    }

    /// Starts a frame whose first bytes are `head`; returns false if these do not begin a frame.
    fn open(&mut self, head: [u8; BEFORE], notes: &mut Notes) -> bool {
        let Some((first, size)) = beginning(&head) else {
            return false;
        };
        if first == METHOD {
            self.state = State::Ids(size);
            return true;
        }
        let Some(kind) = kind(NO_CLASS, first.into()) else {
            return false;
        };
        let payload = if first == BODY { size } else { 0 };
        self.rest(kind, payload, size - payload + 1, notes);
        true
    }

    /// Consumes `count` bytes of the present frame and counts those that are header.
    fn pass(&mut self, (kind, payload, header): (u16, u32, u32), count: u32, notes: &mut Notes) {
        let content = count.min(payload);
        notes.header += count - content;
        self.rest(kind, payload - content, header - (count - content), notes);
    }
}

impl Stream for Amqp {
    fn begin(&mut self) {
        *self = Self::default();
    }

    /// Returns true for one or more whole frames, also if an incomplete frame follows them. A single
    /// incomplete frame must show a known method, or bytes that were not captured must follow it (`cut`).
    /// Returns false if a method is unknown or an end octet is missing.
    fn plausible(&self, data: &[u8], cut: bool) -> bool {
        let mut rest = data;
        while !rest.is_empty() {
            let Some((first, size)) = beginning(rest) else {
                // An incomplete frame proves nothing, but a whole frame before it stays valid.
                return rest.len() < data.len() && rest.len() < BEFORE;
            };
            if first == METHOD && rest.len() >= BEFORE + IDS && known(&rest[BEFORE..]).is_none() {
                return false;
            }
            let end = BEFORE + size as usize;
            match rest.get(end) {
                Some(&END) => rest = &rest[end + 1..],
                Some(_) if first == GREETED => rest = &rest[end + 1..],
                Some(_) => return false,
                None => {
                    let names_method = first == METHOD && rest.len() >= BEFORE + IDS;
                    return cut || names_method || rest.len() < data.len();
                }
            }
        }
        !data.is_empty()
    }

    fn parse(&mut self, mut data: &[u8], notes: &mut Notes) -> bool {
        while !data.is_empty() {
            match self.state {
                State::Start => {
                    let (head, taken) = self.before.take(&mut data);
                    notes.header += taken;
                    if head.is_some_and(|head| !self.open(head, notes)) {
                        return false;
                    }
                }
                State::Ids(size) => {
                    let (ids, taken) = self.ids.take(&mut data);
                    notes.header += taken;
                    let Some(ids) = ids else { break };
                    let Some(kind) = known(&ids) else {
                        return false;
                    };
                    self.rest(kind, 0, size - IDS as u32 + 1, notes);
                }
                State::Rest {
                    kind,
                    payload,
                    header,
                } => {
                    let step = (data.len() as u32).min(payload.saturating_add(header));
                    self.pass((kind, payload, header), step, notes);
                    data = &data[step as usize..];
                }
            }
        }
        true
    }

    fn skip(&mut self, count: u32, notes: &mut Notes) -> bool {
        let State::Rest {
            kind,
            payload,
            header,
        } = self.state
        else {
            return false;
        };
        let inside = count <= payload.saturating_add(header);
        if inside {
            self.pass((kind, payload, header), count, notes);
        }
        inside
    }
}
