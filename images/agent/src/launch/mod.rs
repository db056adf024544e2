//! The launcher: makes the lab's namespaces and node processes, and carries requests between them and the lab process.

mod answers;
mod calls;
mod create;
mod events;
mod lines;
pub mod netns;
mod ops;
pub mod places;
mod records;
mod side;
mod spawn;

use crate::channel::Channel;
use crate::clock;
use crate::os::{self, Res};
use calls::Calls;
use places::Places;
use records::Records;
use serde_json::{Value, json};
use side::Side;
use spawn::NodeProcess;
use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixListener;

/// Records and the count of connected clients leave the launcher at this pace.
const TICK_NS: i64 = 400_000_000;

/// The command line of `launch`.
#[derive(Default)]
pub struct Options {
    pub socket: String,
    /// The launcher's own messages.
    pub log: Option<String>,
    /// Directory for NODE.SOFTWARE.log.
    pub logs: Option<String>,
}

pub struct Launcher {
    places: Places,
    epoll: OwnedFd,
    listener: UnixListener,
    signals: OwnedFd,
    client: Option<Channel>,
    nodes: BTreeMap<String, NodeProcess>,
    by_fd: HashMap<RawFd, String>,
    calls: Calls,
    core: Option<String>,
    records: Records,
    sampler: Option<(Side, Option<Value>)>,
    provers: Vec<(Side, Value)>,
    clients: BTreeMap<String, (u64, u64)>,
    clients_said: (u64, u64),
    clients_said_ns: i64,
    quit: bool,
}

/// Serves requests on the socket until `quit`, SIGTERM or SIGINT; then nothing of the lab is left.
pub fn run(options: &Options) -> Res<()> {
    let socket = options.socket.as_str();
    clock::offset_ns();
    os::raise_open_files();
    if let Some(path) = &options.log {
        redirect(path)?;
    }
    let listener = listen(socket)?;
    let mut launcher =
        Launcher::new(listener, Places::new(options)?).map_err(|e| format!("launcher: {e}"))?;
    let outcome = launcher.serve();
    let destroyed = launcher.destroy_all();
    launcher.places.remove_root();
    std::fs::remove_file(socket).map_err(|e| format!("--socket {socket}: {e}"))?;
    outcome.and(destroyed)
}

/// The socket appears under its name only when it accepts connections, so that who waits for the name can connect.
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
    std::fs::rename(&early, socket).map_err(fail)?;
    Ok(listener)
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
    fn new(listener: UnixListener, places: Places) -> std::io::Result<Self> {
        // SAFETY: plain numbers.
        let epoll = os::own(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        let signals = os::signal_fd(&[libc::SIGTERM, libc::SIGINT, libc::SIGCHLD])?;
        listener.set_nonblocking(true)?;
        let launcher = Self {
            places,
            epoll,
            listener,
            signals,
            client: None,
            nodes: BTreeMap::new(),
            by_fd: HashMap::new(),
            calls: Calls::default(),
            core: None,
            records: Records::default(),
            sampler: None,
            provers: Vec::new(),
            clients: BTreeMap::new(),
            clients_said: (0, 0),
            clients_said_ns: 0,
            quit: false,
        };
        launcher.watch(launcher.listener.as_raw_fd(), false, true)?;
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

    fn tick(&mut self) {
        self.flush_records();
        let now = clock::mono_ns();
        let sum = self
            .clients
            .values()
            .fold((0, 0), |a, c| (a.0 + c.0, a.1 + c.1));
        if sum != self.clients_said && now - self.clients_said_ns >= 1_000_000_000 - TICK_NS / 2 {
            self.clients_said = sum;
            self.clients_said_ns = now;
            self.tell(&json!({"event": "clients", "connected": sum.0, "total": sum.1}));
        }
    }
}
