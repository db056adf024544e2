//! Packet sockets on one interface of this namespace: what to send out of, and what to receive on.

use super::frame::{ECHO_PORT, SEEN, SOURCE_PORT};
use crate::netlink::Netlink;
use crate::os::{self, Res};
use std::os::fd::{AsRawFd, OwnedFd};

/// Room for frames that the path has taken but not carried yet; more than any queue of a link.
const SEND_BYTES: i32 = 64 << 20;

/// The number of an interface of the namespace that this process is in.
pub fn index_of(iface: &str) -> Res<i32> {
    let names = Netlink::open()?.names()?;
    names.get(iface).copied().ok_or_else(|| {
        let mut known: Vec<_> = names.keys().map(String::as_str).collect();
        known.sort_unstable();
        format!(
            "frames: interface {iface}: not on this node, which has {}",
            known.join(", ")
        )
    })
}

/// A socket that frames leave from; `bypass`: past the queue discipline, straight to the NIC.
pub fn sender(iface: &str, bypass: bool) -> Res<OwnedFd> {
    let socket = packet_socket(0)?;
    if set(&socket, libc::SO_SNDBUFFORCE, SEND_BYTES).is_err() {
        set(&socket, libc::SO_SNDBUF, SEND_BYTES)?;
    }
    if bypass {
        packet(&socket, libc::PACKET_QDISC_BYPASS, &1i32)?;
    }
    bind(&socket, iface, 0)?;
    Ok(socket)
}

/// A socket that sees the test frames that come in, and of each only what the stamp needs.
pub fn receiver() -> Res<OwnedFd> {
    let socket = packet_socket(0)?;
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
    let filter = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    option(&socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &filter)?;
    Ok(socket)
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
        .map_err(|e| format!("frames: interface {iface}: {e}"))
}

/// The MAC of the interface that the socket is bound to.
pub fn mac(socket: &OwnedFd) -> Res<[u8; 6]> {
    // SAFETY: all zero is a valid sockaddr_ll.
    let mut own: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    let mut size = size_of_val(&own) as libc::socklen_t;
    // SAFETY: the address is valid for its size.
    os::check(unsafe { libc::getsockname(socket.as_raw_fd(), (&raw mut own).cast(), &mut size) })
        .map_err(|e| format!("frames: MAC of the interface: {e}"))?;
    Ok(std::array::from_fn(|i| own.sll_addr[i]))
}

fn packet_socket(protocol: u16) -> Res<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: plain numbers.
    let fd = unsafe { libc::socket(libc::AF_PACKET, kind, i32::from(protocol.to_be())) };
    os::own(fd).map_err(|e| format!("frames: packet socket: {e}; run as root"))
}

fn set(socket: &OwnedFd, name: i32, value: i32) -> Res<()> {
    option(socket, libc::SOL_SOCKET, name, &value)
}

/// An option of the packet layer.
pub fn packet<T>(socket: &OwnedFd, name: i32, value: &T) -> Res<()> {
    option(socket, libc::SOL_PACKET, name, value)
}

fn option<T>(socket: &OwnedFd, level: i32, name: i32, value: &T) -> Res<()> {
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
    .map_err(|e| format!("frames: socket option {level}.{name}: {e}; CAP_NET_RAW is needed, and CONFIG_PACKET in the kernel"))
}
