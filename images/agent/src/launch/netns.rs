//! Manages named network namespaces, compatible with `ip netns`: bind mounts in /run/netns.

use crate::netlink::Netlink;
use crate::os::{self, Res};
use std::ffi::CString;
use std::fs;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

pub const DIR: &str = "/run/netns";
/// Marks what vNET created: the content of a reserved name's file, and the alias of a namespace's loopback
/// device. orchestrator/lab/namespaces.py reads it.
const MARK: &str = "vnet";
const LOOPBACK: i32 = 1;

pub fn path(name: &str) -> String {
    format!("{DIR}/{name}")
}

/// Opens the namespace with this name; an error if the name does not exist.
pub fn open(name: &str) -> Res<OwnedFd> {
    let file = fs::File::open(path(name)).map_err(|e| {
        format!("namespace {name}: {e}; it must be made by `create` before it is used")
    })?;
    Ok(file.into())
}

/// Opens the network namespace of this process.
pub fn own() -> Res<OwnedFd> {
    let file = fs::File::open("/proc/self/ns/net").map_err(|e| format!("own namespace: {e}"))?;
    Ok(file.into())
}

/// Creates /run/netns unless it exists, and makes it a shared mount, so that namespaces appear and vanish in
/// all mount namespaces.
pub fn prepare() -> Res<()> {
    let fail = |e| format!("{DIR}: cannot be prepared for named namespaces: {e}; run as root");
    fs::create_dir_all(DIR).map_err(fail)?;
    let share = || os::mount("", DIR, "none", libc::MS_SHARED | libc::MS_REC);
    if share().is_err() {
        os::mount(DIR, DIR, "none", libc::MS_BIND | libc::MS_REC).map_err(fail)?;
        share().map_err(fail)?;
    }
    Ok(())
}

/// Reserves a name by atomically creating a file with vNET's mark in /run/netns; fails if the name exists.
pub fn reserve(name: &str) -> Res<()> {
    marked_file(name).map_err(|e| {
        let taken = e.kind() == io::ErrorKind::AlreadyExists;
        let remedy = if taken {
            "`vnet down` removes what a lab of this name left; what stays is not vNET's: name the lab otherwise"
        } else {
            "run as root"
        };
        format!("namespace {name}: {e}; {remedy}")
    })
}

fn marked_file(name: &str) -> io::Result<()> {
    let mut file = match fs::OpenOptions::new()
        .write(true)
        .custom_flags(libc::O_TMPFILE)
        .open(DIR)
    {
        Ok(file) => file,
        // The file system does not support O_TMPFILE.
        Err(_) => {
            let mut file = fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(path(name))?;
            return file.write_all(MARK.as_bytes());
        }
    };
    file.write_all(MARK.as_bytes())?;
    let unnamed = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let named = CString::new(path(name))?;
    let (here, follow) = (libc::AT_FDCWD, libc::AT_SYMLINK_FOLLOW);
    // SAFETY: two paths that end with zero and live through the call.
    os::check(unsafe { libc::linkat(here, unnamed.as_ptr(), here, named.as_ptr(), follow) })
        .map(drop)
}

/// Marks the network namespace of this process as vNET's by the alias of its loopback device.
pub fn mark() -> Res<()> {
    let marked = Netlink::open().and_then(|mut netlink| netlink.set_alias(LOOPBACK, MARK));
    marked.map_err(|e| format!("the namespace cannot be marked as a lab's: {e}"))
}

/// Binds the network namespace of a process (a pid or "self") to a reserved name.
pub fn bind(process: &str, name: &str) -> Res<()> {
    os::mount(
        &format!("/proc/{process}/ns/net"),
        &path(name),
        "none",
        libc::MS_BIND,
    )
    .map_err(|e| format!("namespace {name}: cannot be bound: {e}; run as root"))
}

/// Creates a named and marked namespace without IPv6 and without a process, then returns to the process's own
/// namespace. Fails if the name exists; removes the name again if a later step fails.
pub fn make(name: &str) -> Res<()> {
    let home = own()?;
    reserve(name)?;
    let made = os::unshare(libc::CLONE_NEWNET)
        .map_err(|e| format!("namespace {name}: {e}; run as root"))
        .and_then(|()| mark())
        .and_then(|()| bind("self", name))
        .and_then(|()| ipv6_off());
    os::enter_netns(&home).map_err(|e| format!("cannot return to the own namespace: {e}"))?;
    if made.is_err() {
        remove(name)?;
    }
    made
}

/// Runs `work` inside the namespace `name`, returns to the process's own namespace, and returns the result of
/// `work`. Only for single-threaded processes.
pub fn within<T>(name: &str, work: impl FnOnce() -> Res<T>) -> Res<T> {
    let home = own()?;
    let there = open(name)?;
    os::enter_netns(&there).map_err(|e| format!("namespace {name}: cannot be entered: {e}"))?;
    let outcome = work();
    os::enter_netns(&home).map_err(|e| format!("cannot return to the own namespace: {e}"))?;
    outcome
}

/// Disables IPv6 in the namespace of this process, if the kernel has IPv6.
pub fn ipv6_off() -> Res<()> {
    for which in ["default", "all"] {
        let file = format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6");
        match fs::write(&file, "1") {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(format!("{file}: {e}; IPv6 must be off in the lab"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Unmounts and removes the name of a namespace, if it exists. The namespace itself lasts as long as a
/// process or an open descriptor uses it.
pub fn remove(name: &str) -> Res<()> {
    let file = path(name);
    match os::unmount(&file) {
        Err(e)
            if e.raw_os_error() != Some(libc::EINVAL)
                && e.kind() != std::io::ErrorKind::NotFound =>
        {
            return Err(format!("{file}: cannot be unmounted: {e}"));
        }
        _ => {}
    }
    match fs::remove_file(&file) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{file}: cannot be removed: {e}"))
        }
        _ => Ok(()),
    }
}
