//! Opens the packet sockets of a trial: one for its sender, one for its receiver.

use super::frame::{ECHO_PORT, SEEN, SOURCE_PORT};
use crate::os::Res;
use crate::packet;
use std::os::fd::OwnedFd;

/// Size of the send buffer, larger than any queue of a link.
const SEND_BYTES: i32 = 64 << 20;

/// Opens a socket that sends on `iface`; `bypass` skips the interface's qdisc.
pub fn sender(iface: &str, bypass: bool) -> Res<OwnedFd> {
    let socket = packet::socket(0)?;
    packet::set_buffer(&socket, libc::SO_SNDBUF, libc::SO_SNDBUFFORCE, SEND_BYTES)?;
    if bypass {
        packet::option(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1i32)?;
    }
    packet::bind(&socket, iface, 0)?;
    Ok(socket)
}

/// Opens a socket, not yet bound, that receives only UDP over IPv4 with the ports of test frames, each frame
/// cut after the stamp.
pub fn receiver() -> Res<OwnedFd> {
    let socket = packet::socket(0)?;
    let stop = |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let (half, byte, equal, answer) = (
        libc::BPF_LD | libc::BPF_H | libc::BPF_ABS,
        libc::BPF_LD | libc::BPF_B | libc::BPF_ABS,
        libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
        libc::BPF_RET | libc::BPF_K,
    );
    let mut program = [
        stop(half, 0, 0, 12),
        stop(equal, 0, 7, 0x0800),
        stop(byte, 0, 0, 23),
        stop(equal, 0, 5, libc::IPPROTO_UDP as u32),
        stop(half, 0, 0, 34),
        stop(equal, 0, 3, u32::from(SOURCE_PORT)),
        stop(half, 0, 0, 36),
        stop(equal, 0, 1, u32::from(ECHO_PORT)),
        stop(answer, 0, 0, SEEN as u32),
        stop(answer, 0, 0, 0),
    ];
    packet::filter(&socket, &mut program)?;
    Ok(socket)
}
