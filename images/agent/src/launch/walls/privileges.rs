//! What a node's programs may ask of the kernel: capabilities that count in the node only, and no calls that reach out of it.

use crate::os;
use libc::sock_filter;
use std::io;

// include/uapi/linux/capability.h
const WITHOUT: [u32; 17] = [
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
/// Without a user namespace these would count for the machine.
const WITHOUT_OF_THE_MACHINE: [u32; 6] = [
    2,  // DAC_READ_SEARCH
    19, // SYS_PTRACE
    21, // SYS_ADMIN
    23, // SYS_NICE
    24, // SYS_RESOURCE
    26, // SYS_TTY_CONFIG
];
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

/// Gives up, for this process and all that it will start, what a node has no need of. `own`: in a user namespace of its own.
pub fn give_up(own: bool, filter: &[sock_filter]) -> io::Result<bool> {
    let filtered = apply(filter)?;
    let dropped = |n: &u32| WITHOUT.contains(n) || (!own && WITHOUT_OF_THE_MACHINE.contains(n));
    for number in (0..CAPABILITIES).filter(dropped) {
        // SAFETY: plain numbers. A kernel that does not know the capability has nothing to give up.
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
    // SAFETY: plain numbers. Nobody in the node may look into or trace the agent, which holds the way to the launcher.
    os::check(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) })?;
    no_core()?;
    Ok(filtered)
}

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
    // SAFETY: version 3 reads and writes two sets.
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

/// A crash would be told to the machine's own handler of core dumps.
fn no_core() -> io::Result<()> {
    let none = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: a valid limit.
    os::check(unsafe { libc::setrlimit(libc::RLIMIT_CORE, &none) }).map(drop)
}

/// Whether the kernel takes filters.
fn apply(filter: &[sock_filter]) -> io::Result<bool> {
    let program = libc::sock_fprog {
        len: filter.len() as libc::c_ushort,
        filter: filter.as_ptr().cast_mut(),
    };
    // SAFETY: the program outlives the call. PR_SET_NO_NEW_PRIVS is not needed by who may administer its namespace.
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
