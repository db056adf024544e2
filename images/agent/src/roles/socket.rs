//! Non-blocking sockets.

use crate::os;
use std::io;
use std::net::{Ipv4Addr, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd};

/// Bytes that a TCP socket has taken and the other side has not acknowledged (SIOCOUTQ, tcp(7)).
pub fn outstanding(socket: &impl AsRawFd) -> io::Result<u64> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the kernel writes an int.
    os::check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &mut bytes) })?;
    Ok(bytes.max(0) as u64)
}

/// Whether a connection that was started is established: one that is still on its way has no other end (getpeername(2)).
pub fn established(socket: &TcpStream) -> bool {
    socket.peer_addr().is_ok()
}

/// Starts a TCP connection; it is established (or has failed) when the socket becomes writable. With `nodelay` small
/// packets leave at once.
pub fn connect(address: Ipv4Addr, port: u16, nodelay: bool) -> io::Result<TcpStream> {
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: plain numbers.
    let fd = os::own(unsafe { libc::socket(libc::AF_INET, kind, 0) })?;
    // SAFETY: the descriptor is a fresh TCP socket and is given away here.
    let stream = unsafe { TcpStream::from_raw_fd(fd.into_raw_fd()) };
    stream.set_nodelay(nodelay)?;
    let to = libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from(address).to_be(),
        },
        sin_zero: [0; 8],
    };
    let size = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    // SAFETY: `to` is a valid address of the size given.
    match os::check(unsafe { libc::connect(stream.as_raw_fd(), (&raw const to).cast(), size) }) {
        Err(e) if e.raw_os_error() != Some(libc::EINPROGRESS) => Err(e),
        _ => Ok(stream),
    }
}
