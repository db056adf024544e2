//! The launcher: makes the lab's namespaces and node processes, and carries requests between them and the lab process.

mod calls;
mod create;
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

    fn watch(&self, fd: RawFd, write: bool, new: bool) -> std::io::Result<()> {
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

    fn serve(&mut self) -> Res<()> {
        let mut next_tick = clock::mono_ns() + TICK_NS;
        while !self.quit {
            let wait_ms = ((next_tick - clock::mono_ns()) / 1_000_000).max(0) as i32;
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
        // SAFETY: room for 128 events. An idle launcher still wakes a few times a second, which costs nothing measurable.
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
        if fd == self.listener.as_raw_fd() {
            self.accept();
        } else if fd == self.signals.as_raw_fd() {
            self.on_signals();
        } else if let Some(name) = self.by_fd.get(&fd).cloned() {
            self.on_node(&name, events);
        } else if self.client.as_ref().is_some_and(|c| c.raw() == fd) {
            self.on_client(events);
        } else {
            self.on_side(fd);
        }
    }

    fn accept(&mut self) {
        let Ok((stream, _)) = self.listener.accept() else {
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
        while os::reap().is_some() {}
    }

    fn on_client(&mut self, events: u32) {
        let Some(client) = self.client.as_mut() else {
            return;
        };
        if events & libc::EPOLLOUT as u32 != 0 {
            client.flush();
        }
        let incoming = client.read();
        for line in incoming.lines {
            self.request(&line);
        }
        if incoming.closed {
            self.client = None;
        } else {
            self.rewatch_client();
        }
    }

    fn rewatch_client(&self) {
        if let Some(c) = &self.client
            && let Err(e) = self.watch(c.raw(), c.wants_write(), false)
        {
            eprintln!("launcher: client: {e}");
        }
    }

    /// Sends a line to the client, if there is one; without a client answers and events have no reader and are dropped.
    fn tell(&mut self, value: &Value) {
        if let Some(client) = self.client.as_mut() {
            client.send(&value.to_string());
            if client.wants_write() {
                self.rewatch_client();
            }
        }
    }

    /// Sends a line to a node.
    fn tell_node(&mut self, name: &str, value: &Value) -> Res<()> {
        let node = self
            .nodes
            .get_mut(name)
            .ok_or_else(|| format!("node {name}: not in this lab; `create` it first"))?;
        node.channel.send(&value.to_string());
        if node.channel.wants_write() {
            let fd = node.channel.raw();
            self.watch(fd, true, false)
                .map_err(|e| format!("node {name}: {e}"))?;
        }
        Ok(())
    }

    fn on_node(&mut self, name: &str, events: u32) {
        let Some(node) = self.nodes.get_mut(name) else {
            return;
        };
        if events & libc::EPOLLOUT as u32 != 0 {
            node.channel.flush();
            let (fd, more) = (node.channel.raw(), node.channel.wants_write());
            if let Err(e) = self.watch(fd, more, false) {
                eprintln!("node {name}: {e}");
            }
        }
        let Some(node) = self.nodes.get_mut(name) else {
            return;
        };
        let incoming = node.channel.read();
        for line in incoming.lines {
            if line.starts_with('{') {
                self.on_node_line(name, &line);
            } else {
                self.records.push(&line);
            }
        }
        if incoming.closed {
            self.lost(name);
        }
    }

    fn on_node_line(&mut self, name: &str, line: &str) {
        let Ok(mut value) = serde_json::from_str::<Value>(line) else {
            eprintln!("node {name}: not JSON: {line}");
            return;
        };
        if let Some(id) = value["id"].as_u64() {
            if value.get("event").is_some() {
                if let Some(call) = self.calls.get(id) {
                    value["id"] = call.client_id.clone();
                    self.tell(&value);
                }
            } else if let Some(answer) = self.calls.take(id, name, value) {
                // Records came before the answer on the same socket: who asks to finish finds them in the file.
                self.flush_records();
                self.tell(&answer);
            }
        } else if value["event"] == "clients" {
            let count = |key: &str| value[key].as_u64().unwrap_or(0);
            self.clients
                .insert(name.to_owned(), (count("connected"), count("total")));
        } else {
            value["node"] = json!(name);
            self.tell(&value);
        }
    }

    /// A node's process ended without being asked to.
    fn lost(&mut self, name: &str) {
        if let Some(node) = self.nodes.remove(name) {
            self.by_fd.remove(&node.channel.raw());
            self.places.remove(name);
            if let Err(e) = netns::remove(&node.netns) {
                eprintln!("node {name}: {e}");
            }
        }
        self.clients.remove(name);
        for answer in self.calls.node_gone(name) {
            self.tell(&answer);
        }
        let log = ["the node's agent ended; see the launcher's log"];
        self.tell(&json!({"event": "exited", "node": name, "software": "agent", "status": 1, "expected": false, "log": log}));
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

    fn on_side(&mut self, fd: RawFd) {
        if let Some((side, asked)) = self.sampler.as_mut().filter(|(s, _)| s.raw() == fd) {
            let Some(outcome) = side.read() else {
                return;
            };
            let asked = asked.take();
            if outcome.is_err() {
                self.sampler = None;
            }
            self.side_answer(asked, outcome);
        } else if let Some(i) = self.provers.iter().position(|(s, _)| s.raw() == fd)
            && let Some(outcome) = self.provers[i].0.read()
        {
            let (_, id) = self.provers.swap_remove(i);
            self.side_answer(Some(id), outcome);
        }
    }

    fn side_answer(&mut self, id: Option<Value>, outcome: Res<String>) {
        let parsed = outcome
            .and_then(|line| serde_json::from_str::<Value>(&line).map_err(|e| e.to_string()));
        let answer = match (id, parsed) {
            (Some(id), Ok(mut value)) if value["ok"] == json!(true) => {
                value["id"] = id;
                value
            }
            (Some(id), Ok(value)) => {
                calls::failure(&id, value["error"].as_str().unwrap_or("no reason given"))
            }
            (Some(id), Err(text)) => calls::failure(&id, &text),
            (None, Ok(value)) => json!({"event": "error", "text": value["error"]}),
            (None, Err(text)) => json!({"event": "error", "text": text}),
        };
        self.tell(&answer);
    }
}
