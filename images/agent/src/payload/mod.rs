//! What messages are made of: each kind of payload is a room of its own and carries the message's identity, so that
//! whoever receives it needs no other state.

pub mod bytes;
mod metering_xml;

use crate::os::Res;
use crate::proto;

/// What a message is to its receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Request,
    Reply,
    Push,
    Stream,
    Other,
}

/// Which message it is, when it was due, and how long a reply is asked for. Kinds that carry no purpose say `Other`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    pub purpose: Purpose,
    pub flow: u32,
    pub seq: u64,
    pub scheduled_ns: i64,
    pub reply_bytes: u32,
}

/// One kind of payload.
pub trait Payload: Sync {
    /// The smallest length that holds an identity.
    fn smallest(&self) -> usize;
    /// Appends exactly `bytes` bytes (at least `smallest`).
    fn write(&self, identity: &Identity, bytes: usize, out: &mut Vec<u8>);
    /// Nothing if the bytes are not of this kind.
    fn read(&self, payload: &[u8]) -> Option<Identity>;
}

static KINDS: [(&str, &dyn Payload); 2] = [
    ("metering-xml", &metering_xml::MeteringXml),
    ("bytes", &bytes::Bytes),
];

/// The kind of a payload that is long enough for it.
pub fn of(payload: &proto::Payload) -> Res<&'static dyn Payload> {
    let (name, bytes) = (payload.kind.as_str(), payload.bytes);
    let Some((_, kind)) = KINDS.iter().find(|(known, _)| *known == name) else {
        let known: Vec<&str> = KINDS.iter().map(|(known, _)| *known).collect();
        return Err(format!(
            "payload.kind: \"{name}\" is not known; write one of {known:?}"
        ));
    };
    let smallest = kind.smallest();
    if bytes < smallest {
        return Err(format!(
            "payload.bytes: {bytes} is less than the {smallest} that {name} needs; ask for more"
        ));
    }
    Ok(*kind)
}

/// The identity in a payload of any kind; nothing if it is not one of ours.
pub fn read(payload: &[u8]) -> Option<Identity> {
    KINDS.iter().find_map(|(_, kind)| kind.read(payload))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn asked(kind: &str, bytes: usize) -> proto::Payload {
        proto::Payload {
            kind: kind.to_owned(),
            bytes,
        }
    }

    #[test]
    fn refusals_name_the_rule() {
        for (name, kind) in KINDS {
            let refused = of(&asked(name, kind.smallest() - 1)).err().unwrap();
            assert!(refused.contains(&kind.smallest().to_string()), "{refused}");
            assert!(of(&asked(name, kind.smallest())).is_ok());
        }
        let refused = of(&asked("json", 717)).err().unwrap();
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
        fn what_is_written_is_read(
            room in 0..KINDS.len(), flow: u32, seq in 0u64..1 << 32, at in 0i64..i64::MAX, more in 0usize..3000,
        ) {
            let identity = Identity { purpose: Purpose::Other, flow, seq, scheduled_ns: at, reply_bytes: 0 };
            let kind = KINDS[room].1;
            let mut bytes = Vec::new();
            kind.write(&identity, kind.smallest() + more, &mut bytes);
            prop_assert_eq!(bytes.len(), kind.smallest() + more);
            prop_assert_eq!(read(&bytes), Some(identity));
        }
    }
}
