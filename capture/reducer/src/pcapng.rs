//! Parses those blocks of a pcapng file (draft-ietf-opsawg-pcapng) that describe sections, interfaces and
//! packets; skips all other blocks.

use crate::frame::{Frame, MAX_RECORD};
use crate::window::word;

/// The type of a section header block, the same in both byte orders.
pub const MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// Length of the smallest block: its type, its length, and its length again.
pub const LEAST: usize = 12;
const BYTE_ORDER: [u8; 4] = [0x1a, 0x2b, 0x3c, 0x4d];
/// Length of type and length, which precede a block's body.
const HEAD: usize = 8;
/// The most interfaces of a section; a file that declares more is damaged.
const MOST_INTERFACES: usize = 1 << 16;

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
/// The type of the obsolete packet block, which old files contain.
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;

/// A network interface as an interface description block declares it.
#[derive(Clone, Copy, Debug)]
pub struct Interface {
    pub link_type: u32,
    pub snaplen: u32,
    resolution: Resolution,
    offset_s: i64,
}

/// The unit of an interface's times: 10^-n or 2^-n seconds.
#[derive(Clone, Copy, Debug)]
enum Resolution {
    Decimal(u32),
    Binary(u32),
}

impl Resolution {
    fn parse(value: u8) -> Self {
        let exponent = u32::from(value & 0x7f);
        if value & 0x80 == 0 {
            Self::Decimal(exponent)
        } else {
            Self::Binary(exponent)
        }
    }

    /// Returns true if the unit is finer than a microsecond.
    fn fine(self) -> bool {
        match self {
            Self::Decimal(exponent) => exponent > 6,
            Self::Binary(exponent) => exponent >= 20,
        }
    }

    #[inline]
    fn nanoseconds(self, units: u64) -> i128 {
        let units = i128::from(units);
        match self {
            Self::Decimal(exponent @ 0..=9) => units * 10i128.pow(9 - exponent),
            Self::Decimal(exponent) => units / 10i128.saturating_pow(exponent - 9),
            Self::Binary(exponent) => (units * 1_000_000_000) >> exponent,
        }
    }
}

impl Interface {
    /// Converts a time in this interface's unit to Unix nanoseconds, adding the interface's offset; limits
    /// the result to 64 bits.
    #[inline]
    fn time_ns(&self, units: u64) -> i64 {
        let offset = i128::from(self.offset_s) * 1_000_000_000;
        let time = self.resolution.nanoseconds(units) + offset;
        time.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }
}

/// The present section of the file: its byte order and its interfaces.
#[derive(Debug, Default)]
pub struct Section {
    swapped: bool,
    interfaces: Vec<Interface>,
    /// The first interface of the file, over all sections.
    first: Option<Interface>,
    coarse: bool,
}

impl Section {
    /// Returns the file's first interface; None before its block.
    pub fn first(&self) -> Option<Interface> {
        self.first
    }

    /// Returns true if all interfaces so far have times finer than microseconds; false before the first one.
    pub fn nanosecond(&self) -> bool {
        self.first.is_some() && !self.coarse
    }

    fn half(&self, bytes: &[u8], at: usize) -> u16 {
        let raw = [bytes[at], bytes[at + 1]];
        if self.swapped {
            u16::from_be_bytes(raw)
        } else {
            u16::from_le_bytes(raw)
        }
    }

    /// Returns the size of the block that begins with `head` (`LEAST` bytes); a section header sets the byte
    /// order. Returns an error for a damaged block.
    pub fn size(&mut self, head: &[u8]) -> Result<usize, String> {
        if head.starts_with(&MAGIC) {
            self.swapped = match &head[HEAD..LEAST] {
                mark if *mark == BYTE_ORDER => true,
                mark if mark.iter().eq(BYTE_ORDER.iter().rev()) => false,
                _ => return Err("has a section without byte order, so it is damaged".into()),
            };
        }
        let size = word(head, 4, self.swapped) as usize;
        if !(LEAST..=MAX_RECORD).contains(&size) || !size.is_multiple_of(4) {
            return Err(format!(
                "claims {size} bytes in one block, so it is damaged"
            ));
        }
        Ok(size)
    }

    /// Parses a whole block; returns the frame of a packet block, None for other blocks, and an error for a
    /// damaged block.
    pub fn block(&mut self, block: &[u8]) -> Result<Option<Frame>, String> {
        let size = block.len();
        let again = word(block, size - 4, self.swapped) as usize;
        if again != size {
            return Err(format!(
                "has a block of {size} bytes that ends as one of {again}, so it is damaged"
            ));
        }
        let kind = word(block, 0, self.swapped);
        let least = match kind {
            ENHANCED_PACKET | PACKET => 20,
            SECTION => 16,
            INTERFACE => 8,
            SIMPLE_PACKET => 4,
            _ => return Ok(None),
        };
        if size < LEAST + least {
            return Err(format!(
                "has a block of type {kind} of {size} bytes, so it is damaged"
            ));
        }
        match kind {
            SECTION => self.section(block).map(|()| None),
            INTERFACE => self.interface(block).map(|()| None),
            SIMPLE_PACKET => self.simple(block).map(Some),
            _ => self.packet(block, kind).map(Some),
        }
    }

    fn section(&mut self, block: &[u8]) -> Result<(), String> {
        self.interfaces.clear();
        match self.half(block, LEAST) {
            1 => Ok(()),
            major => Err(format!("has a section of unknown pcapng version {major}")),
        }
    }

    fn interface(&mut self, block: &[u8]) -> Result<(), String> {
        let mut interface = Interface {
            link_type: self.half(block, HEAD).into(),
            snaplen: word(block, HEAD + 4, self.swapped),
            resolution: Resolution::Decimal(6),
            offset_s: 0,
        };
        let mut options = &block[HEAD + 8..block.len() - 4];
        while options.len() >= 4 {
            let (code, length) = (self.half(options, 0), usize::from(self.half(options, 2)));
            let Some(value) = options.get(4..4 + length) else {
                return Err("has an interface whose options exceed it, so it is damaged".into());
            };
            match (code, value) {
                (IF_TSRESOL, &[resolution]) => interface.resolution = Resolution::parse(resolution),
                (IF_TSOFFSET, &[_, _, _, _, _, _, _, _]) => {
                    interface.offset_s = self.double(value) as i64;
                }
                _ => {}
            }
            options = options
                .get(4 + length.next_multiple_of(4)..)
                .unwrap_or_default();
        }
        if self.interfaces.len() == MOST_INTERFACES {
            return Err(format!(
                "declares more than {MOST_INTERFACES} interfaces, so it is damaged"
            ));
        }
        self.coarse |= !interface.resolution.fine();
        self.first.get_or_insert(interface);
        self.interfaces.push(interface);
        Ok(())
    }

    fn double(&self, bytes: &[u8]) -> u64 {
        let (low, high) = if self.swapped { (4, 0) } else { (0, 4) };
        let word = |at: usize| u64::from(word(bytes, at, self.swapped));
        word(high) << 32 | word(low)
    }

    fn declared(&self, number: usize) -> Result<&Interface, String> {
        self.interfaces.get(number).ok_or_else(|| {
            let count = self.interfaces.len();
            format!(
                "has a packet of interface {number} where {count} are declared, so it is damaged"
            )
        })
    }

    /// Parses an enhanced or obsolete packet block; the two differ only in the width of the interface number.
    #[inline]
    fn packet(&self, block: &[u8], kind: u32) -> Result<Frame, String> {
        let number = match kind {
            PACKET => self.half(block, HEAD).into(),
            _ => word(block, HEAD, self.swapped) as usize,
        };
        let interface = self.declared(number)?;
        let word = |at: usize| word(block, HEAD + at, self.swapped);
        let units = u64::from(word(4)) << 32 | u64::from(word(8));
        let captured = word(12) as usize;
        frame(
            interface,
            interface.time_ns(units),
            HEAD + 20,
            captured,
            word(16),
            block.len(),
        )
    }

    /// Parses a simple packet block. It has no captured length and no time, so the frame's time is 0.
    fn simple(&self, block: &[u8]) -> Result<Frame, String> {
        let interface = self.declared(0)?;
        let wire_len = word(block, HEAD, self.swapped);
        let limit = match interface.snaplen {
            0 => u32::MAX,
            snaplen => snaplen,
        };
        let captured = wire_len.min(limit) as usize;
        frame(interface, 0, HEAD + 4, captured, wire_len, block.len())
    }
}

#[inline]
fn frame(
    interface: &Interface,
    time_ns: i64,
    from: usize,
    captured: usize,
    wire_len: u32,
    size: usize,
) -> Result<Frame, String> {
    if captured > size - from - 4 {
        return Err(format!(
            "has a packet of {captured} bytes in a block of {size}, so it is damaged"
        ));
    }
    Ok(Frame {
        time_ns,
        link_type: interface.link_type,
        wire_len,
        from,
        captured,
        size,
    })
}
