//! Where the client comes in: a listening socket, or in a VM the one virtio-serial port whose other end is on the host.

use super::{Launcher, Options};
use crate::channel::Channel;
use crate::os::{self, Res};
use std::fs::Permissions;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixListener;

/// The host end of a port, as far as the guest can see.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Host {
    Here,
    Away,
    /// Its words have come, the notice that it is open has not: they take two ways. Answers wait for the notice.
    Ahead,
}

pub enum Door {
    Socket(UnixListener),
    /// The channel stays the client all the time.
    Port {
        host: Host,
    },
}

impl Door {
    /// Opens what the options name; a port brings its channel along.
    pub fn open(options: &Options) -> Res<(Self, Option<Channel>)> {
        if options.port.is_empty() {
            return Ok((Self::Socket(listen(&options.socket)?), None));
        }
        let channel = open_port(&options.port)?;
        Ok((Self::Port { host: Host::Here }, Some(channel)))
    }

    pub fn listener(&self) -> Option<RawFd> {
        match self {
            Self::Socket(listener) => Some(listener.as_raw_fd()),
            Self::Port { .. } => None,
        }
    }

    /// Takes the socket's name away; a port stays where it is.
    pub fn close(&self, options: &Options) -> Res<()> {
        match self {
            Self::Socket(_) => std::fs::remove_file(&options.socket)
                .map_err(|e| format!("--socket {}: {e}", options.socket)),
            Self::Port { .. } => Ok(()),
        }
    }
}

/// The socket appears under its name only when it accepts connections, so that who waits for the name can connect;
/// who else has an account of the machine cannot, under any umask.
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
    /// Takes note of what the events of a port, and whether it had data, say of the host end.
    pub(super) fn notice_host(&mut self, events: u32, data: bool) {
        let hung_up = events & libc::EPOLLHUP as u32 != 0;
        let (Door::Port { host }, Some(client)) = (&mut self.door, &mut self.client) else {
            return;
        };
        match (*host, hung_up) {
            (Host::Away | Host::Ahead, false) => {
                *host = Host::Here;
                self.rewatch_client();
            }
            (Host::Here, true) if data => {
                *host = Host::Ahead;
                client.forget_output();
                self.watch_for_host();
            }
            (Host::Away, true) if data => *host = Host::Ahead,
            _ => {}
        }
    }

    /// A port whose host end is closed reports that for ever: only the change to open is waited for (edge triggered).
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

    /// The client has gone: a socket's channel is dropped, a port is emptied and waits for the next client.
    pub(super) fn client_gone(&mut self) {
        let (Door::Port { host }, Some(client)) = (&mut self.door, &mut self.client) else {
            self.client = None;
            return;
        };
        if *host == Host::Here {
            *host = Host::Away;
            client.forget();
            self.watch_for_host();
        }
    }

    /// Whether the client's descriptor is watched for what its host end does next.
    pub(super) fn waits_for_host(&self) -> bool {
        matches!(&self.door, Door::Port { host } if *host != Host::Here)
    }

    /// Whether what is said now has a reader.
    pub(super) fn heard(&self) -> bool {
        self.client.is_some() && !matches!(self.door, Door::Port { host: Host::Away })
    }
}
