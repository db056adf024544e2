//! A frame of a capture file, whichever the format.

/// Larger than any frame that libpcap writes (its own limit is 256 KiB); beyond it a length is damage.
pub const MAX_RECORD: usize = 16 << 20;

/// Where the next frame stands: `size` bytes to pass, of which the captured ones begin at `from`.
#[derive(Clone, Copy)]
pub struct Frame {
    pub time_ns: i64,
    pub link_type: u32,
    pub wire_len: u32,
    pub from: usize,
    pub captured: usize,
    pub size: usize,
}
