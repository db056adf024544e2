//! Implements the launcher's control socket: a listening Unix socket, or in a VM a virtio-serial port
//! whose other end is on the host.

use super::{Launcher, Options};
use crate::channel::Channel;
use crate::os::{self, Res};
use std::fs::Permissions;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixListener;

/// The state of the host's end of a port, as the guest sees it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum HostEnd {
    Open,
    Closed,
    /// Data has arrived before the notice that the host's end is open, since both travel separately. Answers
    /// wait for that notice.
    DataFirst,
}

pub enum ControlSocket {
    Unix(UnixListener),
    /// A virtio-serial port; its channel is the client as long as the launcher runs.
    Port {
        host: HostEnd,
    },
}

impl ControlSocket {
    /// Opens the socket or port that the options name. Returns also the channel of a port; None for a
    /// socket, which has no channel until a client connects.
    pub fn open(options: &Options) -> Res<(Self, Option<Channel>)> {
        if options.port.is_empty() {
            return Ok((Self::Unix(listen(&options.socket)?), None));
        }
        let channel = open_port(&options.port)?;
        Ok((
            Self::Port {
                host: HostEnd::Open,
            },
            Some(channel),
        ))
    }

    pub fn listener(&self) -> Option<RawFd> {
        match self {
            Self::Unix(listener) => Some(listener.as_raw_fd()),
            Self::Port { .. } => None,
        }
    }

    /// Removes the file of a Unix socket; does nothing for a port.
    pub fn close(&self, options: &Options) -> Res<()> {
        match self {
            Self::Unix(_) => std::fs::remove_file(&options.socket)
                .map_err(|e| format!("--socket {}: {e}", options.socket)),
            Self::Port { .. } => Ok(()),
        }
    }
}

/// Creates the socket under a temporary name, and renames it once it accepts connections and only its owner
/// may connect, whatever the umask. A client that waits for the name can therefore connect at once.
fn listen(socket: &str) -> Res<UnixListener> {
    let fail = |e: std::io::Error| {
        format!("--socket {socket}: {e}; the directory must exist and be writable")
    };
    let early = format!("{socket}.new");
    match std::fs::remove_file(&early) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(fail(e)),
        _ => {}
    }
    let listener = UnixListener::bind(&early).map_err(fail)?;
    std::fs::set_permissions(&early, Permissions::from_mode(0o600)).map_err(fail)?;
    std::fs::rename(&early, socket).map_err(fail)?;
    listener.set_nonblocking(true).map_err(fail)?;
    Ok(listener)
}

fn open_port(path: &str) -> Res<Channel> {
    let file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)
        .map_err(|e| {
            format!("--port {path}: {e}; the VM needs a virtio-serial port of this name, opened by one agent only")
        })?;
    Channel::new(OwnedFd::from(file)).map_err(|e| format!("--port {path}: {e}"))
}

impl Launcher {
    /// Updates the state of the port's host end from the poll `events` of the port; `data` is true if data
    /// has arrived. Drops unsent output if data arrives with a hang-up although the host's end counted as
    /// open. Does nothing for a socket.
    pub(super) fn notice_host(&mut self, events: u32, data: bool) {
        let hung_up = events & libc::EPOLLHUP as u32 != 0;
        let (ControlSocket::Port { host }, Some(client)) =
            (&mut self.control_socket, &mut self.client)
        else {
            return;
        };
        match (*host, hung_up) {
            (HostEnd::Closed | HostEnd::DataFirst, false) => {
                *host = HostEnd::Open;
                self.rewatch_client();
            }
            (HostEnd::Open, true) if data => {
                *host = HostEnd::DataFirst;
                client.forget_output();
                self.watch_for_host();
            }
            (HostEnd::Closed, true) if data => *host = HostEnd::DataFirst,
            _ => {}
        }
    }

    /// Makes epoll report the port edge triggered, so that it wakes the launcher when the host's end opens; a
    /// level-triggered port with a closed host end is always ready.
    fn watch_for_host(&self) {
        let Some(fd) = self.client.as_ref().map(Channel::raw) else {
            return;
        };
        let mut event = libc::epoll_event {
            events: (libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLET) as u32,
            u64: fd as u64,
        };
        let epoll = self.epoll.as_raw_fd();
        // SAFETY: event is valid; epoll and fd are open.
        let done = unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_MOD, fd, &mut event) };
        if let Err(e) = os::check(done) {
            eprintln!("launcher: port: {e}");
        }
    }

    /// Handles the end of a client: drops a socket's channel; empties a port, which then waits for the next
    /// client.
    pub(super) fn client_gone(&mut self) {
        let (ControlSocket::Port { host }, Some(client)) =
            (&mut self.control_socket, &mut self.client)
        else {
            self.client = None;
            return;
        };
        if *host == HostEnd::Open {
            *host = HostEnd::Closed;
            client.forget();
            self.watch_for_host();
        }
    }

    /// Returns true if the launcher has a port and waits for the notice that its host's end is open.
    pub(super) fn waits_for_host(&self) -> bool {
        matches!(&self.control_socket, ControlSocket::Port { host } if *host != HostEnd::Open)
    }

    /// Returns true if there is a client that receives data sent now: a socket's client, or a port whose
    /// host's end is not closed.
    pub(super) fn has_reader(&self) -> bool {
        self.client.is_some()
            && !matches!(
                self.control_socket,
                ControlSocket::Port {
                    host: HostEnd::Closed
                }
            )
    }
}
