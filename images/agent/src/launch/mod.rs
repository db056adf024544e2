//! The launcher: makes the lab's namespaces and node processes, and carries requests between them and the lab process.

mod answers;
mod calls;
mod create;
mod descriptors;
mod door;
mod events;
mod fetch;
mod lines;
pub mod netns;
mod ops;
pub mod places;
mod records;
mod resume;
pub mod side;
mod spawn;
pub mod walls;

use crate::channel::Channel;
use crate::clock;
use crate::os::{self, Res};
use calls::Calls;
use door::Door;
use places::Places;
use records::Records;
use serde_json::{Value, json};
use side::Side;
use spawn::NodeProcess;
use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// Records and the count of connected clients leave the launcher at this pace.
const TICK_NS: i64 = 400_000_000;

/// The command line of `launch`.
#[derive(Default)]
pub struct Options {
    /// Where to listen; empty where `port` is given.
    pub socket: String,
    /// The virtio-serial port of a VM; empty where `socket` is given.
    pub port: String,
    /// The launcher's own messages.
    pub log: Option<String>,
    /// Directory for NODE.SOFTWARE.log.
    pub logs: Option<String>,
}

pub struct Launcher {
    places: Places,
    epoll: OwnedFd,
    door: Door,
    signals: OwnedFd,
    client: Option<Channel>,
    nodes: BTreeMap<String, NodeProcess>,
    by_fd: HashMap<RawFd, String>,
    calls: Calls,
    core: Option<String>,
    walls: Option<walls::Built>,
    records: Records,
    sampler: Option<(Side, Option<Value>)>,
    provers: Vec<(Side, Value)>,
    clients: BTreeMap<String, (u64, u64)>,
    clients_said: (u64, u64),
    clients_said_ns: i64,
    quit: bool,
}

/// Serves requests until `quit`, SIGTERM or SIGINT; then nothing of the lab is left.
pub fn run(options: &Options) -> Res<()> {
    clock::offset_ns();
    os::raise_open_files();
    if let Some(path) = &options.log {
        redirect(path)?;
    }
    let (door, client) = Door::open(options)?;
    let mut launcher =
        Launcher::new(door, client, Places::new(options)?).map_err(|e| format!("launcher: {e}"))?;
    let outcome = launcher.serve();
    let destroyed = launcher.destroy_all();
    launcher.places.remove_root();
    launcher.say_farewell();
    launcher.door.close(options)?;
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
    fn new(door: Door, client: Option<Channel>, places: Places) -> std::io::Result<Self> {
        // SAFETY: plain numbers.
        let epoll = os::own(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        let signals = os::signal_fd(&[libc::SIGTERM, libc::SIGINT, libc::SIGCHLD])?;
        let launcher = Self {
            places,
            epoll,
            door,
            signals,
            client,
            nodes: BTreeMap::new(),
            by_fd: HashMap::new(),
            calls: Calls::default(),
            core: None,
            walls: None,
            records: Records::default(),
            sampler: None,
            provers: Vec::new(),
            clients: BTreeMap::new(),
            clients_said: (0, 0),
            clients_said_ns: 0,
            quit: false,
        };
        let doors = [
            launcher.door.listener(),
            launcher.client.as_ref().map(Channel::raw),
        ];
        for fd in doors.into_iter().flatten() {
            launcher.watch(fd, false, true)?;
        }
        launcher.watch(launcher.signals.as_raw_fd(), false, true)?;
        Ok(launcher)
    }

    fn flush_records(&mut self) {
        if self.records.waiting()
            && let Err(text) = self.records.flush()
        {
            self.tell(&json!({"event": "error", "text": text}));
        }
    }

    /// Sessions that come and go: connected, of all.
    fn connected(&self) -> (u64, u64) {
        self.clients
            .values()
            .fold((0, 0), |a, c| (a.0 + c.0, a.1 + c.1))
    }

    fn tick(&mut self) {
        self.flush_records();
        let now = clock::mono_ns();
        let sum = self.connected();
        if sum != self.clients_said && now - self.clients_said_ns >= 1_000_000_000 - TICK_NS / 2 {
            self.clients_said = sum;
            self.clients_said_ns = now;
            self.tell(&json!({"event": "clients", "connected": sum.0, "total": sum.1}));
        }
    }
}
