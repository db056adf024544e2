//! Reads the TCP_INFO of a connection, and sets its congestion control.

use crate::os::{self, Res};
use crate::records::Window;
use std::io;
use std::os::fd::AsRawFd;

const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Indices of 32-bit words in struct tcp_info, for this constant and the next five
/// (include/uapi/linux/tcp.h).
const SND_MSS: usize = 4;
const RTT_US: usize = 17;
const SND_SSTHRESH: usize = 19;
const SND_CWND: usize = 20;
const TOTAL_RETRANS: usize = 25;
const DATA_SEGS_OUT: usize = 39;
/// TCP_INFINITE_SSTHRESH (include/net/tcp.h): no loss has set a slow start threshold yet.
const INFINITE: u32 = 0x7fff_ffff;

pub struct TcpInfo {
    pub rtt_ns: u64,
    pub retransmits: u64,
    pub segments: u64,
    pub window: Window,
}

pub fn read(socket: &impl AsRawFd) -> io::Result<TcpInfo> {
    let mut words = [0u32; DATA_SEGS_OUT + 1];
    let mut length = size_of_val(&words) as libc::socklen_t;
    // SAFETY: the buffer has room for `length` bytes.
    os::check(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut words).cast(),
            &mut length,
        )
    })?;
    let rtt_ns = u64::from(words[RTT_US]) * 1000;
    Ok(TcpInfo {
        rtt_ns,
        window: Window {
            segments: words[SND_CWND],
            threshold: Some(words[SND_SSTHRESH]).filter(|t| *t < INFINITE),
            segment_bytes: words[SND_MSS],
            rtt_ns,
        },
        retransmits: u64::from(words[TOTAL_RETRANS]),
        segments: u64::from(words[DATA_SEGS_OUT]),
    })
}

/// Sets the congestion control of a socket; an error if the kernel does not have it.
pub fn choose(socket: &impl AsRawFd, congestion: &str) -> Res<()> {
    // SAFETY: the pointer and the length describe the same text.
    let outcome = os::check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_CONGESTION,
            congestion.as_ptr().cast(),
            congestion.len() as libc::socklen_t,
        )
    });
    outcome.map(drop).map_err(|e| {
        let known = std::fs::read_to_string(AVAILABLE).unwrap_or_else(|e| e.to_string());
        format!(
            "congestion: \"{congestion}\" cannot be had: {e}; {AVAILABLE} has: {}",
            known.trim()
        )
    })
}
