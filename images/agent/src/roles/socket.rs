//! Opens and configures non-blocking sockets.

use crate::os;
use serde::Deserialize;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd};

/// Timeout of an attempt to connect in nanoseconds.
pub const CONNECT_LIMIT_NS: i64 = 10_000_000_000;
/// The most bytes of output that wait for space in the socket's buffer; beyond that, messages wait in a queue
/// of the role.
pub const BACKLOG_BYTES: usize = 65_536;

/// The marks of packets by which queues classify them; 0 leaves the default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct Marks {
    /// The DSCP (RFC 2474).
    #[serde(default)]
    dscp: u8,
    /// The priority code point (IEEE 802.1Q) of frames that leave through a tagged interface.
    #[serde(default)]
    pcp: u8,
}

/// Sets the DSCP and the 802.1Q priority of all packets that the socket sends from now on; changes nothing
/// if both are 0.
pub fn mark(socket: &impl AsRawFd, marks: Marks) -> io::Result<()> {
    if marks == Marks::default() {
        return Ok(());
    }
    if marks.dscp != 0 {
        let tos = libc::c_int::from(marks.dscp) << 2; // the two lowest bits belong to ECN
        // A dual-stack socket sends packets of both families.
        if domain(socket)? == libc::AF_INET6 {
            set(socket, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, tos)?;
        }
        set(socket, libc::IPPROTO_IP, libc::IP_TOS, tos)?;
    }
    // The kernel derives a priority from the DSCP (rt_tos2priority), so the requested priority is set
    // afterwards.
    set(
        socket,
        libc::SOL_SOCKET,
        libc::SO_PRIORITY,
        libc::c_int::from(marks.pcp),
    )
}

/// Sets a socket option whose value is an int.
pub fn set(socket: &impl AsRawFd, level: i32, option: i32, value: libc::c_int) -> io::Result<()> {
    let length = size_of_val(&value) as libc::socklen_t;
    // SAFETY: `value` is a valid int of the length given.
    os::check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            length,
        )
    })
    .map(drop)
}

/// Returns the socket's address family: AF_INET or AF_INET6.
fn domain(socket: &impl AsRawFd) -> io::Result<libc::c_int> {
    let mut value: libc::c_int = 0;
    let mut length = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the variable has room for an int.
    os::check(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_DOMAIN,
            (&raw mut value).cast(),
            &mut length,
        )
    })?;
    Ok(value)
}

/// Returns the address that means all addresses; that of IPv6 includes those of IPv4.
pub fn any(ipv6: bool) -> IpAddr {
    if ipv6 {
        Ipv6Addr::UNSPECIFIED.into()
    } else {
        Ipv4Addr::UNSPECIFIED.into()
    }
}

/// Returns an address in the kernel's form, and its length.
pub fn raw(address: SocketAddr) -> (libc::sockaddr_storage, libc::socklen_t) {
    // SAFETY: plain data, for which zeros are valid.
    let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let size = match address {
        SocketAddr::V4(v4) => {
            let to = libc::sockaddr_in {
                sin_family: libc::AF_INET as u16,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr {
                    s_addr: u32::from(*v4.ip()).to_be(),
                },
                sin_zero: [0; 8],
            };
            // SAFETY: storage can hold any address and is aligned for it.
            unsafe { (&raw mut storage).cast::<libc::sockaddr_in>().write(to) };
            size_of::<libc::sockaddr_in>()
        }
        SocketAddr::V6(v6) => {
            let to = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as u16,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: 0,
                sin6_addr: libc::in6_addr {
                    s6_addr: v6.ip().octets(),
                },
                sin6_scope_id: v6.scope_id(),
            };
            // SAFETY: as above.
            unsafe { (&raw mut storage).cast::<libc::sockaddr_in6>().write(to) };
            size_of::<libc::sockaddr_in6>()
        }
    };
    (storage, size as libc::socklen_t)
}

/// Returns the number of bytes in a TCP socket's buffer that the peer has not acknowledged (SIOCOUTQ,
/// tcp(7)).
pub fn outstanding(socket: &impl AsRawFd) -> io::Result<u64> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the kernel writes an int.
    os::check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &mut bytes) })?;
    Ok(bytes.max(0) as u64)
}

/// Returns whether a started connection is established: only then does it have a peer address
/// (getpeername(2)).
pub fn established(socket: &TcpStream) -> bool {
    socket.peer_addr().is_ok()
}

/// Starts a TCP connection; when the socket becomes writable, it is established or has failed. `nodelay` sets
/// TCP_NODELAY. The first packet already carries the marks.
pub fn connect(address: IpAddr, port: u16, nodelay: bool, marks: Marks) -> io::Result<TcpStream> {
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    let family = if address.is_ipv6() {
        libc::AF_INET6
    } else {
        libc::AF_INET
    };
    // SAFETY: plain numbers.
    let fd = os::own(unsafe { libc::socket(family, kind, 0) })?;
    // SAFETY: the descriptor is a new TCP socket, and its ownership moves to the stream.
    let stream = unsafe { TcpStream::from_raw_fd(fd.into_raw_fd()) };
    stream.set_nodelay(nodelay)?;
    mark(&stream, marks)?;
    let (to, size) = raw(SocketAddr::new(address, port));
    // SAFETY: `to` is a valid address of the size given.
    match os::check(unsafe { libc::connect(stream.as_raw_fd(), (&raw const to).cast(), size) }) {
        Err(e) if e.raw_os_error() != Some(libc::EINPROGRESS) => Err(e),
        _ => Ok(stream),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    fn option(socket: &UdpSocket, level: libc::c_int, option: libc::c_int) -> libc::c_int {
        let mut value: libc::c_int = -1;
        let mut length = size_of_val(&value) as libc::socklen_t;
        // SAFETY: the variable is an int of the length given.
        os::check(unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                level,
                option,
                (&raw mut value).cast(),
                &raw mut length,
            )
        })
        .unwrap();
        value
    }

    #[test]
    fn the_code_point_does_not_decide_the_priority() {
        for (dscp, pcp) in [(46, 0), (46, 3), (0, 6), (0, 0)] {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            mark(&socket, Marks { dscp, pcp }).unwrap();
            let tos = option(&socket, libc::IPPROTO_IP, libc::IP_TOS);
            assert_eq!(tos, libc::c_int::from(dscp) << 2);
            let priority = option(&socket, libc::SOL_SOCKET, libc::SO_PRIORITY);
            assert_eq!(priority, libc::c_int::from(pcp));
        }
    }
}
