//! Wraps the kernel's mount calls, also those that work on descriptors (Linux 5.12): clones and attaches
//! mount trees, changes their flags, mounts and unmounts file systems.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::Path;

use crate::os;

// include/uapi/linux/mount.h, include/uapi/linux/fcntl.h; the libc crate lacks them for some targets
const OPEN_TREE_CLONE: libc::c_int = 1;
const MOVE_MOUNT_F_EMPTY_PATH: libc::c_int = 4;
const FSCONFIG_CMD_CREATE: libc::c_int = 6;
pub const RDONLY: u64 = 0x1;
pub const NOSUID: u64 = 0x2;
pub const NODEV: u64 = 0x4;
pub const NOEXEC: u64 = 0x8;

#[repr(C)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    userns_fd: u64,
}

/// Returns the path as a C string; an error if it has a NUL byte.
pub fn c(path: &Path) -> io::Result<CString> {
    use std::os::unix::ffi::OsStrExt;
    CString::new(path.as_os_str().as_bytes()).map_err(|_| io::ErrorKind::InvalidInput.into())
}

fn call(number: libc::c_long, args: [libc::c_long; 5]) -> io::Result<libc::c_int> {
    // SAFETY: the callers pass pointers that outlive the call, and descriptors that are open.
    let done = unsafe { libc::syscall(number, args[0], args[1], args[2], args[3], args[4]) };
    os::check(done as libc::c_int)
}

/// Returns a detached copy of the mount tree at `path`, with all mounts below.
pub fn clone(path: &Path) -> io::Result<OwnedFd> {
    let path = c(path)?;
    let flags = OPEN_TREE_CLONE | libc::O_CLOEXEC | libc::AT_RECURSIVE;
    os::own(call(
        libc::SYS_open_tree,
        [
            libc::AT_FDCWD.into(),
            path.as_ptr() as libc::c_long,
            flags.into(),
            0,
            0,
        ],
    )?)
}

/// Attaches a detached mount tree at `path`, which is relative to the descriptor `base` unless it is
/// absolute.
pub fn attach(tree: &OwnedFd, base: RawFd, path: &Path) -> io::Result<()> {
    let path = c(path)?;
    call(
        libc::SYS_move_mount,
        [
            tree.as_raw_fd().into(),
            c"".as_ptr() as libc::c_long,
            base.into(),
            path.as_ptr() as libc::c_long,
            MOVE_MOUNT_F_EMPTY_PATH.into(),
        ],
    )
    .map(drop)
}

/// Sets the attributes `set` of the mount at `path` and clears `clear` (bits such as `RDONLY`); `deep`: also
/// of all mounts below.
pub fn change(path: &Path, set: u64, clear: u64, deep: bool) -> io::Result<()> {
    let path = c(path)?;
    set_attributes(
        libc::AT_FDCWD,
        &path,
        set,
        clear,
        if deep { libc::AT_RECURSIVE } else { 0 },
    )
}

/// Sets attributes (bits such as `RDONLY`) of all mounts of a detached tree.
pub fn change_detached(tree: &OwnedFd, set: u64) -> io::Result<()> {
    set_attributes(
        tree.as_raw_fd(),
        c"",
        set,
        0,
        libc::AT_EMPTY_PATH | libc::AT_RECURSIVE,
    )
}

fn set_attributes(
    base: RawFd,
    path: &std::ffi::CStr,
    set: u64,
    clear: u64,
    flags: i32,
) -> io::Result<()> {
    let attr = MountAttr {
        set,
        clear,
        propagation: 0,
        userns_fd: 0,
    };
    let size = size_of::<MountAttr>() as libc::c_long;
    let at = std::ptr::from_ref(&attr) as libc::c_long;
    let args = [
        base.into(),
        path.as_ptr() as libc::c_long,
        flags.into(),
        at,
        size,
    ];
    call(libc::SYS_mount_setattr, args).map(drop)
}

/// Returns a new detached mount of the file system type `fstype`, which shows the namespaces of this process.
pub fn detached(fstype: &std::ffi::CStr, attributes: u64) -> io::Result<OwnedFd> {
    let fs = os::own(call(
        libc::SYS_fsopen,
        [fstype.as_ptr() as libc::c_long, 1, 0, 0, 0],
    )?)?;
    call(
        libc::SYS_fsconfig,
        [fs.as_raw_fd().into(), FSCONFIG_CMD_CREATE.into(), 0, 0, 0],
    )?;
    os::own(call(
        libc::SYS_fsmount,
        [fs.as_raw_fd().into(), 1, attributes as libc::c_long, 0, 0],
    )?)
}

/// Mounts a file system with options at `path`.
pub fn mount(fstype: &str, path: &Path, flags: libc::c_ulong, options: &str) -> io::Result<()> {
    let (kind, options) = (CString::new(fstype)?, CString::new(options)?);
    let path = c(path)?;
    // SAFETY: four valid C strings.
    os::check(unsafe {
        libc::mount(
            kind.as_ptr(),
            path.as_ptr(),
            kind.as_ptr(),
            flags,
            options.as_ptr().cast(),
        )
    })
    .map(drop)
}

/// Bind-mounts `from` at `to`, without the mounts below `from`.
pub fn bind(from: &Path, to: &Path) -> io::Result<()> {
    let (from, to) = (c(from)?, c(to)?);
    // SAFETY: two valid C strings, no type, no data.
    os::check(unsafe {
        libc::mount(
            from.as_ptr(),
            to.as_ptr(),
            std::ptr::null(),
            libc::MS_BIND,
            std::ptr::null(),
        )
    })
    .map(drop)
}

/// Unmounts (lazily) every mount at `path`, which may have several or none, or not exist.
pub fn clear(path: &Path) -> io::Result<()> {
    let path = c(path)?;
    loop {
        // SAFETY: a valid C string.
        match os::check(unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) }) {
            Ok(_) => {}
            Err(e) if matches!(e.raw_os_error(), Some(libc::EINVAL | libc::ENOENT)) => {
                return Ok(());
            }
            Err(e) => return Err(e),
        }
    }
}
