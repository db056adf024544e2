//! Encodes and decodes Sparkplug B (version 3.0 of the specification, chapter 6): the payload `sparkplug`, which
//! is that of NDATA, and the payloads of the certificates NBIRTH and NDEATH.
//!
//! The message's identity is the field `body`, which Sparkplug leaves to the user. Varints have a fixed number of
//! bytes, as in the payload `protobuf`, so that the length depends only on the number of metrics. The schema of
//! these fields is `sparkplug.proto`.

use super::bytes::Bytes;
use super::signals;
use super::{Identity, Payload};

/// Payload.timestamp: field 1, a varint, in ms of Unix time.
const TIMESTAMP: u8 = 1 << 3;
/// Key of Payload.metrics, field 2, length-delimited.
const METRIC: u8 = 2 << 3 | 2;
/// Key of Payload.seq, field 3, a varint.
const SEQUENCE: u8 = 3 << 3;
/// Key of Payload.body, field 5, length-delimited, and its length.
const BODY: [u8; 2] = [5 << 3 | 2, IDENTITY as u8];
/// Keys of Metric: name, timestamp, datatype, and the values long_value, double_value and boolean_value.
const NAME: u8 = 1 << 3 | 2;
const METRIC_TIMESTAMP: u8 = 3 << 3;
const DATATYPE: u8 = 4 << 3;
const LONG: u8 = 11 << 3;
const DOUBLE: u8 = 13 << 3 | 1;
const BOOLEAN: u8 = 14 << 3;
/// Datatypes of the specification, 6.4.16.
const INT64: u8 = 4;
const DOUBLE_TYPE: u8 = 10;
const BOOLEAN_TYPE: u8 = 11;

/// The length in bytes of a varint with a time in ms: 42 bits, enough until the year 2109.
const MS: usize = 6;
const SEQ: usize = 2;
const IDENTITY: usize = 28;
const SEQ_AT: usize = 1 + MS + 1;
const BODY_AT: usize = SEQ_AT + SEQ + BODY.len();
const HEADER: usize = BODY_AT + IDENTITY;
const NAME_BYTES: usize = "signal/0001".len();
const FIELDS: usize = 2 + NAME_BYTES + 1 + MS + 1 + 8;
const METRIC_BYTES: usize = 2 + FIELDS;
const _: () = assert!(FIELDS < 0x80 && FIELDS + 2 < 0x80);

const REBIRTH: &str = "Node Control/Rebirth";
const BIRTH_AND_DEATH: &str = "bdSeq";

fn varint<const BYTES: usize>(number: u64) -> [u8; BYTES] {
    std::array::from_fn(|place| {
        let more = if place + 1 < BYTES { 0x80 } else { 0 };
        (number >> (7 * place)) as u8 & 0x7f | more
    })
}

fn ms(unix_ns: i64) -> u64 {
    unix_ns.max(0) as u64 / 1_000_000
}

/// Appends one metric: name, time, datatype unless that is None, and the bytes of its value with their key.
fn metric(name: &str, at_ms: u64, datatype: Option<u8>, value: &[u8], out: &mut Vec<u8>) {
    let mut fields = vec![NAME, name.len() as u8];
    fields.extend_from_slice(name.as_bytes());
    fields.push(METRIC_TIMESTAMP);
    fields.extend_from_slice(&varint::<MS>(at_ms));
    fields.extend(datatype.into_iter().flat_map(|one| [DATATYPE, one]));
    fields.extend_from_slice(value);
    out.extend_from_slice(&[METRIC, fields.len() as u8]);
    out.append(&mut fields);
}

/// Appends the metrics signal/0001 and so on, with the values of message `seq`.
fn metrics(count: usize, seq: u64, at_ms: u64, datatype: Option<u8>, out: &mut Vec<u8>) {
    for index in 0..count {
        let mut value = vec![DOUBLE];
        value.extend_from_slice(&signals::value(seq, index).to_le_bytes());
        metric(
            &format!("signal/{:04}", index + 1),
            at_ms,
            datatype,
            &value,
            out,
        );
    }
}

fn birth_and_death(number: u8, at_ms: u64, out: &mut Vec<u8>) {
    let mut value = vec![LONG];
    value.extend_from_slice(&varint::<SEQ>(number.into()));
    metric(BIRTH_AND_DEATH, at_ms, Some(INT64), &value, out);
}

fn timestamp(at_ms: u64, out: &mut Vec<u8>) {
    out.push(TIMESTAMP);
    out.extend_from_slice(&varint::<MS>(at_ms));
}

fn sequence(seq: u8, out: &mut Vec<u8>) {
    out.push(SEQUENCE);
    out.extend_from_slice(&varint::<SEQ>(seq.into()));
}

/// Returns the payload of NBIRTH at this Unix time: sequence number 0, the number that NBIRTH and NDEATH
/// share, the metric that requests a rebirth, and as many metrics as NDATA has.
pub fn birth(number: u8, count: usize, now_ns: i64) -> Vec<u8> {
    let (at_ms, mut out) = (ms(now_ns), Vec::new());
    timestamp(at_ms, &mut out);
    sequence(0, &mut out);
    birth_and_death(number, at_ms, &mut out);
    metric(REBIRTH, at_ms, Some(BOOLEAN_TYPE), &[BOOLEAN, 0], &mut out);
    metrics(count, 0, at_ms, Some(DOUBLE_TYPE), &mut out);
    out
}

/// Returns the payload of NDEATH, which has no sequence number. It is the will of the connection whose NBIRTH
/// has the same `number`.
pub fn death(number: u8, now_ns: i64) -> Vec<u8> {
    let (at_ms, mut out) = (ms(now_ns), Vec::new());
    timestamp(at_ms, &mut out);
    birth_and_death(number, at_ms, &mut out);
    out
}

/// Writes the sequence number of the connection into a payload of NDATA.
pub fn number(payload: &mut [u8], seq: u8) {
    payload[SEQ_AT..SEQ_AT + SEQ].copy_from_slice(&varint::<SEQ>(seq.into()));
}

pub struct Sparkplug;

impl Payload for Sparkplug {
    fn smallest(&self) -> usize {
        HEADER + METRIC_BYTES
    }

    fn step(&self) -> usize {
        METRIC_BYTES
    }

    fn largest(&self) -> usize {
        self.smallest() + (signals::MOST - 1) * self.step()
    }

    fn write(&self, identity: &Identity, bytes: usize, out: &mut Vec<u8>) {
        let at_ms = ms(identity.scheduled_ns);
        out.reserve(bytes);
        timestamp(at_ms, out);
        sequence(0, out);
        out.extend_from_slice(&BODY);
        Bytes.write(identity, IDENTITY, out);
        metrics(self.count(bytes), identity.seq, at_ms, None, out);
    }

    fn read(&self, payload: &[u8]) -> Option<Identity> {
        let header: &[u8; HEADER] = payload.first_chunk()?;
        let ours = header[0] == TIMESTAMP
            && header[SEQ_AT - 1] == SEQUENCE
            && header[SEQ_AT + SEQ..].starts_with(&BODY);
        if !ours {
            return None;
        }
        Bytes.read(&header[BODY_AT..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Purpose;
    use srad_types::payload::metric::Value;
    use srad_types::payload::{DataType, Message, Payload as Foreign};

    const NOW_NS: i64 = 1_767_225_600_123_456_789;
    const NOW_MS: Option<u64> = Some(1_767_225_600_123);

    fn decoded(bytes: &[u8]) -> Foreign {
        Foreign::decode(bytes).expect("a payload of Sparkplug B")
    }

    #[test]
    fn a_foreign_decoder_reads_data() {
        let who = Identity {
            purpose: Purpose::Other,
            flow: 7,
            seq: 300,
            scheduled_ns: NOW_NS,
            reply_bytes: 0,
        };
        let bytes = Sparkplug.smallest() + 2 * Sparkplug.step();
        let mut written = Vec::new();
        Sparkplug.write(&who, bytes, &mut written);
        number(&mut written, 255);
        assert_eq!(written.len(), bytes);
        let found = decoded(&written);
        assert_eq!((found.timestamp, found.seq), (NOW_MS, Some(255)));
        assert_eq!(Bytes.read(&found.body.unwrap()), Some(who));
        assert_eq!(found.metrics.len(), 3);
        for (index, one) in found.metrics.iter().enumerate() {
            assert_eq!(
                one.name.as_deref(),
                Some(&*format!("signal/000{}", index + 1))
            );
            assert_eq!((one.timestamp, one.datatype), (NOW_MS, None));
            assert_eq!(
                one.value,
                Some(Value::DoubleValue(signals::value(300, index)))
            );
        }
    }

    #[test]
    fn a_foreign_decoder_reads_birth_and_death() {
        let (birth, death) = (birth(200, 2, NOW_NS), death(200, NOW_NS));
        let (birth, death) = (decoded(&birth), decoded(&death));
        assert_eq!((birth.timestamp, birth.seq), (NOW_MS, Some(0)));
        assert_eq!((death.timestamp, death.seq), (NOW_MS, None));
        for payload in [&birth, &death] {
            let first = &payload.metrics[0];
            assert_eq!(first.name.as_deref(), Some("bdSeq"));
            assert_eq!(first.datatype, Some(DataType::Int64 as u32));
            assert_eq!(first.value, Some(Value::LongValue(200)));
        }
        assert_eq!(death.metrics.len(), 1);
        let names: Vec<_> = birth.metrics[1..]
            .iter()
            .map(|one| one.name.clone().unwrap())
            .collect();
        assert_eq!(
            names,
            ["Node Control/Rebirth", "signal/0001", "signal/0002"]
        );
        assert_eq!(birth.metrics[1].value, Some(Value::BooleanValue(false)));
        assert_eq!(birth.metrics[3].datatype, Some(DataType::Double as u32));
    }
}
