//! Reads pcap files record by record through a small window, so that memory does not grow with the file.

use std::io::{self, Read};

/// Larger than any frame that libpcap writes (its own limit is 256 KiB); beyond it a length is damage.
const MAX_RECORD: usize = 16 << 20;
/// Fits the second-level cache, so that the copy out of the page cache costs little.
const WINDOW: usize = 256 << 10;
const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;

/// What the file's header says.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    pub swapped: bool,
    pub nanosecond: bool,
    pub snaplen: u32,
    pub link_type: u32,
}

impl Header {
    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let (swapped, nanosecond) = match bytes[..4] {
            [0xd4, 0xc3, 0xb2, 0xa1] => (false, false),
            [0x4d, 0x3c, 0xb2, 0xa1] => (false, true),
            [0xa1, 0xb2, 0xc3, 0xd4] => (true, false),
            [0xa1, 0xb2, 0x3c, 0x4d] => (true, true),
            [0x0a, 0x0d, 0x0d, 0x0a] => {
                return Err("it is pcapng; convert it with `editcap -F nsecpcap IN OUT`".into());
            }
            [a, b, c, d] => {
                let magic = format!("{a:02x}{b:02x}{c:02x}{d:02x}");
                return Err(format!(
                    "it begins with {magic}, which is no pcap magic number"
                ));
            }
            _ => unreachable!("a slice of four"),
        };
        let word = |at: usize| word(bytes, at, swapped);
        // The upper half of the link type word tells of frame check sequences, not of the link.
        Ok(Self {
            swapped,
            nanosecond,
            snaplen: word(16),
            link_type: word(20) & 0xffff,
        })
    }
}

fn word(bytes: &[u8], at: usize, swapped: bool) -> u32 {
    let raw: [u8; 4] = bytes[at..at + 4].try_into().expect("four bytes");
    if swapped {
        u32::from_be_bytes(raw)
    } else {
        u32::from_le_bytes(raw)
    }
}

/// One captured frame; `wire_len` is its length on the wire, `data` what was captured of it.
#[derive(Debug)]
pub struct Record<'a> {
    pub time_ns: i64,
    pub wire_len: u32,
    pub data: &'a [u8],
}

/// Reads records from `source`.
pub struct Reader<R> {
    source: R,
    pub header: Header,
    window: Vec<u8>,
    start: usize,
    end: usize,
    offset: u64,
    records: u64,
    /// Why reading ended before the file's end; None after a clean end.
    pub cut: Option<String>,
}

impl<R: Read> Reader<R> {
    /// Reads the file's header. Errors: unreadable source, or no pcap.
    pub fn new(source: R) -> Result<Self, String> {
        let header = Header {
            swapped: false,
            nanosecond: false,
            snaplen: 0,
            link_type: 0,
        };
        let window = vec![0; WINDOW];
        let mut reader = Self {
            source,
            header,
            window,
            start: 0,
            end: 0,
            offset: 0,
            records: 0,
            cut: None,
        };
        if !reader.fill(FILE_HEADER).map_err(|e| e.to_string())? {
            return Err(format!(
                "it has {} bytes; a pcap header has {FILE_HEADER}",
                reader.end
            ));
        }
        reader.header = Header::parse(&reader.window[..FILE_HEADER])?;
        reader.advance(FILE_HEADER);
        Ok(reader)
    }

    /// The next record, or None at the end or where the file is cut (then `cut` says so).
    pub fn next(&mut self) -> io::Result<Option<Record<'_>>> {
        if self.end - self.start < RECORD_HEADER && !self.fill(RECORD_HEADER)? {
            if self.end > self.start {
                self.note_cut("ends inside a record's header");
            }
            return Ok(None);
        }
        let swapped = self.header.swapped;
        let head = &self.window[self.start..self.start + RECORD_HEADER];
        let (seconds, fraction) = (word(head, 0, swapped), word(head, 4, swapped));
        let (captured, wire_len) = (word(head, 8, swapped) as usize, word(head, 12, swapped));
        if captured > MAX_RECORD {
            self.note_cut(&format!(
                "claims {captured} bytes in one record, so it is damaged"
            ));
            return Ok(None);
        }
        let size = RECORD_HEADER + captured;
        if self.end - self.start < size && !self.fill(size)? {
            self.note_cut("ends inside a record");
            return Ok(None);
        }
        let scale = if self.header.nanosecond { 1 } else { 1000 };
        let time_ns = i64::from(seconds) * 1_000_000_000 + i64::from(fraction) * scale;
        let from = self.start + RECORD_HEADER;
        self.advance(size);
        self.records += 1;
        Ok(Some(Record {
            time_ns,
            wire_len,
            data: &self.window[from..from + captured],
        }))
    }

    fn advance(&mut self, bytes: usize) {
        self.start += bytes;
        self.offset += bytes as u64;
    }

    fn note_cut(&mut self, what: &str) {
        self.cut = Some(format!(
            "{what} (record {} at byte {})",
            self.records + 1,
            self.offset
        ));
    }

    /// Makes `need` bytes available from `start`; false when the source ends before.
    #[cold]
    fn fill(&mut self, need: usize) -> io::Result<bool> {
        self.window.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.window.len() < need {
            self.window.resize(need.next_power_of_two(), 0);
        }
        while self.end < need {
            match self.source.read(&mut self.window[self.end..]) {
                Ok(0) => return Ok(false),
                Ok(count) => self.end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}
