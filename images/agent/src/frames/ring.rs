//! Receives frames through the kernel's memory-mapped ring (TPACKET_V3), without a system call or copy per
//! frame.

use super::socket;
use crate::os::Res;
use crate::packet;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{Ordering, fence};

const BLOCK_BYTES: usize = 1 << 18;
/// The time after which the kernel passes on a block that is not full.
const RETIRE_MS: u32 = 4;

pub struct Ring {
    socket: OwnedFd,
    map: *mut u8,
    bytes: usize,
    next: usize,
}

impl Ring {
    /// Starts reception on `iface` with a ring of `bytes`, rounded up to whole blocks of 256 KiB, at least
    /// two.
    pub fn open(iface: &str, bytes: usize) -> Res<Self> {
        let socket = socket::receiver()?;
        let version = libc::tpacket_versions::TPACKET_V3 as i32;
        packet::option(&socket, libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        let blocks = bytes.div_ceil(BLOCK_BYTES).max(2);
        let bytes = blocks * BLOCK_BYTES;
        // SAFETY: all zero is a valid request.
        let mut request: libc::tpacket_req3 = unsafe { std::mem::zeroed() };
        request.tp_block_size = BLOCK_BYTES as u32;
        request.tp_block_nr = blocks as u32;
        request.tp_frame_size = 256;
        request.tp_frame_nr = (bytes / 256) as u32;
        request.tp_retire_blk_tov = RETIRE_MS;
        packet::option(&socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)
            .map_err(|e| format!("{e}; a ring of {bytes} bytes was requested"))?;
        // SAFETY: the call maps the whole ring and nothing else.
        let map = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                socket.as_raw_fd(),
                0,
            )
        };
        if map == libc::MAP_FAILED {
            let why = std::io::Error::last_os_error();
            return Err(format!("frames: ring of {bytes} bytes: {why}"));
        }
        packet::bind(&socket, iface, libc::ETH_P_IP as u16)?;
        Ok(Self {
            socket,
            map: map.cast(),
            bytes,
            next: 0,
        })
    }

    pub fn raw(&self) -> i32 {
        self.socket.as_raw_fd()
    }

    /// Passes all received frames to `each`, with the kernel's Unix time of arrival in nanoseconds.
    pub fn drain(&mut self, each: &mut dyn FnMut(i64, &[u8])) {
        loop {
            // SAFETY: `next` is below the number of blocks.
            let block = unsafe { self.map.add(self.next * BLOCK_BYTES) };
            if !walk(block, each) {
                return;
            }
            self.next = (self.next + 1) % (self.bytes / BLOCK_BYTES);
        }
    }

    /// Returns the number of frames dropped at a full ring since the last call. They are losses of the
    /// receiver, not of the path.
    pub fn dropped(&self) -> Res<u64> {
        // SAFETY: all zero is a valid structure.
        let mut stats: libc::tpacket_stats_v3 = unsafe { std::mem::zeroed() };
        let mut size = size_of_val(&stats) as libc::socklen_t;
        // SAFETY: stats is valid for its size.
        let got = unsafe {
            libc::getsockopt(
                self.raw(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut stats).cast(),
                &mut size,
            )
        };
        crate::os::check(got).map_err(|e| format!("frames: statistics of the ring: {e}"))?;
        Ok(u64::from(stats.tp_drops))
    }
}

/// Passes the frames of a block to `each` and returns the block to the kernel; false if the kernel still owns
/// it.
fn walk(block: *mut u8, each: &mut dyn FnMut(i64, &[u8])) -> bool {
    let head: *mut libc::tpacket_block_desc = block.cast();
    // SAFETY: the layout is that of the kernel's headers, and the kernel does not touch a block with status
    // USER.
    unsafe {
        let status = &raw mut (*head).hdr.bh1.block_status;
        if status.read_volatile() & libc::TP_STATUS_USER == 0 {
            return false;
        }
        fence(Ordering::Acquire);
        let mut at = block.add((*head).hdr.bh1.offset_to_first_pkt as usize);
        for _ in 0..(*head).hdr.bh1.num_pkts {
            let packet: *const libc::tpacket3_hdr = at.cast();
            let arrived_ns =
                i64::from((*packet).tp_sec) * 1_000_000_000 + i64::from((*packet).tp_nsec);
            let bytes = std::slice::from_raw_parts(
                at.add((*packet).tp_mac as usize),
                (*packet).tp_snaplen as usize,
            );
            each(arrived_ns, bytes);
            at = at.add((*packet).tp_next_offset as usize);
        }
        fence(Ordering::Release);
        status.write_volatile(libc::TP_STATUS_KERNEL);
    }
    true
}
