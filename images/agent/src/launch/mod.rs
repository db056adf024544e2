//! Implements the launcher: creates the lab's namespaces and node processes, and relays messages between
//! them and the lab process.

mod calls;
mod captures;
mod control_socket;
mod create;
mod descriptors;
pub mod directories;
mod events;
mod fetch;
pub mod helper;
mod helper_answers;
pub mod netns;
mod ops;
mod records;
mod relay;
mod resume;
pub mod sandbox;
mod spawn;

use crate::channel::Channel;
use crate::clock;
use crate::os::{self, Res};
use calls::Calls;
use control_socket::ControlSocket;
use directories::Directories;
use helper::Helper;
use records::Records;
use serde_json::{Value, json};
use spawn::NodeProcess;
use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// The interval in nanoseconds at which the launcher writes records to their file. At a changed number of
/// connected clients it also reports that number, at most at every second interval.
const TICK_NS: i64 = 400_000_000;

/// The options of the command `vnet-agent launch`.
#[derive(Default)]
pub struct Options {
    /// Unix socket to listen on; empty with `port`.
    pub socket: String,
    /// The virtio-serial port of a VM; empty with `socket`.
    pub port: String,
    /// File to which standard output and standard error are appended; None leaves them as they are.
    pub log: Option<String>,
    /// Directory for the programs' logs NODE.SOFTWARE.log; None: no logs, in a VM /run/vnet/logs.
    pub logs: Option<String>,
}

pub struct Launcher {
    directories: Directories,
    epoll: OwnedFd,
    control_socket: ControlSocket,
    signals: OwnedFd,
    client: Option<Channel>,
    nodes: BTreeMap<String, NodeProcess>,
    by_fd: HashMap<RawFd, String>,
    calls: Calls,
    core: Option<String>,
    sandbox: Option<sandbox::Sandbox>,
    records: Records,
    sampler: Option<(Helper, Option<Value>)>,
    provers: Vec<(Helper, Value)>,
    captures: Vec<captures::Capturing>,
    clients: BTreeMap<String, (u64, u64)>,
    clients_sent: (u64, u64),
    clients_sent_ns: i64,
    quit: bool,
}

/// Serves requests until `quit`, SIGTERM or SIGINT, then removes everything that belongs to the lab.
pub fn run(options: &Options) -> Res<()> {
    clock::offset_ns();
    os::raise_open_files();
    if let Some(path) = &options.log {
        redirect(path)?;
    }
    let (control_socket, client) = ControlSocket::open(options)?;
    let mut launcher = Launcher::new(control_socket, client, Directories::new(options)?)
        .map_err(|e| format!("launcher: {e}"))?;
    let outcome = launcher.serve();
    let destroyed = launcher.destroy_all();
    launcher.directories.remove_root();
    launcher.drain_output();
    launcher.control_socket.close(options)?;
    outcome.and(destroyed)
}

fn redirect(path: &str) -> Res<()> {
    let file = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .map_err(|e| format!("--log {path}: {e}; the directory must exist and be writable"))?;
    // SAFETY: both descriptors are open.
    unsafe {
        libc::dup2(file.as_raw_fd(), 1);
        libc::dup2(file.as_raw_fd(), 2);
    }
    Ok(())
}

impl Launcher {
    fn new(
        control_socket: ControlSocket,
        client: Option<Channel>,
        directories: Directories,
    ) -> std::io::Result<Self> {
        // SAFETY: plain numbers.
        let epoll = os::own(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        let signals = os::signal_fd(&[libc::SIGTERM, libc::SIGINT, libc::SIGCHLD])?;
        let launcher = Self {
            directories,
            epoll,
            control_socket,
            signals,
            client,
            nodes: BTreeMap::new(),
            by_fd: HashMap::new(),
            calls: Calls::default(),
            core: None,
            sandbox: None,
            records: Records::default(),
            sampler: None,
            provers: Vec::new(),
            captures: Vec::new(),
            clients: BTreeMap::new(),
            clients_sent: (0, 0),
            clients_sent_ns: 0,
            quit: false,
        };
        let sources = [
            launcher.control_socket.listener(),
            launcher.client.as_ref().map(Channel::raw),
        ];
        for fd in sources.into_iter().flatten() {
            launcher.watch(fd, false, true)?;
        }
        launcher.watch(launcher.signals.as_raw_fd(), false, true)?;
        Ok(launcher)
    }

    fn flush_records(&mut self) {
        if self.records.waiting()
            && let Err(text) = self.records.flush()
        {
            self.send_client(&json!({"event": "error", "text": text}));
        }
    }

    /// Returns how many load clients of all nodes are connected, and how many there are.
    fn connected(&self) -> (u64, u64) {
        self.clients
            .values()
            .fold((0, 0), |a, c| (a.0 + c.0, a.1 + c.1))
    }

    fn tick(&mut self) {
        self.flush_records();
        let now = clock::mono_ns();
        let sum = self.connected();
        if sum != self.clients_sent && now - self.clients_sent_ns >= 1_000_000_000 - TICK_NS / 2 {
            self.clients_sent = sum;
            self.clients_sent_ns = now;
            self.send_client(&json!({"event": "clients", "connected": sum.0, "total": sum.1}));
        }
    }
}
