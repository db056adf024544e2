//! The account that the kernel charges for what a node takes of its limits per user: inotify instances and watches, POSIX
//! timers and pending signals, message queues, locked memory, namespaces.
//!
//! A node's root has the number of the machine's root, but the kernel counts by user namespace, and charges the parent
//! namespace's share to whoever created the node's (kernel/ucount.c: inc_ucount, inc_rlimit_ucounts; Linux 5.14). So each
//! node is created under a user of its own, and root of the machine is charged nothing.

use crate::os;
use std::io;

/// Numbers that no distribution and no container runtime assigns (systemd's UIDS-GIDS.md: unused); process numbers are at
/// most 2^22 (include/linux/threads.h: PID_MAX_LIMIT), so the last is below the next range, 0x7fff_0000.
const USERS_FROM: u32 = 0x7000_0000;
/// include/uapi/linux/securebits.h: a change of users leaves the capabilities as they are.
const NO_SETUID_FIXUP: libc::c_ulong = 1 << 2;
const UNCHANGED: libc::c_long = -1;
const ROOT: u32 = 0;
/// Where root of the machine is charged: a node is refused once all charges of root exceed this part of the limit.
const SHARE: libc::rlim_t = 4;

/// The user for this process: no other process of the machine has the same while this one lives. None without /proc.
/// Call it before the process has a /proc of its own, which shows another number.
pub fn own_user() -> Option<u32> {
    let pid = std::fs::read_link("/proc/self").ok()?;
    Some(USERS_FROM + pid.to_str()?.parse::<u32>().ok()?)
}

/// Makes namespaces, a user namespace among them. Answers whether `user` is charged for what is taken in it; else root is.
/// The caller continues as `user` until `become_root`.
pub fn unshare(user: Option<u32>, flags: libc::c_int) -> io::Result<bool> {
    if let Some(user) = user.filter(|_| is_root()) {
        if become_user(user).is_ok() && os::unshare(flags).is_ok() {
            return Ok(true); // the new namespace has ordinary secure bits
        }
        become_root()?;
        secure_bits(0)?;
    }
    os::unshare(flags).map(|()| false)
}

/// Makes root the effective user again; in a new user namespace once its users are mapped.
pub fn become_root() -> io::Result<()> {
    set_effective(ROOT)
}

/// Lowers the limits that root of the machine shares with the node.
pub fn share_roots_limits() -> io::Result<()> {
    for limit in [libc::RLIMIT_SIGPENDING, libc::RLIMIT_MSGQUEUE] {
        let mut now = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: valid pointers to a limit.
        unsafe {
            os::check(libc::getrlimit(limit, &mut now))?;
            now.rlim_max /= SHARE;
            now.rlim_cur = now.rlim_cur.min(now.rlim_max);
            os::check(libc::setrlimit(limit, &now))?;
        }
    }
    Ok(())
}

fn is_root() -> bool {
    // SAFETY: no arguments.
    unsafe { libc::geteuid() == ROOT }
}

fn become_user(user: u32) -> io::Result<()> {
    secure_bits(NO_SETUID_FIXUP)?;
    set_effective(user)
}

fn secure_bits(bits: libc::c_ulong) -> io::Result<()> {
    // SAFETY: plain numbers.
    os::check(unsafe { libc::prctl(libc::PR_SET_SECUREBITS, bits, 0, 0, 0) }).map(drop)
}

/// The call itself: the library's would change all threads, by signals.
fn set_effective(user: u32) -> io::Result<()> {
    let user = libc::c_long::from(user);
    // SAFETY: plain numbers.
    let done = unsafe { libc::syscall(libc::SYS_setresuid, UNCHANGED, user, UNCHANGED) };
    os::check(done as libc::c_int).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_of_the_unused_range_and_tell_processes_apart() {
        let own = own_user().unwrap();
        assert_eq!(own, USERS_FROM + std::process::id());
        const { assert!(USERS_FROM + (1 << 22) < 0x7fff_0000) };
    }
}
