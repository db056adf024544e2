//! Creates a TAP device and diverts frames to it, so that a program can read them (linux/if_tun.h), and sends
//! frames. The device vanishes when the program ends.

use crate::ethtool::{control_socket, request};
use crate::os::{self, Res};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};

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
    // SAFETY: the ifreq is valid until the call returns.
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

/// Returns the MAC address of a device; the kernel's own frames on the device carry it.
pub fn address(name: &str) -> Res<[u8; 6]> {
    let socket = control_socket()?;
    let mut ifreq = request(name);
    // SAFETY: the ifreq is valid until the call returns.
    os::check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFHWADDR as _, &mut ifreq) })
        .map_err(|e| format!("{name}: address: {e}"))?;
    // SAFETY: the call has filled this field.
    let data = unsafe { ifreq.ifr_ifru.ifru_hwaddr.sa_data };
    Ok(std::array::from_fn(|i| data[i] as u8))
}

/// Sends a frame on the device with this index, as a packet of EtherType `protocol` to the kernel's filters. A
/// full queue or a link that is down is no error, since the
/// kernel counts the loss.
pub fn send(socket: &OwnedFd, index: i32, protocol: u16, frame: &[u8]) -> Res<()> {
    // SAFETY: all zero is a valid sockaddr_ll.
    let mut to: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    to.sll_family = libc::AF_PACKET as u16;
    to.sll_protocol = protocol.to_be();
    to.sll_ifindex = index;
    // SAFETY: frame and address are valid for their lengths.
    let sent = unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            frame.as_ptr().cast(),
            frame.len(),
            0,
            (&raw const to).cast(),
            size_of_val(&to) as libc::socklen_t,
        )
    };
    if sent >= 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    match error.raw_os_error() {
        // The class's queue is full or the link is down; the kernel counts the loss.
        Some(libc::ENOBUFS | libc::EAGAIN | libc::ENETDOWN) => Ok(()),
        _ => Err(error.to_string()),
    }
}

/// Runs the lines with `tc -batch`; returns the text of its error output if it fails.
pub fn run_tc(lines: &[String]) -> Res<()> {
    let wrong = |e: std::io::Error| format!("tc: {e}; iproute2 is needed");
    let mut child = Command::new("tc")
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(wrong)?;
    if let Some(mut stdin) = child.stdin.take() {
        let text = lines.join("\n") + "\n";
        stdin.write_all(text.as_bytes()).map_err(wrong)?;
    }
    let done = child.wait_with_output().map_err(wrong)?;
    if done.status.success() {
        return Ok(());
    }
    let error = String::from_utf8_lossy(&done.stderr);
    Err(format!("tc: {}", error.trim()))
}
