//! Drops the capabilities and system calls by which a node could change the machine or other nodes.

use crate::os;
use libc::sock_filter;
use std::io;

/// Capabilities that every node loses; numbers of include/uapi/linux/capability.h.
const DROPPED: [u32; 17] = [
    9,  // LINUX_IMMUTABLE
    16, // SYS_MODULE
    17, // SYS_RAWIO
    20, // SYS_PACCT
    22, // SYS_BOOT
    25, // SYS_TIME
    27, // MKNOD
    30, // AUDIT_CONTROL
    32, // MAC_OVERRIDE
    33, // MAC_ADMIN
    34, // SYSLOG
    35, // WAKE_ALARM
    36, // BLOCK_SUSPEND
    37, // AUDIT_READ
    38, // PERFMON
    39, // BPF
    40, // CHECKPOINT_RESTORE
];
/// Capabilities that a node also loses if it has no user namespace, since they would then hold for the whole
/// host.
const DROPPED_ON_HOST: [u32; 6] = [
    2,  // DAC_READ_SEARCH
    19, // SYS_PTRACE
    21, // SYS_ADMIN
    23, // SYS_NICE
    24, // SYS_RESOURCE
    26, // SYS_TTY_CONFIG
];
/// The number of bits in a capability set.
const CAPABILITIES: u32 = 64;

#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Sets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Drops capabilities and system calls of this process and its future children, forbids tracing it, and turns
/// core dumps off. `own`: the process has a user namespace of its own. Returns false if the kernel has no
/// seccomp filters.
pub fn reduce(own: bool, filter: &[sock_filter]) -> io::Result<bool> {
    let filtered = apply(filter)?;
    let dropped = |n: &u32| DROPPED.contains(n) || (!own && DROPPED_ON_HOST.contains(n));
    for number in (0..CAPABILITIES).filter(dropped) {
        // SAFETY: plain numbers. EINVAL: the kernel lacks this capability.
        if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, number, 0, 0, 0) } < 0 {
            let e = io::Error::last_os_error();
            if e.raw_os_error() != Some(libc::EINVAL) {
                return Err(e);
            }
        }
    }
    let kept = (0..CAPABILITIES)
        .filter(|n| !dropped(n))
        .fold(0u64, |set, n| set | 1 << n);
    limit(kept)?;
    // SAFETY: plain numbers. No program of the node may trace the agent, which holds the socket to the launcher.
    os::check(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) })?;
    no_core()?;
    Ok(filtered)
}

/// Removes all capabilities outside the set `kept` from the permitted ones of this process, makes all that
/// remain effective, and clears the inheritable ones.
fn limit(kept: u64) -> io::Result<()> {
    const VERSION_3: u32 = 0x2008_0522;
    let header = Header {
        version: VERSION_3,
        pid: 0,
    };
    let mut sets = [Sets {
        effective: 0,
        permitted: 0,
        inheritable: 0,
    }; 2];
    // SAFETY: with version 3 the call reads and writes two sets.
    let got = unsafe { libc::syscall(libc::SYS_capget, &raw const header, sets.as_mut_ptr()) };
    os::check(got as libc::c_int)?;
    for (set, kept) in sets.iter_mut().zip([kept as u32, (kept >> 32) as u32]) {
        set.permitted &= kept;
        set.effective = set.permitted;
        set.inheritable = 0;
    }
    // SAFETY: as above.
    let done = unsafe { libc::syscall(libc::SYS_capset, &raw const header, sets.as_ptr()) };
    os::check(done as libc::c_int).map(drop)
}

/// Sets the size limit of core dumps to 1 byte. With a limit below a page the kernel writes no file. With a
/// limit of 1, in contrast to 0, it also starts no program of core_pattern, which would run as root of the
/// machine (fs/coredump.c).
fn no_core() -> io::Result<()> {
    let none = libc::rlimit {
        rlim_cur: 1,
        rlim_max: 1,
    };
    // SAFETY: a valid limit.
    os::check(unsafe { libc::setrlimit(libc::RLIMIT_CORE, &none) }).map(drop)
}

/// Installs the seccomp filter; returns false if the kernel has no seccomp filters.
fn apply(filter: &[sock_filter]) -> io::Result<bool> {
    let program = libc::sock_fprog {
        len: filter.len() as libc::c_ushort,
        filter: filter.as_ptr().cast_mut(),
    };
    // SAFETY: the program outlives the call. CAP_SYS_ADMIN in the own namespace makes PR_SET_NO_NEW_PRIVS unnecessary.
    let done = unsafe {
        libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const program,
            0,
            0,
        )
    };
    match os::check(done) {
        Ok(_) => Ok(true),
        Err(e) if e.raw_os_error() == Some(libc::EINVAL) => Ok(false), // a kernel without filters
        Err(e) => Err(e),
    }
}
