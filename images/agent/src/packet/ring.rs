//! Receives frames through the kernel's memory-mapped ring (TPACKET_V3), without a system call or copy per
//! frame.

use crate::os::{self, Res};
use crate::packet;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{Ordering, fence};

/// The size of a ring, and when the kernel passes on a part of it.
pub struct Size {
    pub bytes: usize, // rounded up to whole blocks, at least two
    pub block_bytes: usize,
    /// The time after which the kernel passes on a block that is not full.
    pub retire_ms: u32,
}

/// A received frame. `bytes` is what the socket's filter has left of it.
pub struct Frame<'a> {
    pub arrived_ns: i64, // Unix time
    pub wire_bytes: u32, // without the VLAN tag
    /// The VLAN tag that the kernel has taken out of the frame: protocol, and tag control information.
    pub vlan: Option<(u16, u16)>,
    pub bytes: &'a [u8],
}

/// Numbers of frames since the ring was opened or the numbers were last read.
pub struct Counts {
    pub passed: u64, // by the socket's filter, including dropped ones
    pub dropped: u64,
}

pub struct Ring {
    socket: OwnedFd,
    map: *mut u8,
    block_bytes: usize,
    blocks: usize,
    next: usize,
    /// The number of the last block that the kernel passed on; blocks are numbered from 1 in their order.
    last: u64,
}

impl Ring {
    /// Gives a socket a ring. The socket must not be bound, since a frame that arrives before the ring exists
    /// stays in the socket's queue.
    pub fn new(socket: OwnedFd, size: &Size) -> Res<Self> {
        let version = libc::tpacket_versions::TPACKET_V3 as i32;
        packet::option(&socket, libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        let blocks = size.bytes.div_ceil(size.block_bytes).max(2);
        let bytes = blocks * size.block_bytes;
        // SAFETY: all zero is a valid request.
        let mut request: libc::tpacket_req3 = unsafe { std::mem::zeroed() };
        request.tp_block_size = size.block_bytes as u32;
        request.tp_block_nr = blocks as u32;
        request.tp_frame_size = 256;
        request.tp_frame_nr = (bytes / 256) as u32;
        request.tp_retire_blk_tov = size.retire_ms;
        packet::option(&socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)
            .map_err(|e| format!("{e}; a ring of {bytes} bytes was requested"))?;
        // SAFETY: a shared mapping of the new ring, of its exact size.
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
            return Err(format!("packet ring of {bytes} bytes: {why}"));
        }
        Ok(Self {
            socket,
            map: map.cast(),
            block_bytes: size.block_bytes,
            blocks,
            next: 0,
            last: 0,
        })
    }

    pub fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    pub fn raw(&self) -> i32 {
        self.socket.as_raw_fd()
    }

    /// Passes all frames of the blocks that the kernel has passed on to `each`.
    pub fn drain(&mut self, each: &mut dyn FnMut(&Frame)) {
        loop {
            let block = self.block();
            // SAFETY: the layout is that of the kernel's headers, and the kernel does not touch a block with status
            // USER.
            unsafe {
                let status = &raw mut (*block).hdr.bh1.block_status;
                if status.read_volatile() & libc::TP_STATUS_USER == 0 {
                    return;
                }
                fence(Ordering::Acquire);
                self.last = (*block).hdr.bh1.seq_num;
                walk(block, each);
                fence(Ordering::Release);
                status.write_volatile(libc::TP_STATUS_KERNEL);
            }
            self.next = (self.next + 1) % self.blocks;
        }
    }

    /// Passes all frames that the ring still holds to `each`, also those of the block that the kernel fills.
    /// Only for the end, after `packet::stop`: until then the kernel writes to that block.
    pub fn finish(&mut self, each: &mut dyn FnMut(&Frame)) {
        self.drain(each);
        let block = self.block();
        fence(Ordering::Acquire);
        // SAFETY: as in `drain`; the socket takes no further frame. A block that the kernel has not opened since
        // its last use has an old number.
        unsafe {
            if (*block).hdr.bh1.seq_num == self.last + 1 {
                walk(block, each);
            }
        }
    }

    fn block(&self) -> *mut libc::tpacket_block_desc {
        // SAFETY: `next` is below the number of blocks.
        unsafe { self.map.add(self.next * self.block_bytes).cast() }
    }

    /// Returns the numbers of frames since the last call. Dropped ones are losses of the receiver at a full
    /// ring, not of the path.
    pub fn counts(&self) -> Res<Counts> {
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
        os::check(got).map_err(|e| format!("statistics of the packet ring: {e}"))?;
        Ok(Counts {
            passed: u64::from(stats.tp_packets),
            dropped: u64::from(stats.tp_drops),
        })
    }
}

/// Passes the frames of a block to `each`.
///
/// # Safety
/// `block` points to a block of a ring to which the kernel does not write meanwhile.
unsafe fn walk(block: *mut libc::tpacket_block_desc, each: &mut dyn FnMut(&Frame)) {
    // SAFETY: the kernel has filled in the offsets, which stay inside the block.
    unsafe {
        let head = &(*block).hdr.bh1;
        let mut at: *mut u8 = block.cast::<u8>().add(head.offset_to_first_pkt as usize);
        for _ in 0..head.num_pkts {
            let packet: &libc::tpacket3_hdr = &*at.cast();
            let tag = &packet.hv1;
            let tagged = packet.tp_status & libc::TP_STATUS_VLAN_VALID != 0 || tag.tp_vlan_tci != 0;
            let protocol = match packet.tp_status & libc::TP_STATUS_VLAN_TPID_VALID {
                0 => libc::ETH_P_8021Q as u16,
                _ => tag.tp_vlan_tpid,
            };
            each(&Frame {
                arrived_ns: i64::from(packet.tp_sec) * 1_000_000_000 + i64::from(packet.tp_nsec),
                wire_bytes: packet.tp_len,
                vlan: tagged.then_some((protocol, tag.tp_vlan_tci as u16)),
                bytes: std::slice::from_raw_parts(
                    at.add(packet.tp_mac as usize),
                    packet.tp_snaplen as usize,
                ),
            });
            at = at.add(packet.tp_next_offset as usize);
        }
    }
}
