//! Builds the seccomp filter that refuses system calls to a node's programs.
//!
//! The filter finds the rule of a call by a binary search for its number. That halves the time to create a
//! node: the kernel runs a new filter once for each number, and caches the calls that are always allowed
//! (kernel/seccomp.c: seccomp_cache_prepare).

use libc::{c_int, c_long, sock_filter};

/// The architecture of this program in include/uapi/linux/audit.h. Calls of other architectures have other
/// numbers, so the filter kills a process that makes one.
const ARCH: u32 = if cfg!(target_arch = "x86_64") {
    0xc000_003e
} else if cfg!(target_arch = "aarch64") {
    0xc000_00b7
} else {
    0xc000_00f3 // riscv64
};
/// Numbers of the x32 ABI begin here (arch/x86/include/uapi/asm/unistd.h).
const X32: u32 = 0x4000_0000;
// Offsets in struct seccomp_data of include/uapi/linux/seccomp.h.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const FIRST_ARGUMENT: u32 = argument(0);

/// Calls that fail with EPERM, whatever their arguments: those for mounts, namespaces and rarely used parts
/// of the kernel.
const REFUSED: [c_long; 33] = [
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
/// Calls that fail with ENOSYS, so that programs use older calls instead. A filter cannot read the arguments
/// of `clone3`. `io_uring_setup` and `io_setup` fail because all programs of the machine share the number of
/// events (fs.aio-max-nr), and one node can take them all.
const ABSENT: [c_long; 3] = [
    libc::SYS_clone3,
    libc::SYS_io_setup,
    libc::SYS_io_uring_setup,
];
/// Allowed socket families: those that stay inside the node's network namespace, and netlink, which
/// configures it.
const FAMILIES: [c_int; 6] = [
    libc::AF_UNIX,
    libc::AF_INET,
    libc::AF_INET6,
    libc::AF_NETLINK,
    libc::AF_PACKET,
    libc::AF_CAN,
];
/// Flags of `clone` and `unshare` that make namespaces.
const NAMESPACES: c_int = libc::CLONE_NEWNS
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWCGROUP;

/// Flags of `unshare` that make namespaces; in `clone` the lowest byte is a signal.
const UNSHARED: c_int = NAMESPACES | CLONE_NEWTIME;
/// include/uapi/linux/sched.h
const CLONE_NEWTIME: c_int = 0x80;

/// Refusals of calls with certain flags: the call, the number of the argument with the flags, the refused
/// flags, and the error. Huge pages are refused since the whole machine shares them (vm.nr_hugepages), and no
/// group of processes limits them; the errors are those of a machine without huge pages.
const FLAGS: [(c_long, u32, c_int, c_int); 5] = [
    (libc::SYS_clone, 0, NAMESPACES, libc::EPERM),
    (libc::SYS_unshare, 0, UNSHARED, libc::EPERM),
    (libc::SYS_mmap, 3, libc::MAP_HUGETLB, libc::ENOMEM),
    (
        libc::SYS_memfd_create,
        1,
        libc::MFD_HUGETLB as c_int,
        libc::EINVAL,
    ),
    (libc::SYS_shmget, 2, libc::SHM_HUGETLB, libc::EPERM),
];

/// The number of a system call, and where the instructions with the verdict on it begin among all verdicts.
type Rule = (u32, usize);

/// Returns the filter program. It kills a process that makes a call of another architecture, fails calls of
/// the x32 ABI with ENOSYS, follows the rules for the calls that they name, and allows every other call. The
/// verdicts stand behind the search, each once, since the kernel compiles the program anew for each node.
pub fn program() -> Vec<sock_filter> {
    let (mut rules, mut verdicts) = (Vec::<Rule>::new(), vec![allow()]);
    let mut rule = |calls: &[c_long], verdict: Vec<sock_filter>| {
        rules.extend(calls.iter().map(|call| (*call as u32, verdicts.len())));
        verdicts.extend(verdict);
    };
    rule(&REFUSED, vec![refuse(libc::EPERM)]);
    rule(&ABSENT, vec![refuse(libc::ENOSYS)]);
    for (call, place, flags, errno) in FLAGS {
        rule(&[call], refuse_flags(argument(place), flags, errno));
    }
    rule(&[libc::SYS_fcntl], refuse_leases());
    rule(&[libc::SYS_socket], allow_families());
    rules.sort_unstable();
    let mut all = vec![
        load(ARCHITECTURE),
        jump(libc::BPF_JEQ, ARCH, 1, 0),
        answer(libc::SECCOMP_RET_KILL_PROCESS),
        load(NUMBER),
        jump(libc::BPF_JGE, X32, 0, 1),
        refuse(libc::ENOSYS),
    ];
    search(&rules, 0, &mut all);
    all.extend(verdicts);
    all
}

/// Adds the instructions that look for the loaded number among the sorted rules and continue with the verdict
/// of the rule that has it, else with the first verdict, which allows the call. `behind`: the number of
/// instructions between them and the verdicts.
fn search(rules: &[Rule], behind: usize, found: &mut Vec<sock_filter>) {
    let (below, from) = rules.split_at(rules.len() / 2);
    match (below, from) {
        ([], [(number, verdict)]) => {
            found.push(jump(libc::BPF_JEQ, *number, behind + verdict, behind));
        }
        (_, [(number, _), ..]) => {
            let [lower, upper] = [below, from].map(|half| 2 * half.len() - 1);
            found.push(jump(libc::BPF_JGE, *number, lower, 0));
            search(below, behind + upper, found);
            search(from, behind, found);
        }
        _ => {}
    }
}

/// Returns the offset of the lower half of an argument in struct seccomp_data.
const fn argument(place: u32) -> u32 {
    16 + 8 * place + if cfg!(target_endian = "little") { 0 } else { 4 }
}

/// Returns instructions that fail the call with `errno` if the argument at the offset has one of the flags.
fn refuse_flags(offset: u32, flags: c_int, errno: c_int) -> Vec<sock_filter> {
    vec![
        load(offset),
        jump(libc::BPF_JSET, flags as u32, 0, 1),
        refuse(errno),
        allow(),
    ]
}

/// Returns instructions that fail `fcntl` with EPERM if it requests a lease. Root of a node has the same user
/// number as the owner of the machine's files, and a lease on a file delays every program that opens the file
/// for writing by 45 s (fs.lease-break-time).
fn refuse_leases() -> Vec<sock_filter> {
    vec![
        load(argument(1)),
        jump(libc::BPF_JEQ, libc::F_SETLEASE as u32, 0, 1),
        refuse(libc::EPERM),
        allow(),
    ]
}

/// Returns instructions that fail the call with EAFNOSUPPORT unless its first argument is one of `FAMILIES`.
fn allow_families() -> Vec<sock_filter> {
    let mut found = vec![load(FIRST_ARGUMENT)];
    let left = (0..FAMILIES.len()).rev();
    found.extend(
        FAMILIES
            .iter()
            .zip(left)
            .map(|(family, left)| jump(libc::BPF_JEQ, *family as u32, left + 1, 0)),
    );
    found.extend([refuse(libc::EAFNOSUPPORT), allow()]);
    found
}

fn load(offset: u32) -> sock_filter {
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset, 0, 0)
}

/// Returns a jump that compares the loaded value with `with`, and skips `holds` instructions if the
/// comparison holds, else `fails`.
fn jump(comparison: u32, with: u32, holds: usize, fails: usize) -> sock_filter {
    instruction(libc::BPF_JMP | libc::BPF_K | comparison, with, holds, fails)
}

fn answer(value: u32) -> sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, value, 0, 0)
}

fn refuse(errno: c_int) -> sock_filter {
    answer(libc::SECCOMP_RET_ERRNO | errno as u32)
}

fn allow() -> sock_filter {
    answer(libc::SECCOMP_RET_ALLOW)
}

fn instruction(code: u32, k: u32, jt: usize, jf: usize) -> sock_filter {
    let near = |jump: usize| u8::try_from(jump).expect("a jump of the filter is longer than 255");
    sock_filter {
        code: code as u16,
        jt: near(jt),
        jf: near(jf),
        k,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Interprets the program as the kernel does; returns the verdict and the number of instructions that
    /// ran.
    fn run(program: &[sock_filter], arch: u32, number: u32, argument: u32) -> (u32, usize) {
        let (mut at, mut loaded) = (0, 0);
        for steps in 1.. {
            let one = program[at];
            let held = match u32::from(one.code) & !libc::BPF_K {
                code if code == libc::BPF_RET => return (one.k, steps),
                code if code == libc::BPF_JMP | libc::BPF_JEQ => loaded == one.k,
                code if code == libc::BPF_JMP | libc::BPF_JGE => loaded >= one.k,
                code if code == libc::BPF_JMP | libc::BPF_JSET => loaded & one.k != 0,
                code => {
                    assert_eq!(code, libc::BPF_LD | libc::BPF_W | libc::BPF_ABS);
                    loaded = match one.k {
                        NUMBER => number,
                        ARCHITECTURE => arch,
                        _ => argument,
                    };
                    true
                }
            };
            at += 1 + usize::from(if held { one.jt } else { one.jf });
        }
        unreachable!("a program ends")
    }

    fn errno(number: c_int) -> u32 {
        libc::SECCOMP_RET_ERRNO | number as u32
    }

    #[test]
    fn every_number_has_the_verdict_of_its_list() {
        let program = program();
        let special = [libc::SYS_clone, libc::SYS_unshare, libc::SYS_socket];
        for number in (0..1000).filter(|n| !special.contains(n)) {
            let wanted = match number {
                n if REFUSED.contains(&n) => errno(libc::EPERM),
                n if ABSENT.contains(&n) => errno(libc::ENOSYS),
                _ => libc::SECCOMP_RET_ALLOW,
            };
            let (verdict, steps) = run(&program, ARCH, number as u32, 0);
            assert_eq!(verdict, wanted, "call {number}");
            assert!(steps <= 14, "call {number}: {steps} steps");
        }
    }

    #[test]
    fn refuses_namespaces_and_other_families_by_argument() {
        let program = program();
        for number in [libc::SYS_clone, libc::SYS_unshare] {
            let verdict = |flags: c_int| run(&program, ARCH, number as u32, flags as u32).0;
            assert_eq!(
                verdict(libc::CLONE_VM | libc::SIGCHLD),
                libc::SECCOMP_RET_ALLOW
            );
            for flag in [libc::CLONE_NEWUSER, libc::CLONE_NEWNET, libc::CLONE_NEWNS] {
                assert_eq!(verdict(flag | libc::CLONE_VM), errno(libc::EPERM));
            }
        }
        let verdict = |family: c_int| run(&program, ARCH, libc::SYS_socket as u32, family as u32).0;
        for family in FAMILIES {
            assert_eq!(verdict(family), libc::SECCOMP_RET_ALLOW, "family {family}");
        }
        for family in [libc::AF_VSOCK, libc::AF_ALG, libc::AF_TIPC, 0, 99] {
            assert_eq!(
                verdict(family),
                errno(libc::EAFNOSUPPORT),
                "family {family}"
            );
        }
    }

    #[test]
    fn refuses_time_namespaces_leases_and_huge_pages_by_argument() {
        let program = program();
        let verdict =
            |number: c_long, value: c_int| run(&program, ARCH, number as u32, value as u32).0;
        assert_eq!(
            verdict(libc::SYS_unshare, CLONE_NEWTIME),
            errno(libc::EPERM)
        );
        assert_eq!(
            verdict(libc::SYS_clone, CLONE_NEWTIME),
            libc::SECCOMP_RET_ALLOW
        );
        assert_eq!(
            verdict(libc::SYS_fcntl, libc::F_SETLEASE),
            errno(libc::EPERM)
        );
        for command in [
            libc::F_GETLEASE,
            libc::F_SETFL,
            libc::F_SETLK,
            libc::F_DUPFD_CLOEXEC,
        ] {
            assert_eq!(verdict(libc::SYS_fcntl, command), libc::SECCOMP_RET_ALLOW);
        }
        for (number, _, flags, wanted) in FLAGS {
            assert_eq!(verdict(number, flags), errno(wanted), "call {number}");
        }
        let plain = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        assert_eq!(verdict(libc::SYS_mmap, plain), libc::SECCOMP_RET_ALLOW);
    }

    #[test]
    fn kills_other_architectures_and_reports_x32_as_absent() {
        let program = program();
        let i386 = 0x4000_0003;
        assert_eq!(run(&program, i386, 1, 0).0, libc::SECCOMP_RET_KILL_PROCESS);
        assert_eq!(run(&program, ARCH, X32, 0).0, errno(libc::ENOSYS));
        assert_eq!(run(&program, ARCH, X32 + 520, 0).0, errno(libc::ENOSYS));
    }
}
