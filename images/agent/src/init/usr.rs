//! Mounts the image's squashfs on /usr through a loop device, so that it stays compressed in memory.

use crate::os::{self, Res};
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;

const PACKED: &str = "/vnet/usr.squashfs";
// include/uapi/linux/loop.h
const LOOP_SET_FD: libc::c_ulong = 0x4c00;
const LOOP_CTL_GET_FREE: libc::c_ulong = 0x4c82;

pub fn mount() -> Res<()> {
    let fail = |what: &str, e: std::io::Error| format!("{what}: {e}; the image is broken");
    let packed = File::open(PACKED).map_err(|e| fail(PACKED, e))?;
    let control = open("/dev/loop-control")?;
    // SAFETY: the descriptors are open, both operations take plain numbers.
    let number = os::check(unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE as _) })
        .map_err(|e| fail("/dev/loop-control", e))?;
    let name = format!("/dev/loop{number}");
    // The file is opened read-only, since a kernel without BLK_DEV_WRITE_MOUNTED does not mount a device that
    // is open for writing.
    let device = File::open(&name).map_err(|e| fail(&name, e))?;
    // SAFETY: as above.
    os::check(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_SET_FD as _, packed.as_raw_fd()) })
        .map_err(|e| fail(&name, e))?;
    os::mount(&name, "/usr", "squashfs", libc::MS_RDONLY).map_err(|e| fail("/usr", e))
}

fn open(path: &str) -> Res<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .map_err(|e| format!("{path}: {e}; the kernel must have loop devices"))
}
