//! Mounts the /dev that a lab's nodes share: a read-only tmpfs with harmless devices and net/tun, and with
//! mount points for shared paths below /dev.

use super::paths::{SMALL, make_mount_point};
use super::tree;
use crate::os;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

/// Name, major and minor number of each device.
const DEVICES: [(&str, u32, u32); 6] = [
    ("null", 1, 3),
    ("zero", 1, 5),
    ("full", 1, 7),
    ("random", 1, 8),
    ("urandom", 1, 9),
    ("tty", 5, 0),
];
const TUN: (u32, u32) = (10, 200);
/// Name and target of each symbolic link.
const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// Mounts /dev in this process's mount namespace, read only, with the devices, the links, and the directories
/// pts, shm and net. `shared`: the shared paths, and whether each is a directory; those below /dev get mount
/// points.
pub fn mount<'a>(shared: impl Iterator<Item = (&'a Path, bool)>) -> std::io::Result<()> {
    let dev = Path::new("/dev");
    tree::mount("tmpfs", dev, libc::MS_NOSUID | libc::MS_NOEXEC, SMALL)?;
    for (name, major, minor) in DEVICES {
        node(&dev.join(name), major, minor)?;
    }
    for name in ["pts", "shm", "net"] {
        fs::create_dir(dev.join(name))?;
    }
    node(&dev.join("net/tun"), TUN.0, TUN.1)?;
    for (name, target) in LINKS {
        symlink(target, dev.join(name))?;
    }
    for (path, directory) in shared.filter(|(path, _)| path.starts_with(dev)) {
        make_mount_point(path, directory)?;
    }
    tree::change(dev, tree::RDONLY, 0, false)
}

fn node(path: &Path, major: u32, minor: u32) -> std::io::Result<()> {
    let name = tree::c(path)?;
    // SAFETY: a valid C string and plain numbers.
    let made = unsafe {
        libc::mknod(
            name.as_ptr(),
            libc::S_IFCHR | 0o666,
            libc::makedev(major, minor),
        )
    };
    os::check(made)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o666))
}
