//! Wraps system calls that the standard library lacks in safe functions.

pub mod epoll;

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// A result whose error is a sentence for the user: place, value, rule, remedy.
pub type Res<T> = Result<T, String>;

/// Turns a C return value into a result: a negative one becomes the error in errno.
pub fn check(value: libc::c_int) -> io::Result<libc::c_int> {
    if value < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(value)
    }
}

fn c(text: &str) -> CString {
    // Names in the plan contain no NUL; if one did, the kernel would refuse the empty name that replaces it
    // here.
    CString::new(text).unwrap_or_default()
}

/// Repeats a call until no signal interrupts it; returns the number of bytes.
fn uninterrupted(mut call: impl FnMut() -> libc::ssize_t) -> io::Result<usize> {
    loop {
        if let Ok(n) = usize::try_from(call()) {
            return Ok(n);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

pub fn read(fd: RawFd, buf: &mut [u8]) -> io::Result<usize> {
    // SAFETY: buf is valid for its length.
    uninterrupted(|| unsafe { libc::read(fd, buf.as_mut_ptr().cast(), buf.len()) })
}

/// Reads at most `most` bytes and appends them to `buf`; returns their number. Does not zero the unused
/// space, since writing to it would make a node copy pages that it shares with the launcher.
pub fn append(fd: RawFd, buf: &mut Vec<u8>, most: usize) -> io::Result<usize> {
    buf.reserve(most);
    let room = buf.spare_capacity_mut();
    // SAFETY: the spare capacity is at least `most` bytes.
    let n = uninterrupted(|| unsafe { libc::read(fd, room.as_mut_ptr().cast(), most) })?;
    // SAFETY: the kernel has written n bytes.
    unsafe { buf.set_len(buf.len() + n) };
    Ok(n)
}

/// Writes to a descriptor; returns the number of bytes written, which can be less than all. The process
/// ignores SIGPIPE, so that a closed pipe gives an error.
pub fn write(fd: RawFd, buf: &[u8]) -> io::Result<usize> {
    // SAFETY: buf is valid for its length.
    uninterrupted(|| unsafe { libc::write(fd, buf.as_ptr().cast(), buf.len()) })
}

pub fn set_nonblocking(fd: RawFd) -> io::Result<()> {
    // SAFETY: fcntl gets a descriptor that the caller owns, and plain numbers.
    unsafe {
        let flags = check(libc::fcntl(fd, libc::F_GETFL))?;
        check(libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK))?;
    }
    Ok(())
}

/// Takes ownership of a descriptor that a system call has just returned; a negative value becomes an error.
pub fn own(fd: libc::c_int) -> io::Result<OwnedFd> {
    let fd = check(fd)?;
    // SAFETY: the caller got fd from a system call and passes it on only here.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Opens a pipe; returns the end to read from and the end to write to.
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors.
    check(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
    Ok((own(ends[0])?, own(ends[1])?))
}

/// Waits for events on the descriptors for at most `timeout_ms` (negative: for ever); returns how many are
/// ready, 0 after the timeout or a signal.
pub fn poll(fds: &mut [libc::pollfd], timeout_ms: i32) -> io::Result<usize> {
    // SAFETY: fds is a valid slice of pollfd.
    let n = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout_ms) };
    match check(n) {
        Ok(n) => Ok(n as usize),
        Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(0),
        Err(e) => Err(e),
    }
}

/// Waits for events as `poll` does, with a timeout in nanoseconds, which must not be negative.
pub fn poll_ns(fds: &mut [libc::pollfd], timeout_ns: i64) -> io::Result<usize> {
    let timeout = libc::timespec {
        tv_sec: timeout_ns / 1_000_000_000,
        tv_nsec: timeout_ns % 1_000_000_000,
    };
    // SAFETY: fds is a valid slice of pollfd; the signal mask stays unchanged.
    let n = unsafe {
        let count = fds.len() as libc::nfds_t;
        libc::ppoll(fds.as_mut_ptr(), count, &timeout, std::ptr::null())
    };
    match check(n) {
        Ok(n) => Ok(n as usize),
        Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(0),
        Err(e) => Err(e),
    }
}

pub fn unshare(flags: libc::c_int) -> io::Result<()> {
    // SAFETY: no memory is involved; the process is single threaded.
    check(unsafe { libc::unshare(flags) }).map(drop)
}

/// Moves this (single-threaded) process into a network namespace.
pub fn enter_netns(fd: &impl AsRawFd) -> io::Result<()> {
    // SAFETY: fd is open.
    check(unsafe { libc::setns(fd.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
}

pub fn mount(source: &str, target: &str, fstype: &str, flags: libc::c_ulong) -> io::Result<()> {
    let (source, target, fstype) = (c(source), c(target), c(fstype));
    // SAFETY: the call gets three valid C strings, and no data.
    check(unsafe {
        libc::mount(
            source.as_ptr(),
            target.as_ptr(),
            fstype.as_ptr(),
            flags,
            std::ptr::null(),
        )
    })
    .map(drop)
}

/// Unmounts lazily, with everything that is mounted below.
pub fn unmount(target: &str) -> io::Result<()> {
    let target = c(target);
    // SAFETY: a valid C string.
    check(unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) }).map(drop)
}

pub fn set_hostname(name: &str) -> io::Result<()> {
    // SAFETY: the pointer and the length describe the same text.
    check(unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) }).map(drop)
}

pub fn hostname() -> io::Result<String> {
    std::fs::read_to_string("/proc/sys/kernel/hostname").map(|s| s.trim_end().to_owned())
}

pub fn kill(pid: i32, signal: i32) -> io::Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::kill(pid, signal) }).map(drop)
}

/// Makes the kernel send `signal` to this process when its parent ends; returns false if the parent does not
/// have the pid `parent`, since it has already ended or is in another PID namespace.
pub fn die_with_parent(parent: i32, signal: i32) -> bool {
    // SAFETY: the arguments of prctl are plain numbers.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, signal);
        libc::getppid() == parent
    }
}

/// Makes this process the parent of orphaned descendants, so that it can reap and end them.
pub fn become_subreaper() {
    // SAFETY: the arguments of prctl are plain numbers.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
}

/// Reduces the timer slack of this process from 50 us to 1 ns.
pub fn reduce_timer_slack() {
    // SAFETY: the arguments of prctl are plain numbers.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

/// Raises this process's limit of open files to 65,536, or to the hard limit if it lacks the right to raise
/// that; 350 nodes need several thousand files. A higher limit stays as it is.
pub fn raise_open_files() {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: limit is a valid rlimit. With CAP_SYS_RESOURCE the hard limit rises too, otherwise only the soft one.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) != 0 {
            return;
        }
        let wide = libc::rlimit {
            rlim_cur: limit.rlim_cur.max(65_536),
            rlim_max: limit.rlim_max.max(65_536),
        };
        if libc::setrlimit(libc::RLIMIT_NOFILE, &wide) != 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}

/// Blocks the signals and returns a non-blocking descriptor from which they are read.
pub fn signal_fd(signals: &[i32]) -> io::Result<OwnedFd> {
    // SAFETY: the set is initialised before use.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for s in signals {
            libc::sigaddset(&mut set, *s);
        }
        libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        own(libc::signalfd(
            -1,
            &set,
            libc::SFD_NONBLOCK | libc::SFD_CLOEXEC,
        ))
    }
}

/// Reads all pending signals of a `signal_fd`; returns their numbers and senders' pids (0: a sender outside
/// this PID namespace).
pub fn read_senders(fd: RawFd) -> Vec<(i32, i32)> {
    let mut seen = Vec::new();
    let mut buf = [0u8; 128];
    let number = |buf: &[u8], at: usize| {
        i32::from_ne_bytes([buf[at], buf[at + 1], buf[at + 2], buf[at + 3]])
    };
    while let Ok(128) = read(fd, &mut buf) {
        seen.push((number(&buf, 0), number(&buf, 12))); // ssi_signo, ssi_pid
    }
    seen
}

/// Reads all pending signals of a `signal_fd`; returns their numbers.
pub fn read_signals(fd: RawFd) -> Vec<i32> {
    read_senders(fd)
        .into_iter()
        .map(|(number, _)| number)
        .collect()
}

/// Reaps an ended child; returns its pid and exit status, which is 128 + n for signal n. None if no child has
/// ended.
pub fn reap() -> Option<(i32, i32)> {
    let mut status = 0;
    // SAFETY: status is a valid int.
    let pid = unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) };
    if pid <= 0 {
        return None;
    }
    let code = if libc::WIFSIGNALED(status) {
        128 + libc::WTERMSIG(status)
    } else {
        libc::WEXITSTATUS(status)
    };
    Some((pid, code))
}

/// A change of a child's state.
#[derive(Debug, PartialEq, Eq)]
pub enum Change {
    Ended,
    /// By SIGSTOP or another signal that stops processes.
    Stopped,
    Continued,
}

/// Returns the next change of a child and its pid, and reaps the child if it has ended; None if there is no
/// change.
pub fn child_change() -> Option<(i32, Change)> {
    let flags = libc::WNOHANG | libc::WUNTRACED | libc::WCONTINUED;
    let mut status = 0;
    // SAFETY: status is a valid int.
    let pid = unsafe { libc::waitpid(-1, &mut status, flags) };
    let change = if libc::WIFSTOPPED(status) {
        Change::Stopped
    } else if libc::WIFCONTINUED(status) {
        Change::Continued
    } else {
        Change::Ended
    };
    (pid > 0).then_some((pid, change))
}

/// A timer that is set to times of CLOCK_MONOTONIC.
pub struct Timer {
    fd: OwnedFd,
    armed_ns: i64,
}

impl Timer {
    pub fn new() -> io::Result<Self> {
        // SAFETY: plain numbers.
        let fd = own(unsafe {
            libc::timerfd_create(
                libc::CLOCK_MONOTONIC,
                libc::TFD_NONBLOCK | libc::TFD_CLOEXEC,
            )
        })?;
        Ok(Self { fd, armed_ns: 0 })
    }

    pub fn raw(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Sets the timer to `at_ns` (monotonic), or disarms it if that is None; makes no system call if nothing
    /// changes.
    pub fn set(&mut self, at_ns: Option<i64>) {
        let at = at_ns.map_or(0, |t| t.max(1));
        if at == self.armed_ns {
            return;
        }
        self.armed_ns = at;
        let spec = libc::itimerspec {
            it_interval: libc::timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: libc::timespec {
                tv_sec: at / 1_000_000_000,
                tv_nsec: at % 1_000_000_000,
            },
        };
        // SAFETY: spec is valid, and the old value is not requested.
        unsafe {
            libc::timerfd_settime(
                self.raw(),
                libc::TFD_TIMER_ABSTIME,
                &spec,
                std::ptr::null_mut(),
            );
        }
    }

    /// Acknowledges that the timer has fired, so that its descriptor is no longer readable.
    pub fn clear(&mut self) {
        let mut buf = [0u8; 8];
        if read(self.raw(), &mut buf).is_ok() {
            self.armed_ns = 0;
        }
    }
}

/// Returns the number of the signal with this name, such as "SIGTERM", "TERM" or "15"; an error for an
/// unknown name.
pub fn signal_number(name: &str) -> Res<i32> {
    let bare = name.strip_prefix("SIG").unwrap_or(name);
    Ok(match bare {
        "HUP" => libc::SIGHUP,
        "INT" => libc::SIGINT,
        "QUIT" => libc::SIGQUIT,
        "KILL" => libc::SIGKILL,
        "USR1" => libc::SIGUSR1,
        "USR2" => libc::SIGUSR2,
        "PIPE" => libc::SIGPIPE,
        "ALRM" => libc::SIGALRM,
        "TERM" => libc::SIGTERM,
        "CONT" => libc::SIGCONT,
        "STOP" => libc::SIGSTOP,
        "TSTP" => libc::SIGTSTP,
        "WINCH" => libc::SIGWINCH,
        _ => bare.parse::<i32>().ok().filter(|n| (1..=64).contains(n)).ok_or_else(|| {
            format!("signal: \"{name}\" is unknown; write a name such as SIGTERM or a number from 1 to 64")
        })?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn append_keeps_earlier_bytes() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut buffer = b"before ".to_vec();
        write(theirs.as_raw_fd(), b"more than requested").unwrap();
        assert_eq!(append(ours.as_raw_fd(), &mut buffer, 4).unwrap(), 4);
        assert_eq!(buffer, b"before more");
        set_nonblocking(ours.as_raw_fd()).unwrap();
        assert_eq!(append(ours.as_raw_fd(), &mut buffer, 64).unwrap(), 15);
        assert!(append(ours.as_raw_fd(), &mut buffer, 64).is_err());
        assert_eq!(buffer, b"before more than requested");
    }

    #[test]
    fn a_higher_limit_of_open_files_stays() {
        let limits = || {
            let mut found = libc::rlimit {
                rlim_cur: 0,
                rlim_max: 0,
            };
            // SAFETY: a valid rlimit.
            unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut found) };
            found
        };
        let mut wide = limits();
        wide.rlim_max = wide.rlim_max.max(70_000);
        wide.rlim_cur = wide.rlim_max;
        // SAFETY: the limit is a valid rlimit. If the process may not raise the hard limit, the test uses the
        // present one.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &wide) };
        let before = limits().rlim_cur;
        raise_open_files();
        assert_eq!(limits().rlim_cur, before.max(65_536.min(limits().rlim_max)));
    }

    #[test]
    fn an_interrupted_call_is_repeated() {
        let fail_with = |code| {
            // SAFETY: errno belongs to this thread.
            unsafe { *libc::__errno_location() = code };
            -1
        };
        let mut coming = vec![libc::EINTR, libc::EINTR].into_iter();
        let done = uninterrupted(|| coming.next().map_or(7, fail_with));
        assert_eq!(done.unwrap(), 7);
        let failed = uninterrupted(|| fail_with(libc::EPIPE)).unwrap_err();
        assert_eq!(failed.kind(), io::ErrorKind::BrokenPipe);
    }
}
