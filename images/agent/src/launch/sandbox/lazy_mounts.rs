//! Lets the launcher mount file systems in a node's mount namespace, just before the node's first program.
//!
//! The launcher does this late because each mounted file system makes each memory control group larger, and
//! most nodes of a large lab run no program.

use super::{paths, tree};
use crate::os::{self, Res};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Moves the launcher into the mount namespace and root directory of the node process `pid`, runs `work` with
/// umask 022, and moves the launcher back. Returns the result of `work`; an error if `pid` has the launcher's
/// own mount namespace, or if a move fails.
pub fn in_mount_ns<T>(pid: i32, work: impl FnOnce() -> Res<T>) -> Res<T> {
    let fail = |what: &'static str| move |e: io::Error| format!("sandbox: {what}: {e}");
    let open = |path: String| File::open(path).map_err(fail("mounts"));
    let path_only = |path: &str| paths::path_only(Path::new(path)).map_err(fail(""));
    let (there, home) = (
        open(format!("/proc/{pid}/ns/mnt"))?,
        open("/proc/self/ns/mnt".to_owned())?,
    );
    let (root, home_root) = (path_only(&format!("/proc/{pid}/root"))?, path_only("/")?);
    let here = path_only(".")?;
    let number = |file: &File| {
        file.metadata()
            .map(|about| about.ino())
            .map_err(fail("mounts"))
    };
    if number(&there)? == number(&home)? {
        return Err(format!(
            "sandbox: process {pid} has the launcher's own mounts"
        ));
    }
    // SAFETY: the argument is a plain number. The umask is set because modes must not depend on the
    // launcher's.
    let umask = unsafe { libc::umask(0o022) };
    let outcome = enter(&there, &root)
        .map_err(fail("the node's mounts"))
        .and_then(|()| work());
    // SAFETY: the argument is a plain number, and the descriptor is open.
    let back = enter(&home, &home_root).and_then(|()| unsafe {
        libc::umask(umask);
        os::check(libc::fchdir(here.as_raw_fd())).map(drop)
    });
    back.map_err(fail("the launcher's own mounts"))?;
    outcome
}

/// Moves this process into a mount namespace, and makes `root` its root and working directory.
fn enter(mounts: &File, root: &OwnedFd) -> io::Result<()> {
    // SAFETY: the descriptors are open; the launcher is single threaded.
    unsafe {
        os::check(libc::setns(mounts.as_raw_fd(), libc::CLONE_NEWNS))?;
        os::check(libc::fchdir(root.as_raw_fd()))?;
        os::check(libc::chroot(c".".as_ptr())).map(drop)
    }
}

/// Returns a detached read-only sysfs that shows the network namespace of the node process `pid`.
pub fn sysfs(pid: i32) -> io::Result<OwnedFd> {
    let (there, home) = (
        File::open(format!("/proc/{pid}/ns/net"))?,
        File::open("/proc/self/ns/net")?,
    );
    os::enter_netns(&there)?;
    let attributes = tree::RDONLY | tree::NOSUID | tree::NODEV | tree::NOEXEC;
    let made = tree::detached(c"sysfs", attributes);
    os::enter_netns(&home)?;
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_the_launchers_own_mount_namespace() {
        let own = std::process::id() as i32;
        let refused = in_mount_ns::<()>(own, || panic!("it must not be done")).unwrap_err();
        assert!(refused.contains("the launcher's own mounts"), "{refused}");
    }
}
