//! A socket for datagrams, and what the kernel says of it.

use crate::os;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;

/// A UDP socket on the port of all addresses (0: one that is free), with room for many clients' datagrams at once.
pub fn bound(port: u16) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port))?;
    socket.set_nonblocking(true)?;
    let size: libc::c_int = 4 << 20;
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    for option in [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF] {
        // SAFETY: `size` is a valid int of the length given.
        let outcome = os::check(unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                option,
                (&raw const size).cast(),
                length,
            )
        });
        // Only who may go beyond the machine's limit can force it; others get as much as the limit has.
        if outcome.is_ok() {
            break;
        }
    }
    Ok(socket)
}

/// Datagrams that the kernel dropped because the socket was not read fast enough.
pub fn overrun(socket: &UdpSocket) -> u32 {
    // include/uapi/linux/sock_diag.h: SK_MEMINFO_VARS numbers, of which SK_MEMINFO_DROPS is the ninth.
    const DROPS: usize = 8;
    let mut numbers = [0u32; DROPS + 1];
    let mut length = size_of_val(&numbers) as libc::socklen_t;
    // SAFETY: room for `length` bytes.
    let outcome = os::check(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            (&raw mut numbers).cast(),
            &mut length,
        )
    });
    // A kernel older than 4.12 does not say.
    outcome.map_or(0, |_| numbers[DROPS])
}
