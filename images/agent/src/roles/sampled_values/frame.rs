//! Encodes and decodes frames of sampled values: encodes a template once, and fills in the fields that
//! differ in each frame.

use crate::os::Res;
use crate::roles::iec61850::{self, Destination, ber};
use serde::Deserialize;

pub const ETHERTYPE: u16 = 0x88ba;
const PHASES: f64 = 3.0;
/// Peak of a current of 100 A, in units of 0.001 A.
const PEAK_A: f64 = 141_421.0;
/// Peak of a voltage of 11,547 V (20 kV between conductors), in units of 0.01 V (9-2LE, section 8.2.3).
const PEAK_V: f64 = 1_633_000.0;
/// The most distinct data blocks in one period of the waves; if there are more samples, each uses the nearest
/// block before it.
const MOST_BLOCKS: u32 = 1024;

/// The form of the data set that each ASDU carries in its field `sample`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dataset {
    /// PhsMeas1 of 9-2LE: eight pairs of INT32 and quality.
    Phsmeas,
    /// Only FLOAT32 numbers.
    Float32,
}

/// The fields that identify a stream, the same on both sides.
#[derive(Debug, Clone, Deserialize)]
pub struct Stream {
    pub to: Destination,
    pub sv_id: String,
    pub conf_rev: u32,
    /// Samples a second; smpCnt counts from 0 to rate - 1.
    pub rate: u32,
    /// Number of ASDUs (samples) in each frame.
    pub asdus: u32,
}

impl Stream {
    pub fn check(&self) -> Res<()> {
        let Self { rate, asdus, .. } = *self;
        if rate == 0 || rate > 0x1_0000 || asdus == 0 || !rate.is_multiple_of(asdus) {
            return Err(format!(
                "spec.rate: {rate} samples a second in frames of {asdus}: smpCnt cannot count them; write at most 65536, a multiple of the ASDUs"
            ));
        }
        Ok(())
    }

    pub fn frames_per_s(&self) -> u64 {
        u64::from(self.rate / self.asdus)
    }
}

/// The further fields that the publisher sets.
#[derive(Debug, Clone, Deserialize)]
pub struct Content {
    pub smp_synch: u8,
    pub dataset: Dataset,
    pub signals: u32,
    /// Frequency of the waves, in Hz.
    pub frequency: u32,
}

/// An encoded frame, and the positions of the fields that change.
pub struct Template {
    bytes: Vec<u8>,
    /// For each ASDU: position of smpCnt, and position of the data.
    places: Vec<(usize, usize)>,
    rate: u64,
    frequency: u64,
    /// The data blocks of one period of the waves.
    blocks: Vec<Vec<u8>>,
}

impl Template {
    pub fn new(own: [u8; 6], stream: &Stream, content: &Content) -> Self {
        let blocks = waves(stream.rate, content);
        let mut sequence = Vec::new();
        let mut places = Vec::new();
        for _ in 0..stream.asdus {
            let (asdu, count) = asdu(stream, content.smp_synch, &blocks[0]);
            let end = sequence.len() + tlv_len(asdu.len());
            let start = end - asdu.len();
            ber::push(&mut sequence, 0x30, &asdu);
            places.push((start + count, end - blocks[0].len()));
        }
        let mut pdu = Vec::new();
        ber::push_unsigned(&mut pdu, 0x80, stream.asdus);
        ber::push(&mut pdu, 0xa2, &sequence);
        let mut apdu = Vec::new();
        ber::push(&mut apdu, 0x60, &pdu);
        let bytes = iec61850::frame(own, &stream.to, ETHERTYPE, &apdu);
        let before = bytes.len() - sequence.len();
        Self {
            places: places
                .into_iter()
                .map(|(count, data)| (before + count, before + data))
                .collect(),
            bytes,
            rate: u64::from(stream.rate),
            frequency: u64::from(content.frequency),
            blocks,
        }
    }

    /// Fills in and returns frame `seq` of the stream, from 0; the first sample of frame 0 has smpCnt 0.
    pub fn fill(&mut self, seq: u64) -> &[u8] {
        for (sample, (count, data)) in (seq * self.places.len() as u64..).zip(&self.places) {
            let turn = sample % self.rate;
            self.bytes[*count..count + 2].copy_from_slice(&(turn as u16).to_be_bytes());
            let phase = turn * self.frequency % self.rate * self.blocks.len() as u64 / self.rate;
            let block = &self.blocks[phase as usize];
            self.bytes[*data..data + block.len()].copy_from_slice(block);
        }
        &self.bytes
    }
}

/// Encodes an ASDU; returns it and the position of its smpCnt (IEC 61850-9-2, table 14; sizes of 9-2LE).
fn asdu(stream: &Stream, smp_synch: u8, data: &[u8]) -> (Vec<u8>, usize) {
    let mut out = Vec::new();
    ber::push(&mut out, 0x80, stream.sv_id.as_bytes());
    ber::push(&mut out, 0x82, &[0; 2]);
    let count = out.len() - 2;
    ber::push(&mut out, 0x83, &stream.conf_rev.to_be_bytes());
    ber::push(&mut out, 0x85, &[smp_synch]);
    ber::push(&mut out, 0x87, data);
    (out, count)
}

/// Returns the length of a value of `value` bytes with its tag and length field.
fn tlv_len(value: usize) -> usize {
    value
        + match value {
            0..0x80 => 2,
            0x80..0x100 => 3,
            _ => 4,
        }
}

/// Returns one period of the waves: the data block of each distinct sample.
fn waves(rate: u32, content: &Content) -> Vec<Vec<u8>> {
    let turns = (rate / gcd(rate, content.frequency)).min(MOST_BLOCKS);
    let block = |k: u32| {
        let turn = f64::from(k) / f64::from(turns);
        let sine = |part: u32| ((turn - f64::from(part) / PHASES) * std::f64::consts::TAU).sin();
        match content.dataset {
            Dataset::Phsmeas => (0..8u32)
                .flat_map(|n| {
                    let peak = if n < 4 { PEAK_A } else { PEAK_V };
                    // The fourth value is neutral: zero in a balanced system.
                    let value = if n % 4 == 3 { 0.0 } else { peak * sine(n % 4) };
                    let quality = [0; 4];
                    [(value.round() as i32).to_be_bytes(), quality].concat()
                })
                .collect(),
            Dataset::Float32 => (0..content.signals)
                .flat_map(|n| (sine(n % 3) as f32).to_be_bytes())
                .collect::<Vec<u8>>(),
        }
    };
    (0..turns).map(block).collect()
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The fields of a received frame.
#[derive(Debug, PartialEq, Eq)]
pub struct Seen<'a> {
    pub appid: u16,
    pub sv_id: &'a [u8],
    pub conf_rev: u64,
    /// The smpCnt of the first ASDU; those of the others follow without a gap.
    pub first: u32,
    pub asdus: u32,
}

/// Decodes a frame; None if it is malformed or its ASDUs are not consecutive samples of one stream.
pub fn read(frame: &[u8]) -> Option<Seen<'_>> {
    let (appid, mut apdu) = iec61850::apdu(frame, ETHERTYPE)?;
    let (0x60, mut pdu) = ber::take(&mut apdu)? else {
        return None;
    };
    let (0x80, no_asdu) = ber::take(&mut pdu)? else {
        return None;
    };
    let (mut tag, mut sequence) = ber::take(&mut pdu)?;
    if tag == 0x81 {
        (tag, sequence) = ber::take(&mut pdu)?; // skips the unchecked security field
    }
    if tag != 0xa2 {
        return None;
    }
    let mut seen: Option<Seen> = None;
    while !sequence.is_empty() {
        let (0x30, asdu) = ber::take(&mut sequence)? else {
            return None;
        };
        let (sv_id, count, conf_rev) = fields(asdu)?;
        match &mut seen {
            None => {
                seen = Some(Seen {
                    appid,
                    sv_id,
                    conf_rev,
                    first: count,
                    asdus: 1,
                });
            }
            Some(before) => {
                // A frame never crosses a second, since the rate is a multiple of the ASDUs per frame.
                let next = before.first.checked_add(before.asdus);
                if before.sv_id != sv_id || next != Some(count) || before.conf_rev != conf_rev {
                    return None;
                }
                before.asdus += 1;
            }
        }
    }
    seen.filter(|seen| ber::unsigned(no_asdu) == Some(u64::from(seen.asdus)))
}

/// Returns svID, smpCnt and confRev of an ASDU with samples; skips optional fields. None if one is missing.
fn fields(mut asdu: &[u8]) -> Option<(&[u8], u32, u64)> {
    let (mut sv_id, mut count, mut conf_rev, mut sample) = (None, None, None, None);
    while !asdu.is_empty() {
        let (tag, value) = ber::take(&mut asdu)?;
        match tag {
            0x80 => sv_id = Some(value),
            0x82 => count = ber::unsigned(value),
            0x83 => conf_rev = ber::unsigned(value),
            0x87 => sample = Some(value),
            _ => {}
        }
    }
    sample?;
    Some((sv_id?, u32::try_from(count?).ok()?, conf_rev?))
}
