//! Switches off segmentation offloads through SIOCETHTOOL and rtnetlink, so that queues and captures hold
//! packets as they are on a cable.

use crate::netlink::Netlink;
use crate::os::Res;
use serde::Serialize;
use std::os::fd::{AsRawFd, OwnedFd};

// include/uapi/linux/ethtool.h
const GET_TSO: u32 = 0x1e;
const SET_TSO: u32 = 0x1f;
const GET_GSO: u32 = 0x23;
const SET_GSO: u32 = 0x24;
const GET_GRO: u32 = 0x2b;
const SET_GRO: u32 = 0x2c;
const SIOCETHTOOL: libc::c_ulong = 0x8946;

/// The segmentation offloads of an interface; true means on. With `multi_segment`, TCP passes packets that
/// hold several segments to the qdisc, which counts and drops each of them as one packet. Since Linux 4.17
/// TCP does so even if the other offloads are off (net/core/sock.c: sk_setup_caps), unless gso_max_segs is 1.
#[derive(Debug, Serialize, PartialEq, Eq)]
pub struct Offloads {
    pub tso: bool,
    pub gso: bool,
    pub gro: bool,
    pub multi_segment: bool,
}

#[repr(C)]
struct Value {
    cmd: u32,
    data: u32,
}

/// Opens a socket for ioctls on the interfaces of this process's network namespace.
pub fn control_socket() -> Res<OwnedFd> {
    // SAFETY: plain numbers.
    crate::os::own(unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) })
        .map_err(|e| format!("control socket: {e}"))
}

/// Returns an `ifreq` that names the interface, with at most 15 bytes of the name.
pub fn request(name: &str) -> libc::ifreq {
    // SAFETY: all zero is a valid ifreq.
    let mut ifr: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in ifr.ifr_name.iter_mut().take(15).zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    ifr
}

fn call(sock: &OwnedFd, name: &str, cmd: u32, data: u32) -> Res<u32> {
    let mut value = Value { cmd, data };
    let mut ifr = request(name);
    ifr.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: ifr and the value it points to live until the call returns.
    crate::os::check(unsafe { libc::ioctl(sock.as_raw_fd(), SIOCETHTOOL as _, &mut ifr) })
        .map_err(|e| format!("{name}: ethtool command {cmd:#x}: {e}"))?;
    Ok(value.data)
}

/// Switches off TSO, GSO and GRO of an interface, sets its gso_max_segs to 1, and returns the state of its
/// offloads as the kernel reports it; an error if one stays on.
pub fn switch_off(sock: &OwnedFd, netlink: &mut Netlink, name: &str) -> Res<Offloads> {
    for (ask, set) in [(GET_TSO, SET_TSO), (GET_GSO, SET_GSO), (GET_GRO, SET_GRO)] {
        // If a driver lacks an offload, even the call that switches it off fails, so only an offload that is
        // on is switched off.
        if call(sock, name, ask, 0)? != 0 {
            call(sock, name, set, 0)?;
        }
    }
    netlink
        .set_max_segments(name, 1)
        .map_err(|e| format!("{name}: gso_max_segs 1: {e}"))?;
    let got = read(sock, netlink, name)?;
    if got
        != (Offloads {
            tso: false,
            gso: false,
            gro: false,
            multi_segment: false,
        })
    {
        return Err(format!(
            "{name}: offloads stay on ({got:?}) although switched off; queues and captures would not hold wire packets; use another driver, or Linux 4.16 or later"
        ));
    }
    Ok(got)
}

fn read(sock: &OwnedFd, netlink: &mut Netlink, name: &str) -> Res<Offloads> {
    let segments = netlink.max_segments(name);
    Ok(Offloads {
        tso: call(sock, name, GET_TSO, 0)? != 0,
        gso: call(sock, name, GET_GSO, 0)? != 0,
        gro: call(sock, name, GET_GRO, 0)? != 0,
        multi_segment: segments.map_err(|e| format!("{name}: gso_max_segs: {e}"))? != 1,
    })
}
