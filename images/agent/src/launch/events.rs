//! Implements the launcher's event loop: waits for descriptors, calls the handler of each ready one, and
//! accepts one client at a time.

use super::control_socket::ControlSocket;
use super::{Launcher, TICK_NS};
use crate::channel::Channel;
use crate::clock;
use crate::os::{self, Change, Res};
use serde_json::json;
use std::os::fd::{AsRawFd, RawFd};

impl Launcher {
    pub(super) fn watch(&self, fd: RawFd, write: bool, new: bool) -> std::io::Result<()> {
        let events = libc::EPOLLIN | if write { libc::EPOLLOUT } else { 0 };
        let mut event = libc::epoll_event {
            events: events as u32,
            u64: fd as u64,
        };
        let op = if new {
            libc::EPOLL_CTL_ADD
        } else {
            libc::EPOLL_CTL_MOD
        };
        // SAFETY: event is valid; epoll and fd are open.
        os::check(unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), op, fd, &mut event) }).map(drop)
    }

    pub(super) fn serve(&mut self) -> Res<()> {
        let mut next_tick = clock::mono_ns() + TICK_NS;
        while !self.quit {
            // Rounding down would make a busy loop of the last millisecond before every tick.
            let left_ns = (next_tick - clock::mono_ns()).max(0) as u64;
            let wait_ms = left_ns.div_ceil(1_000_000) as i32;
            for (fd, events) in self.wait(wait_ms)? {
                self.dispatch(fd, events);
            }
            if clock::mono_ns() >= next_tick {
                next_tick = clock::mono_ns() + TICK_NS;
                self.tick();
            }
        }
        self.records.flush()
    }

    fn wait(&self, timeout_ms: i32) -> Res<Vec<(RawFd, u32)>> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 128];
        // SAFETY: the array has room for 128 events.
        let n = unsafe {
            libc::epoll_wait(self.epoll.as_raw_fd(), events.as_mut_ptr(), 128, timeout_ms)
        };
        match os::check(n) {
            Ok(n) => Ok(events[..n as usize]
                .iter()
                .map(|e| (e.u64 as RawFd, e.events))
                .collect()),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => Ok(Vec::new()),
            Err(e) => Err(format!("launcher: {e}")),
        }
    }

    fn dispatch(&mut self, fd: RawFd, events: u32) {
        if Some(fd) == self.control_socket.listener() {
            self.accept();
        } else if fd == self.signals.as_raw_fd() {
            self.on_signals();
        } else if let Some(name) = self.by_fd.get(&fd).cloned() {
            self.on_node(&name, events);
        } else if self.client.as_ref().is_some_and(|c| c.raw() == fd) {
            self.on_client(events);
        } else if !self.on_capture(fd) {
            self.on_helper(fd);
        }
    }

    fn accept(&mut self) {
        let ControlSocket::Unix(listener) = &self.control_socket else {
            return;
        };
        let Ok((stream, _)) = listener.accept() else {
            return;
        };
        match Channel::new(stream.into()) {
            Ok(mut channel) if self.client.is_some() => {
                channel.send(&json!({"event": "error", "text": "launcher: another client is connected; one at a time"}).to_string());
            }
            Ok(channel) => {
                if let Err(e) = self.watch(channel.raw(), false, true) {
                    eprintln!("launcher: client: {e}");
                    return;
                }
                self.client = Some(channel);
            }
            Err(e) => eprintln!("launcher: client: {e}"),
        }
    }

    fn on_signals(&mut self) {
        for signal in os::read_signals(self.signals.as_raw_fd()) {
            if signal != libc::SIGCHLD {
                self.quit = true;
            }
        }
        // Node processes announce their end by closing their socket; here they are only reaped.
        while let Some((pid, change)) = os::child_change() {
            match change {
                Change::Ended => {}
                Change::Stopped => self.tell_of_child("stopped", pid),
                Change::Continued => self.tell_of_child("continued", pid),
            }
        }
    }

    /// Sends the client the event that a child was stopped or continued: the agent of `node`, or a helper of
    /// the launcher if `node` is null.
    fn tell_of_child(&mut self, event: &str, pid: i32) {
        let node = self.nodes.iter().find(|(_, node)| node.pid == pid);
        let name = node.map(|(name, _)| name.clone());
        self.send_client(&json!({"event": event, "node": name, "pid": pid}));
    }
}
