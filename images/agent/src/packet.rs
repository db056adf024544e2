//! Opens and configures packet sockets (packet(7)) on an interface of this process's namespace.

pub mod ring;

use crate::netlink::Netlink;
use crate::os::{self, Res};
use std::os::fd::{AsRawFd, OwnedFd};

/// Opens a packet socket without a protocol; it receives nothing before `bind`.
pub fn socket(flags: i32) -> Res<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | flags;
    // SAFETY: plain numbers.
    let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
    os::own(fd).map_err(|e| format!("packet socket: {e}; run as root"))
}

/// Returns the index of an interface by name; an error if this namespace has no such interface.
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

/// Binds the socket to an interface and starts reception of frames with the EtherType `protocol`; 0 binds for
/// sending only.
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

/// Returns the MAC address and the index of the interface to which the socket is bound.
pub fn own(socket: &OwnedFd) -> Res<([u8; 6], i32)> {
    let own = address(socket)?;
    Ok((std::array::from_fn(|i| own.sll_addr[i]), own.sll_ifindex))
}

/// Returns the hardware type (ARPHRD_*) of the interface to which the socket is bound.
pub fn hardware(socket: &OwnedFd) -> Res<u16> {
    Ok(address(socket)?.sll_hatype)
}

fn address(socket: &OwnedFd) -> Res<libc::sockaddr_ll> {
    // SAFETY: all zero is a valid sockaddr_ll.
    let mut own: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    let mut size = size_of_val(&own) as libc::socklen_t;
    // SAFETY: the address is valid for its size.
    os::check(unsafe { libc::getsockname(socket.as_raw_fd(), (&raw mut own).cast(), &mut size) })
        .map_err(|e| format!("address of the interface: {e}"))?;
    Ok(own)
}

/// Returns the socket's error and clears it; None if it has none.
pub fn take_error(socket: &OwnedFd) -> std::io::Result<Option<i32>> {
    let (mut code, mut size) = (0i32, size_of::<i32>() as libc::socklen_t);
    // SAFETY: code is valid for its size.
    os::check(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ERROR,
            (&raw mut code).cast(),
            &mut size,
        )
    })?;
    Ok((code != 0).then_some(code))
}

/// Joins a multicast group on the socket's interface; a physical NIC discards frames of groups that are not
/// joined.
pub fn join(socket: &OwnedFd, group: [u8; 6]) -> Res<()> {
    // SAFETY: all zero is a valid packet_mreq.
    let mut membership: libc::packet_mreq = unsafe { std::mem::zeroed() };
    membership.mr_ifindex = own(socket)?.1;
    membership.mr_type = libc::PACKET_MR_MULTICAST as u16;
    membership.mr_alen = group.len() as u16;
    membership.mr_address[..group.len()].copy_from_slice(&group);
    option(
        socket,
        libc::SOL_PACKET,
        libc::PACKET_ADD_MEMBERSHIP,
        &membership,
    )
}

/// Makes the interface pass on all frames that reach it, also those for other stations, until the socket is
/// closed.
pub fn promiscuous(socket: &OwnedFd) -> Res<()> {
    // SAFETY: all zero is a valid packet_mreq.
    let mut membership: libc::packet_mreq = unsafe { std::mem::zeroed() };
    membership.mr_ifindex = own(socket)?.1;
    membership.mr_type = libc::PACKET_MR_PROMISC as u16;
    option(
        socket,
        libc::SOL_PACKET,
        libc::PACKET_ADD_MEMBERSHIP,
        &membership,
    )
}

/// Attaches a classic BPF program, which decides how many bytes of a frame the socket gets; 0: no frame.
pub fn filter(socket: &OwnedFd, program: &mut [libc::sock_filter]) -> Res<()> {
    let attached = libc::sock_fprog {
        len: u16::try_from(program.len())
            .map_err(|_| format!("filter: {} instructions; at most 65535", program.len()))?,
        filter: program.as_mut_ptr(),
    };
    option(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &attached)
}

/// Makes the socket receive no further frame.
pub fn stop(socket: &OwnedFd) -> Res<()> {
    let nothing = libc::sock_filter {
        code: (libc::BPF_RET | libc::BPF_K) as u16,
        jt: 0,
        jf: 0,
        k: 0,
    };
    filter(socket, &mut [nothing])
}

/// Sets a buffer size in bytes with the socket option `forced`, which may exceed the system's limit; if that
/// is not allowed, with the option `limited`.
pub fn set_buffer(socket: &OwnedFd, limited: i32, forced: i32, bytes: i32) -> Res<()> {
    if option(socket, libc::SOL_SOCKET, forced, &bytes).is_err() {
        option(socket, libc::SOL_SOCKET, limited, &bytes)?;
    }
    Ok(())
}

/// Sets a socket option.
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
