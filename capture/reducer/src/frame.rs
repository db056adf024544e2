//! A frame of a capture file, in any format.

/// Larger than any frame that libpcap writes (its limit is 256 KiB); a larger length means damage.
pub const MAX_RECORD: usize = 16 << 20;

/// The position of the next frame: `size` bytes to consume, with captured bytes from `from` on.
#[derive(Clone, Copy)]
pub struct Frame {
    pub time_ns: i64,
    pub link_type: u32,
    pub wire_len: u32,
    pub from: usize,
    pub captured: usize,
    pub size: usize,
}
