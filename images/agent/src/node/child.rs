//! Starts and ends programs. Each program has its own session and no inherited signal mask, and ends with the
//! agent.

use super::rings;
use crate::os;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Starts a program in a session of its own and returns its pid; the kernel kills it when the agent ends.
/// `tty` makes its standard input the controlling terminal.
pub fn spawn(command: &mut Command, tty: bool) -> io::Result<i32> {
    let parent = std::process::id() as i32;
    // SAFETY: between fork and exec the child makes only async-signal-safe calls.
    unsafe {
        command.pre_exec(move || {
            libc::setsid();
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
            if !os::die_with_parent(parent, libc::SIGKILL) {
                return Err(io::Error::from_raw_os_error(libc::ECHILD));
            }
            if tty {
                os::check(libc::ioctl(0, libc::TIOCSCTTY, 0))?;
            }
            Ok(())
        });
    }
    let passage = rings::install(command)?;
    // The node's loop reaps the child by its pid.
    let pid = command.spawn()?.id() as i32;
    rings::started(passage);
    Ok(pid)
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
