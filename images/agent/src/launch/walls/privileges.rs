//! What a node's programs may ask of the kernel: capabilities that count in the node only, and no calls that reach out of it.

use crate::os;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};
use std::collections::BTreeMap;
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
pub fn give_up(own: bool, filters: &[BpfProgram]) -> io::Result<bool> {
    let mut filtered = true;
    for filter in filters {
        filtered &= apply(filter)?;
    }
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
fn apply(filter: &BpfProgram) -> io::Result<bool> {
    let program = libc::sock_fprog {
        len: filter.len() as libc::c_ushort,
        filter: filter.as_ptr().cast_mut().cast(),
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

/// Mounts, namespaces and the kernel's less travelled parts: refused whatever the arguments are.
const REFUSED: [libc::c_long; 33] = [
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_name_to_handle_at,
    libc::SYS_nfsservctl,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pivot_root,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setns,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
    libc::SYS_clock_settime,
];
/// Said to be missing, so that programs fall back to what can be looked into.
const ABSENT: [libc::c_long; 2] = [libc::SYS_clone3, libc::SYS_io_uring_setup];
/// Families of sockets that stay in the node's network, and netlink to configure it.
const FAMILIES: [libc::c_int; 6] = [
    libc::AF_UNIX,
    libc::AF_INET,
    libc::AF_INET6,
    libc::AF_NETLINK,
    libc::AF_PACKET,
    libc::AF_CAN,
];
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWCGROUP,
];

/// Numbers of the x32 ABI begin here (arch/x86/include/uapi/asm/unistd.h).
const X32: u32 = 0x4000_0000;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// The filters, compiled once for all nodes.
pub fn filters() -> Result<[BpfProgram; 2], String> {
    let fail = |e: seccompiler::BackendError| format!("walls: filter of system calls: {e}");
    let mut refused: Rules = REFUSED.iter().map(|n| (*n, Vec::new())).collect();
    for number in [libc::SYS_clone, libc::SYS_unshare] {
        refused.insert(number, new_namespaces().map_err(fail)?);
    }
    let families = Rules::from([(libc::SYS_socket, vec![other_families().map_err(fail)?])]);
    let refused = compiled(refused, libc::EPERM).map_err(fail)?;
    let families = compiled(families, libc::EAFNOSUPPORT).map_err(fail)?;
    Ok([[absent(), refused].concat(), families])
}

/// Whatever fits a rule fails with that error.
fn compiled(rules: Rules, errno: libc::c_int) -> Result<BpfProgram, seccompiler::BackendError> {
    let arch: TargetArch = std::env::consts::ARCH.try_into()?;
    let refuse = SeccompAction::Errno(errno as u32);
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)?.try_into()
}

/// What stands before the compiled rules: calls that are absent, and x32's numbers, which the rules do not know.
fn absent() -> BpfProgram {
    let one = |code: u32, jt: u8, jf: u8, k: u32| sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let jump = libc::BPF_JMP | libc::BPF_K;
    let mut program = vec![
        one(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0), // seccomp_data.nr
        one(jump | libc::BPF_JGE, ABSENT.len() as u8 + 1, 0, X32),
    ];
    for (index, number) in ABSENT.iter().enumerate() {
        program.push(one(
            jump | libc::BPF_JEQ,
            (ABSENT.len() - index) as u8,
            0,
            *number as u32,
        ));
    }
    program.push(one(jump | libc::BPF_JA, 0, 0, 1));
    let missing = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;
    program.push(one(libc::BPF_RET | libc::BPF_K, 0, 0, missing));
    program
}

fn other_families() -> Result<SeccompRule, seccompiler::BackendError> {
    let conditions = FAMILIES
        .iter()
        .map(|f| SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, *f as u64))
        .collect::<Result<_, _>>()?;
    SeccompRule::new(conditions)
}

fn new_namespaces() -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    NAMESPACES
        .iter()
        .map(|flag| {
            let flag = *flag as u32 as u64;
            let set = SeccompCmpOp::MaskedEq(flag);
            let condition = SeccompCondition::new(0, SeccompCmpArgLen::Dword, set, flag)?;
            SeccompRule::new(vec![condition])
        })
        .collect()
}
