//! Creates each node's user namespace under a separate user. So the kernel's limits per user hold for each
//! node alone, and not for root of the machine: inotify instances and watches, POSIX timers and pending
//! signals, message queues, locked memory, namespaces.
//!
//! The kernel counts the use by root of a node in the node's user namespace, and also charges it to the user
//! who created that namespace (kernel/ucount.c: inc_ucount, inc_rlimit_ucounts; Linux 5.14).

use crate::os;
use std::io;

/// The first of the user numbers for nodes. No distribution and no container runtime assigns them (systemd's
/// UIDS-GIDS.md: unused). Process numbers are at most 2^22 (include/linux/threads.h: PID_MAX_LIMIT), so the
/// last user number is below the next assigned range, which begins at 0x7fff_0000.
const USERS_FROM: u32 = 0x7000_0000;
/// SECBIT_NO_SETUID_FIXUP of include/uapi/linux/securebits.h: a change of the user keeps the capabilities.
const NO_SETUID_FIXUP: libc::c_ulong = 1 << 2;
const UNCHANGED: libc::c_long = -1;
const ROOT: u32 = 0;
/// A node that is charged to root of the machine gets 1/SHARE of root's limits of pending signals and message
/// queues: its calls fail when all programs of root together use this share. So calls of programs outside the
/// node do not fail.
const SHARE: libc::rlim_t = 4;

/// Returns the user number for the node of this process; no other process of the machine has the same while
/// this one lives. None without /proc. Call it before the process mounts its own /proc, which shows another
/// number.
pub fn own_user() -> Option<u32> {
    let pid = std::fs::read_link("/proc/self").ok()?;
    Some(USERS_FROM + pid.to_str()?.parse::<u32>().ok()?)
}

/// Moves this process into the new namespaces of `flags`, which include a user namespace. Returns true if
/// `user` created them and is charged for their use; the process then runs as `user` until `become_root`.
/// Returns false if the present user created them, since the process is not root, `user` is None, or the
/// kernel refused them to `user`. An error if the kernel refuses them to the present user, too.
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

/// Makes root the effective user of this process. In a new user namespace, map its users before.
pub fn become_root() -> io::Result<()> {
    set_effective(ROOT)
}

/// Divides this process's limits of pending signals and message queues by `SHARE`, since it shares them with
/// root of the machine.
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

/// Changes the effective user of this thread by the system call, since the C library's function changes all
/// threads, by signals.
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
