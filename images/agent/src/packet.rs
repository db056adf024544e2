//! Packet sockets (packet(7)) on one interface of the namespace that this process is in.

use crate::netlink::Netlink;
use crate::os::{self, Res};
use std::os::fd::{AsRawFd, OwnedFd};

/// A socket without a protocol receives nothing before it is bound to one.
pub fn socket(flags: i32) -> Res<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | flags;
    // SAFETY: plain numbers.
    let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
    os::own(fd).map_err(|e| format!("packet socket: {e}; run as root"))
}

/// The number of an interface.
pub fn index_of(iface: &str) -> Res<i32> {
    let names = Netlink::open()?.names()?;
    names.get(iface).copied().ok_or_else(|| {
        let mut known: Vec<_> = names.keys().map(String::as_str).collect();
        known.sort_unstable();
        format!(
            "interface {iface}: not on this node, which has {}",
            known.join(", ")
        )
    })
}

/// Starts reception (or only names the device to send out of, with protocol 0).
pub fn bind(socket: &OwnedFd, iface: &str, protocol: u16) -> Res<()> {
    // SAFETY: all zero is a valid sockaddr_ll.
    let mut to: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    to.sll_family = libc::AF_PACKET as u16;
    to.sll_protocol = protocol.to_be();
    to.sll_ifindex = index_of(iface)?;
    // SAFETY: the address is valid for its size.
    let bound = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const to).cast(),
            size_of_val(&to) as libc::socklen_t,
        )
    };
    os::check(bound)
        .map(drop)
        .map_err(|e| format!("interface {iface}: {e}"))
}

/// The address of the interface that the socket is bound to, and its number.
pub fn own(socket: &OwnedFd) -> Res<([u8; 6], i32)> {
    // SAFETY: all zero is a valid sockaddr_ll.
    let mut own: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    let mut size = size_of_val(&own) as libc::socklen_t;
    // SAFETY: the address is valid for its size.
    os::check(unsafe { libc::getsockname(socket.as_raw_fd(), (&raw mut own).cast(), &mut size) })
        .map_err(|e| format!("MAC of the interface: {e}"))?;
    Ok((std::array::from_fn(|i| own.sll_addr[i]), own.sll_ifindex))
}

/// Lets the socket's interface take frames to a group: a physical NIC filters those that nobody has asked for.
pub fn join(socket: &OwnedFd, group: [u8; 6]) -> Res<()> {
    // SAFETY: all zero is a valid packet_mreq.
    let mut asked: libc::packet_mreq = unsafe { std::mem::zeroed() };
    asked.mr_ifindex = own(socket)?.1;
    asked.mr_type = libc::PACKET_MR_MULTICAST as u16;
    asked.mr_alen = group.len() as u16;
    asked.mr_address[..group.len()].copy_from_slice(&group);
    option(
        socket,
        libc::SOL_PACKET,
        libc::PACKET_ADD_MEMBERSHIP,
        &asked,
    )
}

/// Room for frames that wait, beyond what the machine allows to everybody where that may be.
pub fn room(socket: &OwnedFd, asked: i32, forced: i32, bytes: i32) -> Res<()> {
    if option(socket, libc::SOL_SOCKET, forced, &bytes).is_err() {
        option(socket, libc::SOL_SOCKET, asked, &bytes)?;
    }
    Ok(())
}

/// Sets an option.
pub fn option<T>(socket: &OwnedFd, level: i32, name: i32, value: &T) -> Res<()> {
    // SAFETY: value is valid for its size; the kernel copies it.
    os::check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const *value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    })
    .map(drop)
    .map_err(|e| format!("socket option {level}.{name}: {e}; CAP_NET_RAW is needed, and CONFIG_PACKET in the kernel"))
}
