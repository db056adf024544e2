//! Reads a source sequentially through a small window, so that memory does not grow with the size of the
//! file.

use std::io::{self, Read};

/// Size of the window; it fits into a processor's second-level cache, so that copies from the page cache cost
/// little.
const SIZE: usize = 256 << 10;

/// The bytes of `source` that are read but not yet consumed.
pub struct Window<R> {
    source: R,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// Position in the file of the first byte in `seen`.
    pub offset: u64,
}

impl<R: Read> Window<R> {
    pub fn new(source: R) -> Self {
        Self {
            source,
            bytes: vec![0; SIZE],
            start: 0,
            end: 0,
            offset: 0,
        }
    }

    /// Returns the bytes that are read but not yet consumed.
    #[inline]
    pub fn seen(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Reads until `seen` holds `need` bytes; returns false if the source ends earlier.
    #[inline]
    pub fn has(&mut self, need: usize) -> io::Result<bool> {
        Ok(self.end - self.start >= need || self.fill(need)?)
    }

    /// Consumes `count` bytes, which must be in `seen`, and returns them.
    #[inline]
    pub fn pass(&mut self, count: usize) -> &[u8] {
        let from = self.start;
        self.start += count;
        self.offset += count as u64;
        &self.bytes[from..self.start]
    }

    #[cold]
    fn fill(&mut self, need: usize) -> io::Result<bool> {
        self.bytes.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.bytes.len() < need {
            self.bytes.resize(need.next_power_of_two(), 0);
        }
        while self.end < need {
            match self.source.read(&mut self.bytes[self.end..]) {
                Ok(0) => return Ok(false),
                Ok(count) => self.end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

/// Returns the 32-bit number at offset `at`: big-endian if `swapped`, else little-endian.
#[inline]
pub fn word(bytes: &[u8], at: usize, swapped: bool) -> u32 {
    let raw: [u8; 4] = bytes[at..at + 4].try_into().expect("four bytes");
    if swapped {
        u32::from_be_bytes(raw)
    } else {
        u32::from_le_bytes(raw)
    }
}
