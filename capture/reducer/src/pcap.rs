//! Reads capture files record by record: pcap in this module, pcapng by `pcapng`.

use std::io::{self, Read};

use crate::frame::{Frame, MAX_RECORD};
use crate::pcapng::{self, Section};
use crate::window::{Window, word};

const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;

/// Properties of the capture file: of its pcap header, or of a pcapng file's first interface.
#[derive(Clone, Copy, Debug, Default)]
pub struct Header {
    swapped: bool,
    /// True if times are finer than microseconds (pcapng: on every interface so far).
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
            [a, b, c, d] => {
                let magic = format!("{a:02x}{b:02x}{c:02x}{d:02x}");
                return Err(format!(
                    "it begins with {magic}: no magic number of pcap or pcapng"
                ));
            }
            _ => unreachable!("a slice of four"),
        };
        let word = |at: usize| word(bytes, at, swapped);
        // The lower half is the link type; the upper half describes frame check sequences.
        Ok(Self {
            swapped,
            nanosecond,
            snaplen: word(16),
            link_type: word(20) & 0xffff,
        })
    }
}

/// A captured frame; `wire_len` is the length that was sent, `data` the captured part.
#[derive(Debug)]
pub struct Record<'a> {
    pub time_ns: i64,
    pub link_type: u32,
    pub wire_len: u32,
    pub data: &'a [u8],
}

enum Format {
    Pcap(Header),
    Pcapng(Section),
}

/// The result of reading the next record: a frame, or the end of the file.
enum Next {
    Frame(Frame),
    End,
    /// The rest of the file is missing or damaged; the text is the reason.
    Cut(String),
}

/// Reads a capture file from `R`, one frame at a time.
pub struct Reader<R> {
    window: Window<R>,
    format: Format,
    records: u64,
    /// The reason why reading ended before the file's end; None after a clean end.
    pub cut: Option<String>,
}

impl<R: Read> Reader<R> {
    /// Reads the file's header. Returns an error if the source cannot be read or is no capture file.
    pub fn new(source: R) -> Result<Self, String> {
        let mut window = Window::new(source);
        if !window.has(FILE_HEADER).map_err(|e| e.to_string())? {
            return Err(format!(
                "it has {} bytes; a pcap header has {FILE_HEADER}",
                window.seen().len()
            ));
        }
        let format = if window.seen().starts_with(&pcapng::MAGIC) {
            Format::Pcapng(Section::default())
        } else {
            Format::Pcap(Header::parse(window.pass(FILE_HEADER))?)
        };
        Ok(Self {
            window,
            format,
            records: 0,
            cut: None,
        })
    }

    /// Returns the properties of the file as known so far: a pcapng file may declare interfaces between
    /// packets, and before the first one its snaplen and link type are 0.
    pub fn header(&self) -> Header {
        match &self.format {
            Format::Pcap(header) => *header,
            Format::Pcapng(section) => {
                let first = section.first();
                Header {
                    swapped: false,
                    nanosecond: section.nanosecond(),
                    snaplen: first.map_or(0, |interface| interface.snaplen),
                    link_type: first.map_or(0, |interface| interface.link_type),
                }
            }
        }
    }

    /// Returns the next frame; None at the end of the file or where the file is cut, in which case `cut`
    /// holds the reason.
    #[inline]
    pub fn next(&mut self) -> io::Result<Option<Record<'_>>> {
        let next = match &mut self.format {
            Format::Pcap(header) => next_of_pcap(&mut self.window, *header)?,
            Format::Pcapng(section) => next_of_pcapng(&mut self.window, section)?,
        };
        let frame = match next {
            Next::Frame(frame) => frame,
            Next::End => return Ok(None),
            Next::Cut(what) => {
                let (record, at) = (self.records + 1, self.window.offset);
                self.cut = Some(format!("{what} (record {record} at byte {at})"));
                return Ok(None);
            }
        };
        self.records += 1;
        let bytes = self.window.pass(frame.size);
        Ok(Some(Record {
            time_ns: frame.time_ns,
            link_type: frame.link_type,
            wire_len: frame.wire_len,
            data: &bytes[frame.from..frame.from + frame.captured],
        }))
    }
}

#[inline]
fn next_of_pcap<R: Read>(window: &mut Window<R>, header: Header) -> io::Result<Next> {
    if !window.has(RECORD_HEADER)? {
        let inside = !window.seen().is_empty();
        return Ok(if inside {
            Next::Cut("ends inside a record's header".into())
        } else {
            Next::End
        });
    }
    let word = |at: usize| word(window.seen(), at, header.swapped);
    let (seconds, fraction) = (word(0), word(4));
    let (captured, wire_len) = (word(8) as usize, word(12));
    if captured > MAX_RECORD {
        return Ok(Next::Cut(format!(
            "claims {captured} bytes in one record, so it is damaged"
        )));
    }
    let size = RECORD_HEADER + captured;
    if !window.has(size)? {
        return Ok(Next::Cut("ends inside a record".into()));
    }
    let scale = if header.nanosecond { 1 } else { 1000 };
    Ok(Next::Frame(Frame {
        time_ns: i64::from(seconds) * 1_000_000_000 + i64::from(fraction) * scale,
        link_type: header.link_type,
        wire_len,
        from: RECORD_HEADER,
        captured,
        size,
    }))
}

/// Consumes pcapng blocks before the next one with a packet, and returns that packet's frame, whose bytes
/// stay in the window; `End` at the file's end, `Cut` if the file is cut or damaged.
fn next_of_pcapng<R: Read>(window: &mut Window<R>, section: &mut Section) -> io::Result<Next> {
    loop {
        if !window.has(pcapng::LEAST)? {
            let inside = !window.seen().is_empty();
            return Ok(if inside {
                Next::Cut("ends inside a block's header".into())
            } else {
                Next::End
            });
        }
        let size = match section.size(window.seen()) {
            Ok(size) => size,
            Err(what) => return Ok(Next::Cut(what)),
        };
        if !window.has(size)? {
            return Ok(Next::Cut("ends inside a block".into()));
        }
        match section.block(&window.seen()[..size]) {
            Ok(Some(frame)) => return Ok(Next::Frame(frame)),
            Ok(None) => drop(window.pass(size)),
            Err(what) => return Ok(Next::Cut(what)),
        }
    }
}
