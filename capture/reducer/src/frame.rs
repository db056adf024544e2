//! Describes a frame of a capture file independently of the file's format.

/// The longest accepted record; libpcap writes at most 256 KiB, so a greater length indicates a damaged file.
pub const MAX_RECORD: usize = 16 << 20;

/// The next frame in the read window: a record of `size` bytes, of which `captured` bytes from offset `from`
/// on are the frame.
#[derive(Clone, Copy)]
pub struct Frame {
    pub time_ns: i64,
    pub link_type: u32,
    pub wire_len: u32,
    pub from: usize,
    pub captured: usize,
    pub size: usize,
}
