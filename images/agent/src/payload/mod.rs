//! Defines the interface of all kinds of payload, and finds a kind by its name. Each kind is a module; its
//! payload contains the message's identity, so that a receiver needs no state.

pub mod bytes;
mod metering_xml;
mod protobuf;
mod signals;
pub mod sizes;
pub mod sparkplug;
mod villas_json;

use crate::os::Res;
use crate::proto;

/// The purpose of a message. It decides whether the receiver replies to the message, matches it to a request,
/// or counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Request,
    Reply,
    Push,
    Stream,
    Other,
}

/// A message's identity: flow, number, due time in Unix nanoseconds, and the length of the requested reply.
/// Kinds of payload without a purpose have `Other` and no reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    pub purpose: Purpose,
    pub flow: u32,
    pub seq: u64,
    pub scheduled_ns: i64,
    pub reply_bytes: u32,
}

const NS: i64 = 1_000_000_000;

impl Identity {
    /// Returns the due time as seconds and nanoseconds of Unix time; a negative time becomes 0.
    fn due(&self) -> (u64, u64) {
        let at = self.scheduled_ns.max(0);
        ((at / NS) as u64, (at % NS) as u64)
    }
}

/// Converts seconds and nanoseconds to Unix time in nanoseconds; None if it exceeds 64 bits.
fn joined(sec: u64, nsec: u64) -> Option<i64> {
    let whole = i64::try_from(sec).ok()?.checked_mul(NS)?;
    whole.checked_add(i64::try_from(nsec).ok()?)
}

/// Encodes and decodes one kind of payload.
pub trait Payload: Sync {
    /// Returns the shortest length of a payload: it holds an identity, and one signal if the kind has
    /// signals.
    fn smallest(&self) -> usize;
    /// Returns the difference between two valid lengths: 1, or the length of a signal.
    fn step(&self) -> usize {
        1
    }
    fn largest(&self) -> usize {
        usize::MAX
    }
    /// Returns the number of signals in a payload of this length, which must be valid; only for kinds with
    /// signals.
    fn count(&self, bytes: usize) -> usize {
        1 + (bytes - self.smallest()) / self.step()
    }
    /// Appends a payload of exactly `bytes` bytes, which must be a valid length of this kind.
    fn write(&self, identity: &Identity, bytes: usize, out: &mut Vec<u8>);
    /// Returns the identity in a payload; None if the bytes are not of this kind.
    fn read(&self, payload: &[u8]) -> Option<Identity>;
}

static KINDS: [(&str, &dyn Payload); 5] = [
    ("metering-xml", &metering_xml::MeteringXml),
    ("bytes", &bytes::Bytes),
    ("villas-json", &villas_json::VillasJson),
    ("protobuf", &protobuf::Protobuf),
    ("sparkplug", &sparkplug::Sparkplug),
];

/// Returns the kind that the settings `payload` name; an error for an unknown kind or a length that the kind
/// does not have.
pub fn of(payload: &proto::Payload) -> Res<&'static dyn Payload> {
    let (name, bytes) = (payload.kind.as_str(), payload.bytes);
    let Some((_, kind)) = KINDS.iter().find(|(known, _)| *known == name) else {
        let known: Vec<&str> = KINDS.iter().map(|(known, _)| *known).collect();
        return Err(format!(
            "payload.kind: \"{name}\" is unknown; write one of {known:?}"
        ));
    };
    let smallest = kind.smallest();
    if bytes < smallest {
        return Err(format!(
            "payload.bytes: {bytes} is less than the {smallest} that {name} needs; write more"
        ));
    }
    let (step, largest) = (kind.step(), kind.largest());
    if (bytes - smallest) % step != 0 || bytes > largest {
        return Err(format!(
            "payload.bytes: {bytes} is no length of {name}: {smallest}, and {step} for each further signal, at most {largest}"
        ));
    }
    Ok(*kind)
}

/// Returns the identity in a payload of any kind; None if the payload is of no known kind.
pub fn read(payload: &[u8]) -> Option<Identity> {
    KINDS.iter().find_map(|(_, kind)| kind.read(payload))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn payload(kind: &str, bytes: usize) -> proto::Payload {
        proto::Payload {
            kind: kind.to_owned(),
            bytes,
            sizes: None,
        }
    }

    #[test]
    fn refusals_name_the_rule() {
        for (name, kind) in KINDS {
            let refused = of(&payload(name, kind.smallest() - 1)).err().unwrap();
            assert!(refused.contains(&kind.smallest().to_string()), "{refused}");
            assert!(of(&payload(name, kind.smallest())).is_ok());
            let between = of(&payload(name, kind.smallest() + 1));
            assert_eq!(between.is_ok(), kind.step() == 1, "{name}");
        }
        let refused = of(&payload("json", 717)).err().unwrap();
        assert!(
            refused.contains("\"json\"") && refused.contains("metering-xml"),
            "{refused}"
        );
    }

    #[test]
    fn other_payloads_are_not_ours() {
        assert_eq!(read(b""), None);
        assert_eq!(read(b"hello"), None);
        assert_eq!(read(&[b'x'; 717]), None);
        let identity = Identity {
            purpose: Purpose::Push,
            flow: 1,
            seq: 2,
            scheduled_ns: 3,
            reply_bytes: 0,
        };
        for (_, kind) in KINDS {
            let mut whole = Vec::new();
            kind.write(&identity, kind.smallest(), &mut whole);
            assert_eq!(read(&whole[..20]), None);
        }
    }

    proptest! {
        #[test]
        fn written_data_round_trips(
            room in 0..KINDS.len(), flow: u32, seq in 0u64..1 << 32,
            at in 0i64..i64::from(u32::MAX) * NS, more in 0usize..1300,
        ) {
            let identity = Identity { purpose: Purpose::Other, flow, seq, scheduled_ns: at, reply_bytes: 0 };
            let kind = KINDS[room].1;
            let mut bytes = Vec::new();
            let length = kind.smallest() + more * kind.step();
            kind.write(&identity, length, &mut bytes);
            prop_assert_eq!(bytes.len(), length);
            prop_assert_eq!(read(&bytes), Some(identity));
        }
    }
}
