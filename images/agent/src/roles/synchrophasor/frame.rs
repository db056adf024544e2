//! Encodes and decodes frames of IEEE C37.118.2: sync word, size, stream, time, content and checksum.
//!
//! Measurements are floating-point and phasors polar. The last two digital words of a data frame hold its
//! number, so that a receiver needs no state.

use crate::os::Res;

const SYNC: u8 = 0xaa;
/// The standard's version (2011), in the low half of the second byte.
const VERSION: u8 = 2;
pub const COMMON: usize = 14;
const CHECKSUM: usize = 2;
/// The number of units of the field FRACSEC in a second.
const TIME_BASE: u32 = 1_000_000;
const NAME: usize = 16;
/// The field FORMAT: phasors are polar; phasors, analogs and frequency are floating-point.
const FORMAT: u16 = 0b1111;
const DIGITAL_WORDS: u16 = 2;
/// Bits of a digital word; the configuration has a name for each.
const BITS: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Data,
    Header,
    Configuration1,
    Configuration2,
    Command,
    Configuration3,
}

const KINDS: [Kind; 6] = [
    Kind::Data,
    Kind::Header,
    Kind::Configuration1,
    Kind::Configuration2,
    Kind::Command,
    Kind::Configuration3,
];

/// The commands to a station (table 15).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Command {
    Off = 1,
    On = 2,
    SendHeader = 3,
    SendConfiguration1 = 4,
    SendConfiguration2 = 5,
}

/// A received frame.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    pub kind: Kind,
    pub idcode: u16,
    pub content: &'a [u8],
}

/// The settings of a station (PMU): its name and the number of its measurements.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
pub struct Station {
    pub name: String,
    pub idcode: u16,
    pub phasors: u16,
    pub analogs: u16,
    /// Nominal frequency of the grid, 50 or 60 Hz.
    pub nominal_hz: u16,
}

/// Computes the CRC-CCITT of annex B (x^16 + x^12 + x^5 + 1, from all ones); the result is 0 for a frame that
/// includes its valid checksum.
fn crc(bytes: &[u8]) -> u16 {
    bytes.iter().fold(u16::MAX, |crc, byte| {
        let mut mixed = crc >> 8 ^ u16::from(*byte);
        mixed ^= mixed >> 4;
        crc << 8 ^ mixed << 12 ^ mixed << 5 ^ mixed
    })
}

/// Appends a frame; the function `content` appends its content. `at_ns` is Unix time in nanoseconds, which
/// the frame holds in whole microseconds.
fn frame(
    kind: Kind,
    idcode: u16,
    at_ns: i64,
    out: &mut Vec<u8>,
    content: impl FnOnce(&mut Vec<u8>),
) {
    let start = out.len();
    let (soc, rest) = (at_ns / 1_000_000_000, at_ns % 1_000_000_000);
    out.extend([SYNC, (kind as u8) << 4 | VERSION, 0, 0]);
    out.extend(idcode.to_be_bytes());
    out.extend((soc as u32).to_be_bytes());
    out.extend(((rest / 1000) as u32).to_be_bytes()); // time quality 0: locked to the lab's clock
    content(out);
    let size = (out.len() - start + CHECKSUM) as u16;
    out[start + 2..start + 4].copy_from_slice(&size.to_be_bytes());
    let check = crc(&out[start..]);
    out.extend(check.to_be_bytes());
}

impl Station {
    /// Returns the length of a data frame in bytes.
    pub fn data_bytes(&self) -> usize {
        let measured = 8 * usize::from(self.phasors) + 8 + 4 * usize::from(self.analogs);
        COMMON + 2 + measured + 2 * usize::from(DIGITAL_WORDS) + CHECKSUM
    }

    /// Appends a data frame with number `seq` (32 bits) and one measurement at `at_ns`: phasors of three
    /// phases with a constant magnitude. Their angles and the frequency swing with a period of four seconds.
    pub fn data(&self, seq: u64, at_ns: i64, out: &mut Vec<u8>) {
        let seconds = (at_ns % 4_000_000_000) as f64 / 1e9; // one swing
        let swing = (seconds * std::f64::consts::FRAC_PI_2).sin();
        frame(Kind::Data, self.idcode, at_ns, out, |out| {
            out.extend(0u16.to_be_bytes()); // STAT: valid, synchronised, sorted by time
            for phasor in 0..self.phasors {
                let angle = swing / 10.0 - f64::from(phasor % 3) * std::f64::consts::TAU / 3.0;
                let angle = if angle < -std::f64::consts::PI {
                    angle + std::f64::consts::TAU
                } else {
                    angle
                };
                out.extend(66_395.3f32.to_be_bytes()); // phase voltage of 115 kV between phases
                out.extend((angle as f32).to_be_bytes());
            }
            out.extend(((f64::from(self.nominal_hz) + swing / 50.0) as f32).to_be_bytes());
            out.extend(0f32.to_be_bytes()); // ROCOF
            for analog in 0..self.analogs {
                out.extend((100.0 + f32::from(analog)).to_be_bytes());
            }
            out.extend((seq as u32).to_be_bytes());
        });
    }

    /// Appends a configuration frame: content and rate of data frames. CFG-1 states the capability, CFG-2 the
    /// present setting; both are equal here. `per_s`: data frames a second, negative for seconds per frame.
    pub fn configuration(&self, kind: Kind, per_s: i16, at_ns: i64, out: &mut Vec<u8>) {
        frame(kind, self.idcode, at_ns, out, |out| {
            out.extend(TIME_BASE.to_be_bytes());
            out.extend(1u16.to_be_bytes()); // one station
            named(&self.name, out);
            out.extend(self.idcode.to_be_bytes());
            out.extend(FORMAT.to_be_bytes());
            for count in [self.phasors, self.analogs, DIGITAL_WORDS] {
                out.extend(count.to_be_bytes());
            }
            for phasor in 0..self.phasors {
                named(
                    &format!(
                        "V{}{}",
                        ["A", "B", "C"][usize::from(phasor % 3)],
                        phasor / 3 + 1
                    ),
                    out,
                );
            }
            for analog in 0..self.analogs {
                named(&format!("ANALOG{}", analog + 1), out);
            }
            for bit in 0..BITS * usize::from(DIGITAL_WORDS) {
                named(&format!("NUMBER{bit}"), out);
            }
            for _ in 0..self.phasors {
                out.extend(0u32.to_be_bytes()); // a voltage; no factor, being floating-point
            }
            for _ in 0..self.analogs {
                out.extend(0u32.to_be_bytes());
            }
            for _ in 0..DIGITAL_WORDS {
                out.extend([0, 0, 0xff, 0xff]); // normally 0; all bits valid
            }
            out.extend(u16::from(self.nominal_hz == 50).to_be_bytes());
            out.extend(0u16.to_be_bytes()); // configuration changes
            out.extend(per_s.to_be_bytes());
        });
    }

    pub fn header(&self, at_ns: i64, out: &mut Vec<u8>) {
        frame(Kind::Header, self.idcode, at_ns, out, |out| {
            out.extend(format!("{}, a station of vNET", self.name).as_bytes());
        });
    }
}

pub fn command(idcode: u16, word: Command, at_ns: i64, out: &mut Vec<u8>) {
    frame(Kind::Command, idcode, at_ns, out, |out| {
        out.extend((word as u16).to_be_bytes())
    });
}

/// Appends a name, cut or padded with spaces to the length of the field.
fn named(name: &str, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend(name.bytes().filter(u8::is_ascii).take(NAME));
    out.resize(start + NAME, b' ');
}

/// Returns the size of the frame that begins with `bytes`; None while too few bytes have arrived. An error if
/// the bytes do not begin a frame.
pub fn size(bytes: &[u8]) -> Res<Option<usize>> {
    let Some(&[sync, kind, high, low]) = bytes.first_chunk::<4>() else {
        return Ok(None);
    };
    let size = usize::from(u16::from_be_bytes([high, low]));
    if sync != SYNC || usize::from(kind >> 4) >= KINDS.len() || size < COMMON + CHECKSUM {
        return Err("invalid frame of C37.118".to_owned());
    }
    Ok(Some(size))
}

/// Decodes a whole frame; an error if it is incomplete or its checksum wrong.
pub fn read(bytes: &[u8]) -> Res<Frame<'_>> {
    let whole = size(bytes)?.filter(|size| *size == bytes.len());
    if whole.is_none() {
        return Err(format!("{} bytes are not a whole frame", bytes.len()));
    }
    if crc(bytes) != 0 {
        return Err("a frame's checksum is wrong".to_owned());
    }
    Ok(Frame {
        kind: KINDS[usize::from(bytes[1] >> 4)],
        idcode: u16::from_be_bytes([bytes[4], bytes[5]]),
        content: &bytes[COMMON..bytes.len() - CHECKSUM],
    })
}

/// Returns the command in a frame's content; None if it is unknown or missing.
pub fn command_of(content: &[u8]) -> Option<Command> {
    let word = u16::from_be_bytes(*content.first_chunk()?);
    [
        Command::Off,
        Command::On,
        Command::SendHeader,
        Command::SendConfiguration1,
        Command::SendConfiguration2,
    ]
    .into_iter()
    .find(|known| *known as u16 == word)
}

/// Returns the message number in the content of a data frame that vNET has sent; None if it is too short.
pub fn number(content: &[u8]) -> Option<u32> {
    content.last_chunk().map(|last| u32::from_be_bytes(*last))
}

/// Returns the length of a data frame's content in bytes, computed from the content of a configuration
/// frame; None if that is malformed, or is not of one station with the format `FORMAT`.
pub fn announced(configuration: &[u8]) -> Option<usize> {
    let word = |at: usize| Some(u16::from_be_bytes(*configuration.get(at..)?.first_chunk()?));
    let counts = 4 + 2 + NAME + 2 + 2; // TIME_BASE, NUM_PMU, STN, IDCODE, FORMAT
    if word(4)? != 1 || word(counts - 2)? != FORMAT {
        return None;
    }
    let (phasors, analogs, digitals) = (word(counts)?, word(counts + 2)?, word(counts + 4)?);
    let names = NAME * (usize::from(phasors) + usize::from(analogs) + BITS * usize::from(digitals));
    let units = 4 * (usize::from(phasors) + usize::from(analogs) + usize::from(digitals));
    let whole = counts + 6 + names + units + 2 + 2 + 2;
    (configuration.len() == whole).then(|| {
        2 + 8 * usize::from(phasors) + 8 + 4 * usize::from(analogs) + 2 * usize::from(digitals)
    })
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use proptest::prelude::*;

    pub const STATION: fn(u16, u16) -> Station = |phasors, analogs| Station {
        name: "bay7".to_owned(),
        idcode: 7734,
        phasors,
        analogs,
        nominal_hz: 50,
    };

    /// Encodes the command of annex D: turn on data transmission, to IDCODE 7734 at 1,149,591,600.77 s.
    #[test]
    fn the_command_is_the_published_one() {
        let mut out = Vec::new();
        command(7734, Command::On, 1_149_591_600_770_000_000, &mut out);
        // Annex D has time quality 15 (0x0F) in FRACSEC; this code writes 0 (locked). The rest up to the
        // checksum is equal.
        assert_eq!(out[..4], [0xaa, 0x42, 0, 18][..]);
        assert_eq!(out[4..10], [0x1e, 0x36, 0x44, 0x85, 0x60, 0x30][..]);
        assert_eq!(out[10..16], [0, 0x0b, 0xbf, 0xd0, 0, 2][..]);
        let published = [
            0xaa, 0x41, 0, 0x12, 0x1e, 0x36, 0x44, 0x85, 0x60, 0x30, 0x0f, 0x0b, 0xbf, 0xd0, 0, 2,
            0xce, 0,
        ];
        let frame = read(&published).unwrap();
        assert_eq!((frame.kind, frame.idcode), (Kind::Command, 7734));
        assert_eq!(command_of(frame.content), Some(Command::On));
    }

    #[test]
    fn a_configuration_announces_its_data() {
        let station = STATION(6, 2);
        let (mut configuration, mut data) = (Vec::new(), Vec::new());
        station.configuration(Kind::Configuration2, 50, 0, &mut configuration);
        station.data(70_000, 1_500_000_000, &mut data);
        assert_eq!(data.len(), station.data_bytes());
        let (configuration, data) = (read(&configuration).unwrap(), read(&data).unwrap());
        assert_eq!(announced(configuration.content), Some(data.content.len()));
        assert_eq!(number(data.content), Some(70_000));
    }

    proptest! {
        #[test]
        fn frames_round_trip_and_corrupted_ones_are_refused(
            phasors in 0u16..20, analogs in 0u16..8, seq: u32, at in 0i64..4_000_000_000_000_000_000, bit: prop::sample::Index,
        ) {
            let station = STATION(phasors, analogs);
            let mut out = Vec::new();
            station.data(u64::from(seq), at, &mut out);
            prop_assert_eq!(size(&out), Ok(Some(out.len())));
            prop_assert_eq!(number(read(&out).unwrap().content), Some(seq));
            let bit = bit.index(out.len() * 8);
            out[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(read(&out).is_err());
        }

        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            let _ = size(&bytes);
            if let Ok(frame) = read(&bytes) {
                let _ = (announced(frame.content), command_of(frame.content), number(frame.content));
            }
            let _ = announced(&bytes);
        }
    }
}
