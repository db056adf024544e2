//! Starts and ends programs. Each program has its own session and no inherited signal mask, and ends with the
//! agent.

use super::rings::{self, Passage};
use crate::os;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, OsStr, OsString, c_char, c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::Command;

/// Bytes of the stack of a child until it executes its program.
const STACK_BYTES: usize = 256 << 10;

unsafe extern "C" {
    static mut environ: *const *const c_char;
}

/// Starts the program of `command` in a session of its own and returns its pid; the kernel kills it when the
/// agent ends. `streams` are its standard input, output and error; None: those of this process. `tty` makes
/// its standard input the controlling terminal.
///
/// The child shares this process's memory until it executes the program (vfork), since a copy of the agent's
/// page tables costs 7 % of the CPU time of a node that starts one program (bench/nodes_against.py). Streams
/// that the command itself has are ignored.
pub fn spawn(command: &Command, streams: Option<[OwnedFd; 3]>, tty: bool) -> io::Result<i32> {
    let argv = texts(std::iter::once(command.get_program()).chain(command.get_args()))?;
    let env = texts(environment(command).iter().map(OsString::as_os_str))?;
    let directory = command
        .get_current_dir()
        .map(Path::as_os_str)
        .map(text)
        .transpose()?;
    let (argv, env) = (pointers(&argv), pointers(&env));
    let passage = rings::passage()?;
    let mut start = Start {
        argv: argv.as_ptr(),
        directory: directory.as_deref(),
        streams: streams
            .as_ref()
            .map(|ends| ends.each_ref().map(AsRawFd::as_raw_fd)),
        tty,
        parent: std::process::id() as i32,
        passage: passage.as_ref(),
        error: 0,
    };
    let stack = Stack::new()?;
    // SAFETY: the agent has one thread, which waits until the child has ended or executed its program. Until
    // then the child uses `start`, `env` and a stack of its own, and calls async-signal-safe functions only.
    let pid = unsafe {
        let own = environ;
        environ = env.as_ptr();
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        let pid = libc::clone(run, stack.top(), flags, (&raw mut start).cast());
        environ = own;
        os::check(pid)?
    };
    if start.error != 0 {
        let mut status = 0;
        // SAFETY: status is a valid int; the child has ended.
        unsafe { libc::waitpid(pid, &mut status, 0) };
        return Err(io::Error::from_raw_os_error(start.error));
    }
    // The node's loop reaps the child by its pid.
    rings::started(passage);
    Ok(pid)
}

/// The stack of a child until it executes its program.
struct Stack(*mut c_void);

impl Stack {
    fn new() -> io::Result<Self> {
        let (access, kind) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
        );
        // SAFETY: a new mapping, which replaces none.
        let bottom = unsafe { libc::mmap(std::ptr::null_mut(), STACK_BYTES, access, kind, -1, 0) };
        if bottom == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self(bottom))
    }

    /// Returns the address at which the stack begins; it grows downwards.
    fn top(&self) -> *mut c_void {
        // SAFETY: the address behind the mapping's last byte.
        unsafe { self.0.byte_add(STACK_BYTES) }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`, which nothing uses any more.
        unsafe { libc::munmap(self.0, STACK_BYTES) };
    }
}

/// Opens /dev/null as a stream of a program.
pub fn null() -> io::Result<OwnedFd> {
    let options = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null");
    options.map(OwnedFd::from)
}

/// The data of a child until it executes its program, in the memory of the agent.
struct Start<'a> {
    argv: *const *const c_char,
    directory: Option<&'a CStr>,
    streams: Option<[RawFd; 3]>,
    tty: bool,
    parent: i32,
    passage: Option<&'a Passage>,
    /// The number of the error that kept the program from starting; 0: none.
    error: i32,
}

extern "C" fn run(start: *mut c_void) -> c_int {
    // SAFETY: the agent waits meanwhile and does not touch its `Start`; after an error the child only ends.
    unsafe {
        let start = &mut *start.cast::<Start>();
        let error = match prepare(start) {
            Ok(()) => {
                libc::execvp(*start.argv, start.argv);
                io::Error::last_os_error()
            }
            Err(error) => error,
        };
        start.error = error.raw_os_error().unwrap_or(libc::EINVAL);
        libc::_exit(127)
    }
}

/// Sets up the child: streams, directory, session, signals, terminal and the filter of `rings`.
fn prepare(start: &Start) -> io::Result<()> {
    // SAFETY: plain calls with valid arguments.
    unsafe {
        for (fd, place) in start.streams.into_iter().flatten().zip(0..) {
            os::check(libc::dup2(fd, place))?;
        }
        if let Some(directory) = start.directory {
            os::check(libc::chdir(directory.as_ptr()))?;
        }
        libc::setsid();
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
        // Rust's runtime ignores this signal, and an ignored one stays so across exec.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        if !os::die_with_parent(start.parent, libc::SIGKILL) {
            return Err(io::Error::from_raw_os_error(libc::ECHILD));
        }
        if start.tty {
            os::check(libc::ioctl(0, libc::TIOCSCTTY, 0))?;
        }
    }
    start.passage.map_or(Ok(()), Passage::take)
}

/// Returns the environment of a command's program, each variable as NAME=VALUE: this process's, changed as
/// the command says.
fn environment(command: &Command) -> Vec<OsString> {
    let mut found: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => found.insert(name.to_owned(), value.to_owned()),
            None => found.remove(name),
        };
    }
    let line =
        |(name, value): (OsString, OsString)| [name.as_bytes(), b"=", value.as_bytes()].concat();
    found
        .into_iter()
        .map(line)
        .map(OsString::from_vec)
        .collect()
}

fn text(word: &OsStr) -> io::Result<CString> {
    CString::new(word.as_bytes()).map_err(io::Error::from)
}

fn texts<'a>(words: impl Iterator<Item = &'a OsStr>) -> io::Result<Vec<CString>> {
    words.map(text).collect()
}

/// Returns the addresses of the texts and a null after them, as exec takes them.
fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts
        .iter()
        .map(|text| text.as_ptr())
        .chain([std::ptr::null()])
        .collect()
}

/// Sends a signal to the process group of the program `pid`, or to it alone if there is no such group; only
/// prints a message if the program has ended.
pub fn signal_group(pid: i32, signal: i32) {
    if os::kill(-pid, signal).is_err() && os::kill(pid, signal).is_err() {
        eprintln!("process {pid}: had ended before signal {signal}");
    }
}

/// Sends a signal to the process group of the program `pid` and to each of its descendants, parents first, so
/// that with SIGSTOP no stopped process starts another one. Leaves out processes that have ended.
pub fn signal_all(pid: i32, signal: i32) {
    signal_group(pid, signal);
    let mut left = children_of(pid);
    while let Some(child) = left.pop() {
        // An error means that the process has ended meanwhile; then it has no children either.
        if os::kill(child, signal).is_ok() {
            left.extend(children_of(child));
        }
    }
}

/// Returns the children of all threads of process `pid`; empty if it has ended.
fn children_of(pid: i32) -> Vec<i32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"));
    threads
        .into_iter()
        .flatten()
        .flatten()
        .flat_map(|thread| listed(&thread.path().join("children")))
        .collect()
}

fn children() -> Vec<i32> {
    let file = format!("/proc/self/task/{}/children", std::process::id());
    listed(Path::new(&file))
}

/// Returns the pids in a file of /proc that lists children. Returns none if the kernel lacks this file
/// (CONFIG_PROC_CHILDREN); PDEATHSIG and the cgroup then end the programs.
fn listed(file: &Path) -> Vec<i32> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

/// Kills all descendants of this process. It repeats that, because this process is a subreaper: orphans
/// become its children and are killed in the next round. Stops after 1000 rounds; does nothing if /proc does
/// not list children.
pub fn end_all() {
    for _ in 0..1000 {
        let now = children();
        if now.is_empty() {
            return;
        }
        for pid in now {
            if os::kill(pid, libc::SIGKILL).is_err() {
                continue; // has ended meanwhile
            }
            let mut status = 0;
            // SAFETY: status is a valid int; a killed child ends at once.
            unsafe { libc::waitpid(pid, &mut status, 0) };
        }
    }
}

/// Creates a pipe and returns its reading and its writing end; both close on exec, and the reading end is
/// non-blocking.
pub fn output_pipe() -> io::Result<(std::os::fd::OwnedFd, std::os::fd::OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: the array has room for two descriptors.
    os::check(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
    let (reader, writer) = (os::own(ends[0])?, os::own(ends[1])?);
    os::set_nonblocking(reader.as_raw_fd())?;
    Ok((reader, writer))
}
