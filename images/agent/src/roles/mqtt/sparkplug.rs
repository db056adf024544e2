//! Makes a publisher an edge node of Sparkplug B: NBIRTH after each login, NDEATH as the will and before a
//! DISCONNECT, and consecutive sequence numbers from NBIRTH on (specification 3.0, 5.4 and 6.4).

use super::{Mqtt, packets};
use crate::os::Res;
use crate::payload::sparkplug::{self, birth, death};
use crate::roles::broker_client::Link;
use serde::Deserialize;

/// The topics of an edge node's certificates, and the number of its metrics.
#[derive(Debug, Clone, Deserialize)]
pub struct EdgeNode {
    pub birth: String,
    pub death: String,
    pub metrics: usize,
}

/// The numbers of a connection: that of its NBIRTH and NDEATH, and that of the last message.
#[derive(Default)]
pub struct Numbers {
    logins: u64,
    seq: u8,
}

impl Numbers {
    /// Returns the number of this connection's NBIRTH and NDEATH: 0 at the first connection, and 0 again
    /// after 255.
    fn birth_and_death(&self) -> u8 {
        self.logins.saturating_sub(1) as u8
    }

    /// Writes the next sequence number into a payload of NDATA.
    pub fn stamp(&mut self, payload: &mut [u8]) {
        self.seq = self.seq.wrapping_add(1);
        sparkplug::number(payload, self.seq);
    }
}

/// Returns the name of the record for a received certificate, from its topic; None if the topic is not that
/// of a certificate.
pub fn certificate(topic: &str) -> Option<&'static str> {
    let mut levels = topic.split('/');
    if levels.next() != Some("spBv1.0") {
        return None;
    }
    match levels.nth(1) {
        Some("NBIRTH" | "DBIRTH") => Some("birth"),
        Some("NDEATH" | "DDEATH") => Some("death"),
        _ => None,
    }
}

impl Mqtt {
    pub(super) fn edge_node(&self) -> Option<&EdgeNode> {
        self.spec.publish.as_ref()?.sparkplug.as_ref()
    }

    /// Returns topic and payload of the will of the connection that begins now; None if the client is no
    /// Sparkplug edge node.
    pub(super) fn death_of_next(&mut self, now: i64) -> Option<(String, Vec<u8>)> {
        let topic = self.edge_node()?.death.clone();
        self.numbers.logins += 1;
        Some((topic, death(self.numbers.birth_and_death(), now)))
    }

    /// Sends NBIRTH, with which the sequence numbers start again.
    pub(super) fn be_born(&mut self, link: &mut Link, now: i64, out: &mut Vec<u8>) -> Res<()> {
        let Some(node) = self.edge_node() else {
            return Ok(());
        };
        let body = birth(self.numbers.birth_and_death(), node.metrics, now);
        let packet = packets::certificate(self.version, &node.birth, body)?;
        self.numbers.seq = 0;
        self.send(packet, link, now, out)
    }

    /// Sends NDEATH, since a broker discards the will of a client that disconnects.
    pub(super) fn die(&mut self, link: &mut Link, now: i64, out: &mut Vec<u8>) -> Res<()> {
        let Some(node) = self.edge_node() else {
            return Ok(());
        };
        let body = death(self.numbers.birth_and_death(), now);
        let packet = packets::certificate(self.version, &node.death, body)?;
        self.send(packet, link, now, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::{Identity, Payload, Purpose};

    #[test]
    fn topics_tell_certificates_from_data() {
        assert_eq!(certificate("spBv1.0/g/NBIRTH/e"), Some("birth"));
        assert_eq!(certificate("spBv1.0/g/DDEATH/e/d"), Some("death"));
        for other in ["spBv1.0/g/NDATA/e", "spBv1.0/g", "g/NBIRTH/e", "spBv1.0"] {
            assert_eq!(certificate(other), None);
        }
    }

    #[test]
    fn sequence_numbers_wrap_after_255() {
        let who = Identity {
            purpose: Purpose::Other,
            flow: 0,
            seq: 0,
            scheduled_ns: 0,
            reply_bytes: 0,
        };
        let mut payload = Vec::new();
        let kind = sparkplug::Sparkplug;
        kind.write(&who, kind.smallest(), &mut payload);
        let mut numbers = Numbers::default();
        let mut seen = Vec::new();
        for _ in 0..257 {
            numbers.stamp(&mut payload);
            seen.push(numbers.seq);
        }
        assert_eq!((seen[0], seen[254], seen[255], seen[256]), (1, 255, 0, 1));
        numbers.logins = 257;
        assert_eq!(numbers.birth_and_death(), 0);
    }
}
