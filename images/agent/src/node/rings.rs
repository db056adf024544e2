//! Bounds the memory that a node's packet sockets take for their rings (`PACKET_RX_RING`, `PACKET_TX_RING`).
//!
//! The kernel charges this memory to no control group. So each program starts with a seccomp filter that
//! passes calls with these two socket options to the agent. The agent adds up the rings of all packet sockets
//! that /proc/net/packet lists, and sets the option itself if the node's limit leaves room. The agent must
//! set it, because the program could change its request after the agent has read it.

use crate::os;
use libc::sock_filter;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;

// include/uapi/linux/seccomp.h: _IOWR('!', 0, struct seccomp_notif), _IOWR('!', 1, struct seccomp_notif_resp),
// _IOW('!', 2, __u64)
const RECEIVE: u32 = 0xc050_2100;
const SEND: u32 = 0xc018_2101;
const IS_VALID: u32 = 0x4008_2102;
/// The length of struct tpacket_req3, the longest request.
const REQUEST_BYTES: usize = std::mem::size_of::<libc::tpacket_req3>();

thread_local! {
    /// The rings of this node; None: they have no limit.
    static RINGS: RefCell<Option<Rings>> = const { RefCell::new(None) };
}

struct Rings {
    limit: u64,
    listeners: Vec<OwnedFd>,
    /// The bytes of each ring by the inode of its socket and its socket option.
    taken: HashMap<(u64, i32), u64>,
}

/// Limits the rings of all programs that start from now on to `bytes` together.
pub fn limit(bytes: u64) {
    RINGS.set(Some(Rings {
        limit: bytes,
        listeners: Vec::new(),
        taken: HashMap::new(),
    }));
}

/// A program's way to pass the descriptor of its filter to the agent.
pub struct Passage {
    mine: UnixStream,
    theirs: UnixStream,
    filter: Vec<sock_filter>,
}

impl Passage {
    /// Installs the filter in this process, a child that is about to execute its program, and passes its
    /// descriptor to the agent. Calls async-signal-safe functions only.
    pub fn take(&self) -> io::Result<()> {
        match listen(&self.filter) {
            Ok(listener) => send(self.theirs.as_raw_fd(), &listener),
            // A kernel without this kind of filter, or a node without a user namespace: rings have no limit.
            Err(_) => Ok(()),
        }
    }
}

/// Returns the passage of a program that starts now; None if rings have no limit. The caller passes it to
/// `started` after the program has started.
pub fn passage() -> io::Result<Option<Passage>> {
    if RINGS.with_borrow(Option::is_none) {
        return Ok(None);
    }
    let (mine, theirs) = UnixStream::pair()?;
    let filter = filter();
    Ok(Some(Passage {
        mine,
        theirs,
        filter,
    }))
}

/// Keeps the descriptor of the filter that a started program has passed.
pub fn started(passage: Option<Passage>) {
    let Some(Passage { mine, theirs, .. }) = passage else {
        return;
    };
    drop(theirs);
    match receive(mine.as_raw_fd()) {
        Some(listener) => RINGS.with_borrow_mut(|rings| {
            if let Some(rings) = rings {
                rings.listeners.push(listener);
            }
        }),
        None => eprintln!("rings of packet sockets: this kernel cannot limit them"),
    }
}

/// Returns the descriptors that become readable when a program sets up a ring, or when the last program with
/// a filter has ended.
pub fn fds() -> Vec<RawFd> {
    RINGS.with_borrow(|rings| {
        let listeners = rings.iter().flat_map(|r| &r.listeners);
        listeners.map(AsRawFd::as_raw_fd).collect()
    })
}

/// Answers the program that waits at a descriptor of `fds`, or closes it if no program is left.
pub fn on_ready(fd: RawFd, revents: i16) {
    RINGS.with_borrow_mut(|rings| {
        let Some(rings) = rings else { return };
        if revents & libc::POLLIN != 0 {
            rings.answer(fd);
        } else {
            rings
                .listeners
                .retain(|listener| listener.as_raw_fd() != fd);
        }
    });
}

/// Returns the filter: it hands `setsockopt(_, SOL_PACKET, PACKET_RX_RING or PACKET_TX_RING, ...)` to the
/// agent and allows all else.
fn filter() -> Vec<sock_filter> {
    let load = |offset| instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset, 0, 0);
    let equal =
        |value, skip| instruction(libc::BPF_JMP | libc::BPF_K | libc::BPF_JEQ, value, 0, skip);
    let end = |value| instruction(libc::BPF_RET | libc::BPF_K, value, 0, 0);
    let half = if cfg!(target_endian = "little") { 0 } else { 4 };
    vec![
        load(0), // the number of the call
        equal(libc::SYS_setsockopt as u32, 6),
        load(16 + 8 + half),
        equal(libc::SOL_PACKET as u32, 4),
        load(16 + 16 + half),
        instruction(
            libc::BPF_JMP | libc::BPF_K | libc::BPF_JEQ,
            libc::PACKET_RX_RING as u32,
            1,
            0,
        ),
        equal(libc::PACKET_TX_RING as u32, 1),
        end(libc::SECCOMP_RET_USER_NOTIF),
        end(libc::SECCOMP_RET_ALLOW),
    ]
}

fn instruction(code: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    }
}

/// Installs the filter in this process and returns the descriptor at which its calls arrive.
fn listen(filter: &[sock_filter]) -> io::Result<OwnedFd> {
    let program = libc::sock_fprog {
        len: filter.len() as libc::c_ushort,
        filter: filter.as_ptr().cast_mut(),
    };
    // SAFETY: the program is valid until the call returns.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const program,
        )
    };
    os::own(fd as i32)
}

/// A control message with one descriptor, aligned as its header.
#[repr(C, align(8))]
struct Control([u8; 24]);

/// Calls `with` with a message of one byte that has room for one descriptor.
fn message<T>(with: impl FnOnce(&mut libc::msghdr) -> T) -> T {
    let (mut byte, mut control) = ([0u8], Control([0; 24]));
    let mut part = libc::iovec {
        iov_base: byte.as_mut_ptr().cast(),
        iov_len: 1,
    };
    // SAFETY: all zero is a valid message.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len() as _;
    with(&mut message)
}

fn send(socket: RawFd, descriptor: &OwnedFd) -> io::Result<()> {
    message(|message| {
        // SAFETY: the message has room for one header with one descriptor.
        unsafe {
            let header = libc::CMSG_FIRSTHDR(message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(4) as _;
            libc::CMSG_DATA(header)
                .cast::<RawFd>()
                .write_unaligned(descriptor.as_raw_fd());
            os::check(libc::sendmsg(socket, message, 0) as i32).map(drop)
        }
    })
}

/// Returns the descriptor that is in the socket; None if there is none.
fn receive(socket: RawFd) -> Option<OwnedFd> {
    message(|message| {
        // SAFETY: as in `send`; the kernel has made the descriptor for this process.
        unsafe {
            let flags = libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT;
            let header = match libc::recvmsg(socket, message, flags) {
                1 => libc::CMSG_FIRSTHDR(message).as_ref()?,
                _ => return None,
            };
            (header.cmsg_type == libc::SCM_RIGHTS).then(|| {
                OwnedFd::from_raw_fd(libc::CMSG_DATA(header).cast::<RawFd>().read_unaligned())
            })
        }
    })
}

/// A call that waits for its answer.
struct Call {
    id: u64,
    thread: u32,
    arguments: [u64; 6],
}

impl Rings {
    fn answer(&mut self, listener: RawFd) {
        // SAFETY: the kernel requires that the structure that it fills is all zero.
        let mut notice: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: the structure is valid.
        if unsafe { libc::ioctl(listener, RECEIVE as _, &raw mut notice) } != 0 {
            return; // the program has ended
        }
        let call = Call {
            id: notice.id,
            thread: notice.pid,
            arguments: notice.data.args,
        };
        let error = match self.set(listener, &call) {
            Ok(()) => 0,
            Err(e) => -e.raw_os_error().unwrap_or(libc::EIO),
        };
        let mut answer = libc::seccomp_notif_resp {
            id: call.id,
            val: 0,
            error,
            flags: 0,
        };
        // SAFETY: the structure is valid. An error means that the program has ended.
        unsafe { libc::ioctl(listener, SEND as _, &raw mut answer) };
    }

    /// Sets the option on the program's socket. Returns ENOMEM if the ring is larger than the rest of the
    /// limit.
    fn set(&mut self, listener: RawFd, call: &Call) -> io::Result<()> {
        let [socket, _, option, address, length, _] = call.arguments;
        let (option, length) = (option as i32, (length as usize).min(REQUEST_BYTES));
        let mut request = [0u8; REQUEST_BYTES];
        fs::File::open(format!("/proc/{}/mem", call.thread))?
            .read_exact_at(&mut request[..length], address)
            .map_err(|_| io::Error::from_raw_os_error(libc::EFAULT))?;
        let socket = descriptor_of(leader(call.thread)?, socket as RawFd)?;
        // SAFETY: the argument is plain data. The data read above belongs to the caller only if its call
        // still waits.
        os::check(unsafe { libc::ioctl(listener, IS_VALID as _, &raw const call.id) })?;
        let word = |at: usize| {
            u64::from(u32::from_ne_bytes(
                request[at..at + 4].try_into().expect("4"),
            ))
        };
        let bytes = word(0) * word(4); // tp_block_size, tp_block_nr
        let ring = (inode(&socket)?, option);
        let sockets = listed()?;
        self.taken.retain(|(inode, _), _| sockets.contains(inode));
        let others: u64 = self
            .taken
            .iter()
            .filter(|(other, _)| **other != ring)
            .map(|(_, b)| b)
            .sum();
        if bytes != 0 && others + bytes > self.limit {
            return Err(io::Error::from_raw_os_error(libc::ENOMEM));
        }
        // SAFETY: the request has at least `length` bytes.
        os::check(unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_PACKET,
                option,
                request.as_ptr().cast(),
                length as libc::socklen_t,
            )
        })?;
        self.taken.insert(ring, bytes);
        Ok(())
    }
}

/// Returns the number of the process to which a thread belongs.
fn leader(thread: u32) -> io::Result<i32> {
    let status = fs::read_to_string(format!("/proc/{thread}/status"))?;
    let found = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    found
        .and_then(|pid| pid.trim().parse().ok())
        .ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))
}

/// Returns a copy of another process's descriptor.
fn descriptor_of(pid: i32, fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: plain numbers.
    unsafe {
        let process = os::own(libc::syscall(libc::SYS_pidfd_open, pid, 0) as i32)?;
        os::own(libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), fd, 0) as i32)
    }
}

fn inode(socket: &OwnedFd) -> io::Result<u64> {
    // SAFETY: all zero is a valid structure, which the kernel fills.
    unsafe {
        let mut found: libc::stat = std::mem::zeroed();
        os::check(libc::fstat(socket.as_raw_fd(), &mut found))?;
        Ok(found.st_ino)
    }
}

/// Returns the inodes of all packet sockets of this node. /proc lists a closed socket, too, while a program
/// has mapped its ring.
fn listed() -> io::Result<Vec<u64>> {
    let text = fs::read_to_string("/proc/self/net/packet")?;
    let inodes = text
        .lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().last());
    Ok(inodes.filter_map(|inode| inode.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(number: i64, level: i32, option: i32) -> u32 {
        let (program, mut at, mut loaded) = (filter(), 0, 0);
        loop {
            let one = program[at];
            let held = match u32::from(one.code) & !libc::BPF_K {
                code if code == libc::BPF_RET => return one.k,
                code if code == libc::BPF_JMP | libc::BPF_JEQ => loaded == one.k,
                _ => {
                    loaded = match one.k {
                        0 => number as u32,
                        24 => level as u32,
                        _ => option as u32,
                    };
                    true
                }
            };
            at += 1 + usize::from(if held { one.jt } else { one.jf });
        }
    }

    #[test]
    fn only_the_options_that_make_rings_reach_the_agent() {
        for option in 0..40 {
            let ring = [libc::PACKET_RX_RING, libc::PACKET_TX_RING].contains(&option);
            let wanted = if ring {
                libc::SECCOMP_RET_USER_NOTIF
            } else {
                libc::SECCOMP_RET_ALLOW
            };
            assert_eq!(
                verdict(libc::SYS_setsockopt, libc::SOL_PACKET, option),
                wanted,
                "{option}"
            );
            assert_eq!(
                verdict(libc::SYS_setsockopt, libc::SOL_SOCKET, option),
                libc::SECCOMP_RET_ALLOW
            );
            assert_eq!(
                verdict(libc::SYS_getsockopt, libc::SOL_PACKET, option),
                libc::SECCOMP_RET_ALLOW
            );
        }
    }

    #[test]
    fn a_descriptor_passes_through_a_socket() {
        let (mine, theirs) = UnixStream::pair().unwrap();
        assert!(receive(mine.as_raw_fd()).is_none(), "nothing was sent");
        let file = OwnedFd::from(fs::File::open("/proc/self/status").unwrap());
        send(theirs.as_raw_fd(), &file).unwrap();
        let passed = receive(mine.as_raw_fd()).unwrap();
        assert_eq!(inode(&passed).unwrap(), inode(&file).unwrap());
    }
}
