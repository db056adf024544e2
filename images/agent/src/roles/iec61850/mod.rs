//! Implements the common parts of the IEC 61850 protocols on Ethernet: header, encoding, sockets,
//! publisher and subscriber.

pub mod ber;
pub mod publisher;
mod sockets;
pub mod subscriber;

pub use sockets::{Receivers, Sender};

use super::Role;
use crate::os::Res;
use crate::proto::{self, Item};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Length of the header: APPID, length, two reserved words (IEC 61850-8-1, annex C; 61850-9-2, annex A).
const HEAD: usize = 8;
/// Tag protocol identifier of 802.1Q.
const TAGGED: u16 = 0x8100;

/// The destination of frames: multicast group, application identifier, and 802.1Q tag if they have one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Destination {
    pub group: [u8; 6],
    pub appid: u16,
    /// VLAN identifier and priority code point; identifier 0 means a tag with a priority only. None: no tag.
    pub tag: Option<(u16, u8)>,
}

/// The `spec` of a publisher or a subscriber: what it publishes, or the streams that it receives.
#[derive(Deserialize)]
struct Specs<P, S> {
    publish: Option<P>,
    #[serde(default = "Vec::new")]
    subscribe: Vec<S>,
}

/// Creates a publisher if the settings have `publish`, otherwise a subscriber with open sockets, for an item
/// of `workload`.
pub fn arm<P: DeserializeOwned, S: DeserializeOwned>(
    mut item: Item,
    publisher: fn(Item, P) -> Res<Box<dyn Role>>,
    subscriber: fn(Item, Vec<S>) -> Res<Box<dyn Role>>,
) -> Res<Box<dyn Role>> {
    let sides: Specs<P, S> = proto::parse("spec", item.software.spec.take())?;
    match sides.publish {
        Some(publish) => publisher(item, publish),
        None => subscriber(item, sides.subscribe),
    }
}

/// Encodes a frame from MAC address `own` that carries an APDU.
pub fn frame(own: [u8; 6], to: &Destination, ethertype: u16, apdu: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(26 + apdu.len());
    out.extend_from_slice(&to.group);
    out.extend_from_slice(&own);
    if let Some((id, priority)) = to.tag {
        out.extend_from_slice(&TAGGED.to_be_bytes());
        out.extend_from_slice(&(u16::from(priority) << 13 | id).to_be_bytes());
    }
    out.extend_from_slice(&ethertype.to_be_bytes());
    out.extend_from_slice(&to.appid.to_be_bytes());
    out.extend_from_slice(&((HEAD + apdu.len()) as u16).to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(apdu);
    out
}

/// Returns the application identifier and the APDU of a frame from a packet socket. Skips 802.1Q tags, which
/// the kernel may have removed; None for frames of another EtherType and for truncated ones.
pub fn apdu(frame: &[u8], ethertype: u16) -> Option<(u16, &[u8])> {
    let word = |at: usize| {
        let bytes = frame.get(at..at + 2)?;
        Some(u16::from_be_bytes([bytes[0], bytes[1]]))
    };
    let mut at = 12;
    while word(at)? == TAGGED {
        at += 4;
    }
    if word(at)? != ethertype {
        return None;
    }
    let (appid, length) = (word(at + 2)?, usize::from(word(at + 4)?));
    let whole = frame.get(at + 2..)?.get(..length)?;
    Some((appid, whole.get(HEAD..)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TO: Destination = Destination {
        group: [1, 0x0c, 0xcd, 4, 0, 1],
        appid: 0x4001,
        tag: None,
    };

    #[test]
    fn a_tag_stands_before_the_ethertype() {
        let tag = Some((5, 6));
        let bytes = frame([2; 6], &Destination { tag, ..TO }, 0x88ba, &[9]);
        assert_eq!(
            bytes[12..],
            [0x81, 0, 0xc0, 5, 0x88, 0xba, 0x40, 1, 0, 9, 0, 0, 0, 0, 9]
        );
    }

    proptest! {
        #[test]
        fn framed_apdus_round_trip(tag: Option<(u8, u8)>, content: Vec<u8>, pad in 0usize..40) {
            let tag = tag.map(|(id, priority)| (u16::from(id), priority & 7));
            let mut bytes = frame([2; 6], &Destination { tag, ..TO }, 0x88ba, &content);
            bytes.extend(vec![0; pad]); // padding of a short frame
            prop_assert_eq!(apdu(&bytes, 0x88ba), Some((0x4001, &content[..])));
            prop_assert_eq!(apdu(&bytes, 0x88b8), None);
        }

        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            let _ = apdu(&bytes, 0x88ba);
        }
    }
}
