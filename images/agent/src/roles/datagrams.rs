//! Opens and uses UDP sockets, which receive datagrams with both addresses, reply from the address to
//! which the request was sent, and report the kernel's drops.

use super::socket::{any, raw, set};
use crate::os;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

/// The source and the destination of a received datagram. A reply must leave from that destination. Otherwise
/// the kernel may choose another local address, and the client treats the reply as foreign. On a dual-stack
/// socket IPv4 addresses are mapped (RFC 4291, 2.5.5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    pub theirs: SocketAddr,
    pub ours: IpAddr,
}

/// A control message of sendmsg and recvmsg with its header, large enough for either address family.
#[repr(C)]
struct Control {
    head: libc::cmsghdr,
    info: Info,
}

#[repr(C)]
union Info {
    v4: libc::in_pktinfo,
    v6: libc::in6_pktinfo,
}

/// Opens a non-blocking UDP socket on this port (0: any) and on all IPv4 addresses; with `ipv6`, on all IPv6
/// addresses, too. Its receive buffer has 4 MiB, or the system's limit without the right to exceed it, for
/// many simultaneous clients.
pub fn bound(port: u16, ipv6: bool) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((any(ipv6), port))?;
    socket.set_nonblocking(true)?;
    if ipv6 {
        set(&socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)?;
    } else {
        set(&socket, libc::IPPROTO_IP, libc::IP_PKTINFO, 1)?;
    }
    for option in [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF] {
        // Only root may exceed the system's limit; others get that limit.
        if set(&socket, libc::SOL_SOCKET, option, 4 << 20).is_ok() {
            break;
        }
    }
    Ok(socket)
}

/// Receives a datagram; returns its length and its addresses, or an error (WouldBlock) if none waits.
pub fn receive(socket: &UdpSocket, datagram: &mut [u8]) -> io::Result<(usize, Ends)> {
    // SAFETY: plain data, for which zeros are valid.
    let (mut from, mut control): (libc::sockaddr_storage, Control) = unsafe { std::mem::zeroed() };
    let size = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
    let n = with_message(
        (datagram.as_mut_ptr(), datagram.len()),
        (&mut from, size),
        (&mut control, size_of::<Control>()),
        |message| {
            // SAFETY: `message` points to valid, writable buffers of the given lengths.
            unsafe { libc::recvmsg(socket.as_raw_fd(), message, 0) }
        },
    )?;
    Ok((n, ends(&from, &control)))
}

fn ends(from: &libc::sockaddr_storage, control: &Control) -> Ends {
    if libc::c_int::from(from.ss_family) == libc::AF_INET6 {
        // SAFETY: the family determines the types; the socket requests this control message.
        let (from, info) = unsafe {
            let from = &*std::ptr::from_ref(from).cast::<libc::sockaddr_in6>();
            (from, control.info.v6)
        };
        let address = Ipv6Addr::from(from.sin6_addr.s6_addr);
        return Ends {
            theirs: SocketAddr::new(address.into(), u16::from_be(from.sin6_port)),
            ours: Ipv6Addr::from(info.ipi6_addr.s6_addr).into(),
        };
    }
    // SAFETY: as above.
    let (from, info) = unsafe {
        let from = &*std::ptr::from_ref(from).cast::<libc::sockaddr_in>();
        (from, control.info.v4)
    };
    let address = |a: libc::in_addr| Ipv4Addr::from(u32::from_be(a.s_addr));
    Ends {
        theirs: SocketAddr::new(address(from.sin_addr).into(), u16::from_be(from.sin_port)),
        ours: address(info.ipi_spec_dst).into(),
    }
}

/// Sends a reply to a datagram, from the address to which the datagram was sent.
pub fn answer(socket: &UdpSocket, datagram: &[u8], ends: Ends) -> io::Result<usize> {
    let (mut to, size) = raw(ends.theirs);
    // SAFETY: plain data, for which zeros are valid.
    let mut control: Control = unsafe { std::mem::zeroed() };
    let info = match ends.ours {
        IpAddr::V4(ours) => {
            control.head.cmsg_level = libc::IPPROTO_IP;
            control.head.cmsg_type = libc::IP_PKTINFO;
            control.info.v4 = libc::in_pktinfo {
                ipi_ifindex: 0,
                ipi_spec_dst: libc::in_addr {
                    s_addr: u32::from(ours).to_be(),
                },
                ipi_addr: libc::in_addr { s_addr: 0 },
            };
            size_of::<libc::in_pktinfo>()
        }
        IpAddr::V6(ours) => {
            control.head.cmsg_level = libc::IPPROTO_IPV6;
            control.head.cmsg_type = libc::IPV6_PKTINFO;
            control.info.v6 = libc::in6_pktinfo {
                ipi6_addr: libc::in6_addr {
                    s6_addr: ours.octets(),
                },
                ipi6_ifindex: 0,
            };
            size_of::<libc::in6_pktinfo>()
        }
    };
    // The buffer's length is rounded up (CMSG_SPACE), the message's is not (CMSG_LEN).
    let length = size_of::<libc::cmsghdr>() + info;
    control.head.cmsg_len = length as _;
    with_message(
        (datagram.as_ptr().cast_mut(), datagram.len()),
        (&mut to, size),
        (&mut control, length.next_multiple_of(size_of::<usize>())),
        |message| {
            // SAFETY: `message` points to valid buffers of the given lengths, which the call only reads.
            unsafe { libc::sendmsg(socket.as_raw_fd(), message, 0) }
        },
    )
}

/// Builds a message header with one buffer, and passes it to a system call; returns the call's number of
/// bytes, or its error.
fn with_message(
    (datagram, length): (*mut u8, usize),
    (name, name_length): (&mut libc::sockaddr_storage, libc::socklen_t),
    (control, control_length): (&mut Control, usize),
    call: impl FnOnce(&mut libc::msghdr) -> isize,
) -> io::Result<usize> {
    let mut part = libc::iovec {
        iov_base: datagram.cast(),
        iov_len: length,
    };
    // SAFETY: plain data, for which zeros are valid.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_name = (&raw mut *name).cast();
    message.msg_namelen = name_length;
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut *control).cast();
    message.msg_controllen = control_length as _;
    usize::try_from(call(&mut message)).map_err(|_| io::Error::last_os_error())
}

/// Returns a text with the number of datagrams that the kernel has dropped because the buffer was full; None
/// without any, or before Linux 4.12.
pub fn overrun(socket: &UdpSocket) -> Option<String> {
    // include/uapi/linux/sock_diag.h: SK_MEMINFO_VARS numbers, of which SK_MEMINFO_DROPS is the ninth.
    const DROPS: usize = 8;
    let mut numbers = [0u32; DROPS + 1];
    let mut length = size_of_val(&numbers) as libc::socklen_t;
    // SAFETY: the array has room for `length` bytes.
    let outcome = os::check(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            (&raw mut numbers).cast(),
            &mut length,
        )
    });
    // Kernels before 4.12 lack the option.
    let count = outcome.map_or(0, |_| numbers[DROPS]);
    (count > 0).then(|| format!("{count} datagrams arrived and found the socket's buffer full"))
}
