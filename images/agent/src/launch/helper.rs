//! Starts helper processes beside the event loop, for sampling, link proofs and test frames: each is
//! forked, and answers by lines over a pipe.

use crate::os::{self, Res};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

pub struct Helper {
    pub pid: i32,
    pipe: OwnedFd,
    text: Vec<u8>,
}

impl Helper {
    /// Forks a child that runs `work`, writes the text that `work` returns to the pipe, and ends. The
    /// argument of `work` is a function that writes a text to the pipe at once. The child inherits only
    /// `needs` and the standard descriptors, and is killed if this process ends.
    pub fn start(needs: &[RawFd], work: impl FnOnce(&dyn Fn(&str)) -> String) -> Res<Self> {
        let fail = |e: std::io::Error| format!("a helper process cannot be forked: {e}");
        let (reader, writer) = os::pipe().map_err(fail)?;
        let parent = std::process::id() as i32;
        // SAFETY: the launcher is single threaded.
        let pid = os::check(unsafe { libc::fork() }).map_err(fail)?;
        if pid == 0 {
            os::die_with_parent(parent, libc::SIGKILL);
            unblock_signals();
            // Copies of sockets would keep them open after the parent closes them: their peers would see no end, and
            // the launcher's epoll would report them for ever.
            close_all_but(&[needs, &[writer.as_raw_fd()]].concat());
            let send = |text: &str| write_all(writer.as_raw_fd(), text.as_bytes());
            let text = work(&send);
            send(&text);
            // SAFETY: the child ends here, and does not drop the launcher's state.
            unsafe { libc::_exit(0) }
        }
        os::set_nonblocking(reader.as_raw_fd()).map_err(fail)?;
        Ok(Self {
            pid,
            pipe: reader,
            text: Vec::new(),
        })
    }

    pub fn raw(&self) -> RawFd {
        self.pipe.as_raw_fd()
    }

    /// Returns the next whole line without its newline, and never waits. Returns None if no line is complete
    /// yet, and an error if the process has ended and all its whole lines were read.
    pub fn read(&mut self) -> Option<Res<String>> {
        let mut chunk = [0u8; 65536];
        loop {
            if let Some(end) = self.text.iter().position(|b| *b == b'\n') {
                let rest = self.text.split_off(end + 1);
                let line = std::mem::replace(&mut self.text, rest);
                return Some(Ok(String::from_utf8_lossy(&line[..end]).into_owned()));
            }
            match os::read(self.raw(), &mut chunk) {
                Ok(0) => {
                    return Some(Err(
                        "a helper process ended without an answer; see the launcher's log"
                            .to_owned(),
                    ));
                }
                Ok(n) => self.text.extend_from_slice(&chunk[..n]),
                Err(_) => return None,
            }
        }
    }

    pub fn end(&self) {
        if os::kill(self.pid, libc::SIGKILL).is_err() {
            eprintln!("helper process {} had ended already", self.pid);
        }
    }
}

/// Closes all descriptors above the standard ones except `kept`, whoever owns them. Call it only in a forked
/// child, which never uses or drops the Rust values that own them.
fn close_all_but(kept: &[RawFd]) {
    let mut kept: Vec<libc::c_uint> = kept.iter().map(|fd| *fd as libc::c_uint).collect();
    kept.sort_unstable();
    let mut first = 3;
    for fd in kept.into_iter().chain([libc::c_uint::MAX]) {
        if fd > first {
            // SAFETY: plain numbers. The call fails only for an empty range.
            unsafe { libc::close_range(first, fd - 1, 0) };
        }
        first = first.max(fd.saturating_add(1));
    }
}

fn unblock_signals() {
    // SAFETY: the set is valid and empty. The inherited mask blocks the signals that the launcher reads from
    // its signalfd.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &set, std::ptr::null_mut());
    }
}

fn write_all(fd: RawFd, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match os::write(fd, bytes) {
            Ok(n) => bytes = &bytes[n..],
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    /// Starts a helper that sleeps; it inherits one end of a socket pair only if `needed`. Closes that end in
    /// this process, reads the other end for at most 500 ms, and returns the result.
    fn after_closing(needed: bool) -> std::io::Result<usize> {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let needs = if needed {
            vec![ours.as_raw_fd()]
        } else {
            Vec::new()
        };
        let mut helper = Helper::start(&needs, |send| {
            send("up\n");
            std::thread::sleep(Duration::from_secs(60));
            String::new()
        })
        .unwrap();
        while helper.read().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(ours);
        theirs
            .set_read_timeout(Some(Duration::from_millis(500)))
            .unwrap();
        let read = theirs.read(&mut [0]);
        helper.end();
        read
    }

    #[test]
    fn every_line_of_a_helper_that_has_ended_is_read() {
        let mut helper = Helper::start(&[], |_| "one\ntwo\n".to_owned()).unwrap();
        let mut status = 0;
        // SAFETY: status is a valid int.
        unsafe { libc::waitpid(helper.pid, &mut status, 0) };
        assert_eq!(helper.read(), Some(Ok("one".to_owned())));
        assert_eq!(helper.read(), Some(Ok("two".to_owned())));
        assert!(helper.read().unwrap().is_err());
    }

    #[test]
    fn a_helper_keeps_only_needed_descriptors_open() {
        assert_eq!(after_closing(false).unwrap(), 0);
        assert!(after_closing(true).is_err(), "it is still open there");
    }
}
