//! Encodes and decodes the payload `metering-xml`: a metering update in the style of ZigBee Smart Energy,
//! with the message's identity, and exactly as long as requested.
//!
//! The fields flow, seq and scheduled_ns have fixed positions and widths in the text; purpose and reply
//! length are not in it.

use super::{Identity, Payload, Purpose};
use std::io::Write;

const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<MirrorMeterReading xmlns=\"http://zigbee.org/sep\">\n<mRID>";
const SEQ: &str = "</mRID>\n<Reading seq=\"";
const TIME: &str = "\" scheduled=\"";
const BODY: &str = "\">\n<ReadingType><commodity>1</commodity><flowDirection>1</flowDirection><intervalLength>300</intervalLength><kind>12</kind><phase>0</phase><powerOfTenMultiplier>0</powerOfTenMultiplier><uom>72</uom></ReadingType>\n<timePeriod><duration>300</duration></timePeriod>\n<value>";
const TAIL: &str = "</value>\n</Reading>\n<description>";
const END: &str = "</description>\n</MirrorMeterReading>\n";

const FLOW_WIDTH: usize = 40;
const SEQ_WIDTH: usize = 10;
const TIME_WIDTH: usize = 19;
const VALUE_WIDTH: usize = 8;

const FLOW_AT: usize = HEAD.len();
const SEQ_AT: usize = FLOW_AT + FLOW_WIDTH + SEQ.len();
const TIME_AT: usize = SEQ_AT + SEQ_WIDTH + TIME.len();

const SMALLEST: usize = TIME_AT + TIME_WIDTH + BODY.len() + VALUE_WIDTH + TAIL.len() + END.len();

pub struct MeteringXml;

impl Payload for MeteringXml {
    fn smallest(&self) -> usize {
        SMALLEST
    }

    fn write(&self, identity: &Identity, bytes: usize, out: &mut Vec<u8>) {
        let Identity {
            flow,
            seq,
            scheduled_ns,
            ..
        } = identity;
        let value = seq.wrapping_mul(7919) % 100_000_000;
        let end = out.len() + bytes;
        out.reserve(bytes);
        // Writing to memory cannot fail.
        write!(
            out,
            "{HEAD}{flow:<FLOW_WIDTH$}{SEQ}{seq:0SEQ_WIDTH$}{TIME}{scheduled_ns:0TIME_WIDTH$}{BODY}{value:0VALUE_WIDTH$}{TAIL}"
        )
        .expect("memory");
        out.resize(end - END.len(), b'.');
        out.extend_from_slice(END.as_bytes());
    }

    fn read(&self, payload: &[u8]) -> Option<Identity> {
        let field =
            |at: usize, width: usize| std::str::from_utf8(payload.get(at..at + width)?).ok();
        if field(0, FLOW_AT)? != HEAD {
            return None;
        }
        Some(Identity {
            purpose: Purpose::Other,
            flow: field(FLOW_AT, FLOW_WIDTH)?.trim_end().parse().ok()?,
            seq: field(SEQ_AT, SEQ_WIDTH)?.parse().ok()?,
            scheduled_ns: field(TIME_AT, TIME_WIDTH)?.parse().ok()?,
            reply_bytes: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_size_fits() {
        const { assert!(SMALLEST <= 717) };
        let identity = Identity {
            purpose: Purpose::Other,
            flow: 12,
            seq: 1,
            scheduled_ns: 1,
            reply_bytes: 0,
        };
        let mut out = Vec::new();
        MeteringXml.write(&identity, 717, &mut out);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.len(), 717);
        assert!(text.starts_with(HEAD) && text.ends_with(END), "{text}");
    }
}
