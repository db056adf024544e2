//! Sockets for datagrams, and what the kernel says of them.

use crate::os;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;

/// The ends of a datagram that came: an answer goes the other way. Left to the kernel, it would come from the address
/// of ours that is nearest, and who asked another would take it for a stranger's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    pub theirs: SocketAddrV4,
    pub ours: Ipv4Addr,
}

/// The one control message there is, with its header.
#[repr(C)]
struct Control {
    head: libc::cmsghdr,
    info: libc::in_pktinfo,
}

/// A UDP socket on the port of all addresses (0: one that is free), with room for many clients' datagrams at once.
pub fn bound(port: u16) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port))?;
    socket.set_nonblocking(true)?;
    set(&socket, libc::IPPROTO_IP, libc::IP_PKTINFO, 1)?;
    for option in [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF] {
        // Only who may go beyond the machine's limit can force it; others get as much as the limit has.
        if set(&socket, libc::SOL_SOCKET, option, 4 << 20).is_ok() {
            break;
        }
    }
    Ok(socket)
}

fn set(socket: &UdpSocket, level: i32, option: i32, value: libc::c_int) -> io::Result<()> {
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

/// The next datagram: its length, and where it came from and to.
pub fn receive(socket: &UdpSocket, datagram: &mut [u8]) -> io::Result<(usize, Ends)> {
    // SAFETY: plain data, for which zeros are valid.
    let (mut from, mut control): (libc::sockaddr_in, Control) = unsafe { std::mem::zeroed() };
    let n = with_message(
        datagram.as_mut_ptr(),
        datagram.len(),
        &mut from,
        &mut control,
        |message| {
            // SAFETY: all that `message` points to is there, writable and as long as it says.
            unsafe { libc::recvmsg(socket.as_raw_fd(), message, 0) }
        },
    )?;
    let address = |a: libc::in_addr| Ipv4Addr::from(u32::from_be(a.s_addr));
    let theirs = SocketAddrV4::new(address(from.sin_addr), u16::from_be(from.sin_port));
    let ours = address(control.info.ipi_spec_dst);
    Ok((n, Ends { theirs, ours }))
}

/// Answers whose datagram it was, from where he sent it to.
pub fn answer(socket: &UdpSocket, datagram: &[u8], ends: Ends) -> io::Result<usize> {
    // SAFETY: plain data, for which zeros are valid.
    let (mut to, mut control): (libc::sockaddr_in, Control) = unsafe { std::mem::zeroed() };
    to.sin_family = libc::AF_INET as u16;
    to.sin_port = ends.theirs.port().to_be();
    to.sin_addr.s_addr = u32::from(*ends.theirs.ip()).to_be();
    control.head.cmsg_level = libc::IPPROTO_IP;
    control.head.cmsg_type = libc::IP_PKTINFO;
    control.head.cmsg_len = (size_of::<libc::cmsghdr>() + size_of::<libc::in_pktinfo>()) as _;
    control.info.ipi_spec_dst.s_addr = u32::from(ends.ours).to_be();
    with_message(
        datagram.as_ptr().cast_mut(),
        datagram.len(),
        &mut to,
        &mut control,
        |message| {
            // SAFETY: all that `message` points to is there and as long as it says; nothing of it is written to.
            unsafe { libc::sendmsg(socket.as_raw_fd(), message, 0) }
        },
    )
}

/// The header of a message with one part; what the call on it says.
fn with_message(
    datagram: *mut u8,
    length: usize,
    name: &mut libc::sockaddr_in,
    control: &mut Control,
    call: impl FnOnce(&mut libc::msghdr) -> isize,
) -> io::Result<usize> {
    let mut part = libc::iovec {
        iov_base: datagram.cast(),
        iov_len: length,
    };
    // SAFETY: plain data, for which zeros are valid.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_name = (&raw mut *name).cast();
    message.msg_namelen = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut *control).cast();
    message.msg_controllen = size_of::<Control>() as _;
    usize::try_from(call(&mut message)).map_err(|_| io::Error::last_os_error())
}

/// What there is to say of datagrams that the kernel dropped because the socket was not read fast enough.
pub fn overrun(socket: &UdpSocket) -> Option<String> {
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
    let count = outcome.map_or(0, |_| numbers[DROPS]);
    (count > 0).then(|| format!("{count} datagrams arrived and found the socket's buffer full"))
}
