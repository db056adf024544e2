//! The payload `metering-xml`: a ZigBee Smart Energy style metering update of an exact size that carries its own identity.
//!
//! publisher, seq and scheduled_ns stand at fixed places with fixed widths, so the receiver needs no other state.

use crate::os::Res;

const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<MirrorMeterReading xmlns=\"http://zigbee.org/sep\">\n<mRID>";
const SEQ: &str = "</mRID>\n<Reading seq=\"";
const TIME: &str = "\" scheduled=\"";
const BODY: &str = "\">\n<ReadingType><commodity>1</commodity><flowDirection>1</flowDirection><intervalLength>300</intervalLength><kind>12</kind><phase>0</phase><powerOfTenMultiplier>0</powerOfTenMultiplier><uom>72</uom></ReadingType>\n<timePeriod><duration>300</duration></timePeriod>\n<value>";
const TAIL: &str = "</value>\n</Reading>\n<description>";
const END: &str = "</description>\n</MirrorMeterReading>\n";

const NAME_WIDTH: usize = 40;
const SEQ_WIDTH: usize = 10;
const TIME_WIDTH: usize = 19;
const VALUE_WIDTH: usize = 8;

const NAME_AT: usize = HEAD.len();
const SEQ_AT: usize = NAME_AT + NAME_WIDTH + SEQ.len();
const TIME_AT: usize = SEQ_AT + SEQ_WIDTH + TIME.len();

/// The smallest payload: everything but padding.
pub const SMALLEST: usize =
    TIME_AT + TIME_WIDTH + BODY.len() + VALUE_WIDTH + TAIL.len() + END.len();

/// Who sent a message, and when it was due.
#[derive(Debug, PartialEq, Eq)]
pub struct Identity {
    pub publisher: String,
    pub seq: u64,
    pub scheduled_ns: i64,
}

/// Checks what can be checked before the first message.
pub fn validate(generator: &str, publisher: &str, bytes: usize) -> Res<()> {
    if generator != "metering-xml" {
        return Err(format!(
            "payload: \"{generator}\" is not known; write \"metering-xml\""
        ));
    }
    if bytes < SMALLEST {
        return Err(format!(
            "payload_bytes: {bytes} is less than the {SMALLEST} that metering-xml needs; ask for more"
        ));
    }
    if publisher.is_empty() || publisher.len() > NAME_WIDTH || publisher.contains([' ', '<', '&']) {
        return Err(format!(
            "client_id: \"{publisher}\" must have 1 to {NAME_WIDTH} bytes without blanks, < and &, to stand in the payload; choose another"
        ));
    }
    Ok(())
}

/// Exactly `bytes` bytes (at least `SMALLEST`).
pub fn write(publisher: &str, seq: u64, scheduled_ns: i64, bytes: usize) -> Vec<u8> {
    let value = seq.wrapping_mul(7919) % 100_000_000;
    let mut text = String::with_capacity(bytes);
    text += HEAD;
    text +=
        &format!("{publisher:<NAME_WIDTH$}{SEQ}{seq:0SEQ_WIDTH$}{TIME}{scheduled_ns:0TIME_WIDTH$}");
    text += &format!("{BODY}{value:0VALUE_WIDTH$}{TAIL}");
    while text.len() + END.len() < bytes {
        text.push('.');
    }
    text += END;
    text.into_bytes()
}

/// Reads the identity; nothing if the payload is not one of ours.
pub fn read(payload: &[u8]) -> Option<Identity> {
    let field = |at: usize, width: usize| std::str::from_utf8(payload.get(at..at + width)?).ok();
    if field(0, NAME_AT)? != HEAD {
        return None;
    }
    Some(Identity {
        publisher: field(NAME_AT, NAME_WIDTH)?.trim_end().to_owned(),
        seq: field(SEQ_AT, SEQ_WIDTH)?.parse().ok()?,
        scheduled_ns: field(TIME_AT, TIME_WIDTH)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_papers_size_fits() {
        const { assert!(SMALLEST <= 717) };
        assert_eq!(write("client1", 1, 1, 717).len(), 717);
    }

    #[test]
    fn refusals_name_the_rule() {
        assert!(
            validate("metering-xml", "c1", SMALLEST - 1)
                .unwrap_err()
                .contains(&SMALLEST.to_string())
        );
        assert!(
            validate("json", "c1", 717)
                .unwrap_err()
                .contains("metering-xml")
        );
        assert!(
            validate("metering-xml", "a b", 717)
                .unwrap_err()
                .contains("client_id")
        );
        assert!(validate("metering-xml", &"x".repeat(41), 717).is_err());
        assert!(validate("metering-xml", &"x".repeat(40), SMALLEST).is_ok());
    }

    #[test]
    fn other_payloads_are_not_ours() {
        assert_eq!(read(b"hello"), None);
        assert_eq!(read(&[b'x'; 717]), None);
        let cut = &write("c1", 1, 2, 717)[..120];
        assert_eq!(read(cut), None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            publisher in "[a-z][a-z0-9.-]{0,39}", seq in 0u64..10_000_000_000, at in 0i64..i64::MAX, more in 0usize..3000,
        ) {
            let bytes = write(&publisher, seq, at, SMALLEST + more);
            prop_assert_eq!(bytes.len(), SMALLEST + more);
            prop_assert_eq!(read(&bytes), Some(Identity { publisher, seq, scheduled_ns: at }));
        }
    }
}
