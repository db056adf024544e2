//! Creates a TAP device, from which a program reads frames (linux/if_tun.h). The device vanishes when the
//! program ends.

use crate::ethtool::{control_socket, request};
use crate::os::{self, Res};
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

const TUN: &str = "/dev/net/tun";
const TUNSETIFF: libc::c_ulong = 0x4004_54ca;

/// Creates the device and brings it up. Each read of the returned file yields one frame and does not block.
pub fn open(name: &str) -> Res<File> {
    let wrong = |e| format!("{name}: {e}; {TUN} and CONFIG_TUN are needed");
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(TUN)
        .map_err(wrong)?;
    let mut ifreq = request(name);
    ifreq.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: an ifreq that lives until the call returns.
    os::check(unsafe { libc::ioctl(file.as_raw_fd(), TUNSETIFF as _, &mut ifreq) })
        .map_err(wrong)?;
    let socket = control_socket()?;
    let mut ifreq = request(name);
    ifreq.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_NOARP) as libc::c_short;
    // SAFETY: as above.
    os::check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &mut ifreq) })
        .map_err(wrong)?;
    Ok(file)
}
