//! Writes a pcap file with times in nanoseconds (pcap-savefile(5)), as tcpdump does.

use crate::os::{self, Res};
use crate::packet::ring::Frame;
use std::fs;
use std::os::fd::AsRawFd;

const MAGIC_NANOSECONDS: u32 = 0xA1B2_3C4D;
const VERSION: (u16, u16) = (2, 4);
const ETHERNET: u32 = 1;
/// The bytes of the two addresses, after which a VLAN tag stands.
const ADDRESSES: usize = 12;
const TAG: usize = 4;
/// The file is written in pieces of this size at least, because each system call of a lab kernel is costly.
const PIECE: usize = 1 << 16;

pub struct File {
    path: String,
    file: fs::File,
    snaplen: usize,
    unwritten: Vec<u8>,
    pub packets: u64,
}

impl File {
    /// Creates the file, or empties it, and writes its header at once.
    pub fn create(path: &str, snaplen: u32) -> Res<Self> {
        let file = fs::File::create(path)
            .map_err(|e| format!("{path}: {e}; the directory must exist and be writable"))?;
        let mut this = Self {
            path: path.to_owned(),
            file,
            snaplen: snaplen as usize,
            unwritten: Vec::with_capacity(PIECE),
            packets: 0,
        };
        this.put(MAGIC_NANOSECONDS);
        this.unwritten.extend(VERSION.0.to_ne_bytes());
        this.unwritten.extend(VERSION.1.to_ne_bytes());
        for field in [0, 0, snaplen, ETHERNET] {
            this.put(field);
        }
        this.write_all()?;
        Ok(this)
    }

    /// Adds a frame, with the VLAN tag that the kernel has taken out of it, cut at the snap length.
    pub fn add(&mut self, frame: &Frame) {
        let tag = frame.vlan.filter(|_| frame.bytes.len() >= ADDRESSES);
        let more = tag.map_or(0, |_| TAG);
        let kept = (frame.bytes.len() + more).min(self.snaplen);
        self.put((frame.arrived_ns / 1_000_000_000) as u32);
        self.put((frame.arrived_ns % 1_000_000_000) as u32);
        self.put(kept as u32);
        self.put(frame.wire_bytes + more as u32);
        let end = self.unwritten.len() + kept;
        match tag {
            None => self.unwritten.extend(&frame.bytes[..kept]),
            Some((protocol, control)) => {
                self.unwritten.extend(&frame.bytes[..ADDRESSES]);
                self.unwritten.extend(protocol.to_be_bytes());
                self.unwritten.extend(control.to_be_bytes());
                self.unwritten.extend(&frame.bytes[ADDRESSES..]);
                self.unwritten.truncate(end);
            }
        }
        self.packets += 1;
    }

    /// Writes all that was added if it is much.
    pub fn write_full(&mut self) -> Res<()> {
        if self.unwritten.len() < PIECE {
            return Ok(());
        }
        self.write_all()
    }

    pub fn write_all(&mut self) -> Res<()> {
        let mut rest = &self.unwritten[..];
        while !rest.is_empty() {
            let written = os::write(self.file.as_raw_fd(), rest)
                .map_err(|e| format!("{}: {e}; its last frames are lost", self.path))?;
            rest = &rest[written..];
        }
        self.unwritten.clear();
        Ok(())
    }

    fn put(&mut self, field: u32) {
        self.unwritten.extend(field.to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(snaplen: u32, frames: &[Frame]) -> Vec<u8> {
        let path = std::env::temp_dir().join(format!(
            "pcap-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        let mut file = File::create(path.to_str().unwrap(), snaplen).unwrap();
        for frame in frames {
            file.add(frame);
        }
        file.write_full().unwrap();
        file.write_all().unwrap();
        assert_eq!(file.packets, frames.len() as u64);
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(path).unwrap();
        bytes
    }

    /// The 32-bit number at an offset.
    fn number(bytes: &[u8], at: usize) -> u32 {
        u32::from_ne_bytes(std::array::from_fn(|i| bytes[at + i]))
    }

    fn frame(bytes: &[u8], vlan: Option<(u16, u16)>) -> Frame<'_> {
        Frame {
            arrived_ns: 1_700_000_000_123_456_789,
            wire_bytes: 1500,
            vlan,
            bytes,
        }
    }

    #[test]
    fn a_record_has_time_sizes_and_bytes() {
        let content: Vec<u8> = (0..60).collect();
        let bytes = written(64, &[frame(&content, None)]);
        assert_eq!(number(&bytes, 0), MAGIC_NANOSECONDS);
        assert_eq!(bytes[4..8], [2, 0, 4, 0], "on a little-endian machine");
        assert_eq!((number(&bytes, 16), number(&bytes, 20)), (64, 1));
        assert_eq!(
            [24, 28, 32, 36].map(|at| number(&bytes, at)),
            [1_700_000_000, 123_456_789, 60, 1500]
        );
        assert_eq!(bytes[40..], content);
    }

    #[test]
    fn a_tag_goes_back_behind_the_addresses_and_the_snap_length_cuts_after_it() {
        let content: Vec<u8> = (0..64).collect();
        let bytes = written(64, &[frame(&content, Some((0x88A8, 0x2005)))]);
        assert_eq!([32, 36].map(|at| number(&bytes, at)), [64, 1504]);
        assert_eq!(bytes[40..52], content[..12]);
        assert_eq!(bytes[52..56], [0x88, 0xA8, 0x20, 0x05]);
        assert_eq!(bytes[56..], content[12..60]);
        let short = written(8, &[frame(&content[..8], Some((0x8100, 5)))]);
        assert_eq!(short[40..], content[..8], "too short for a tag");
    }
}
