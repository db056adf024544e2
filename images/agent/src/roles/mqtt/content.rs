//! Fills payloads with any content and length. The message's identity is in a user property of MQTT 5: the
//! header of the payload `bytes` in base64.

use crate::payload::bytes::Bytes;
use crate::payload::{Identity, Payload};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

const PROPERTY: &str = "vnet";

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    Zeros,
    /// A text whose parts `{flow}`, `{seq}` and `{time_ns}` are replaced in each message.
    Template(String),
    Text(String),
}

impl Content {
    /// Returns a payload of exactly `bytes` bytes: pads a shorter text with spaces, and cuts a longer one.
    pub fn fill(&self, who: &Identity, bytes: usize) -> Vec<u8> {
        let (text, padding) = match self {
            Self::Zeros => (String::new(), 0),
            Self::Text(text) => (text.clone(), b' '),
            Self::Template(text) => (filled(text, who), b' '),
        };
        let mut body = text.into_bytes();
        body.resize(bytes, padding);
        body
    }
}

fn filled(text: &str, who: &Identity) -> String {
    text.replace("{flow}", &who.flow.to_string())
        .replace("{seq}", &who.seq.to_string())
        .replace("{time_ns}", &who.scheduled_ns.to_string())
}

/// Returns name and value of the user property that carries an identity.
pub fn property(who: &Identity) -> (&'static str, String) {
    let mut header = Vec::new();
    Bytes.write(who, Bytes.smallest(), &mut header);
    (PROPERTY, STANDARD.encode(header))
}

/// Returns the identity that a user property carries; None for another property or a malformed value.
pub fn identity(name: &str, value: &str) -> Option<Identity> {
    if name != PROPERTY {
        return None;
    }
    Bytes.read(&STANDARD.decode(value).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Purpose;

    const WHO: Identity = Identity {
        purpose: Purpose::Other,
        flow: 7,
        seq: 12,
        scheduled_ns: 3_000_000_001,
        reply_bytes: 0,
    };

    #[test]
    fn payloads_have_their_length_and_content() {
        assert_eq!(Content::Zeros.fill(&WHO, 0), b"");
        assert_eq!(Content::Zeros.fill(&WHO, 3), [0, 0, 0]);
        assert_eq!(Content::Text("ab".to_owned()).fill(&WHO, 2), b"ab");
        let template = Content::Template("{\"n\":{seq},\"f\":{flow},\"t\":{time_ns}}".to_owned());
        assert_eq!(
            template.fill(&WHO, 31),
            b"{\"n\":12,\"f\":7,\"t\":3000000001}  "
        );
    }

    #[test]
    fn an_identity_survives_its_property() {
        let (name, value) = property(&WHO);
        assert_eq!(identity(name, &value), Some(WHO));
        assert_eq!(identity("other", &value), None);
        assert_eq!(identity(name, "no base64"), None);
        assert_eq!(identity(name, "AAAA"), None);
    }
}
