//! Runs the agent of one node: a single-threaded loop serves the launcher's socket, the node's programs
//! and roles, and one timer.

mod accounts;
mod child;
mod configure;
mod events;
mod exec;
mod requests;
pub mod rings;
mod software;
mod stack;
mod watch;

use crate::channel::Channel;
use crate::clock;
use crate::frames::Frames;
use crate::launch::directories::Directories;
use crate::launch::sandbox::Logs;
use crate::os::{self, Res};
use crate::proto::Totals;
use crate::roles::Role;
use accounts::Account;
use exec::Exec;
use serde_json::json;
use software::Supervised;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use watch::Watch;

/// Starts a program and returns its pid. Process 1 of a VM calls this function; it runs no node.
pub fn spawn(command: &std::process::Command) -> std::io::Result<i32> {
    child::spawn(command, None, false)
}

/// Starts a command with these standard streams, of which the first becomes its controlling terminal, and
/// returns its pid. Process 1 of a VM calls this function.
pub fn spawn_on_terminal(
    command: &std::process::Command,
    streams: [OwnedFd; 3],
) -> std::io::Result<i32> {
    child::spawn(command, Some(streams), true)
}

#[cfg(feature = "fuzzing")]
pub use accounts::fuzz;

/// A role that is ready to start; one that listens does not count as a client.
struct Armed {
    role: Box<dyn Role>,
    listens: bool,
}

pub struct Node {
    name: String,
    directories: Directories,
    /// The open directory of logs; a node in the sandbox cannot open it by its path.
    logs: Option<Logs>,
    channel: Channel,
    signals: OwnedFd,
    timer: os::Timer,
    software: Vec<Supervised>,
    accounts: Vec<Account>,
    /// The scenario's start in Unix nanoseconds; None before `go`.
    t0_ns: Option<i64>,
    execs: Vec<Exec>,
    roles: Vec<Armed>,
    /// Waits for the roles if they are many. None: the poll set has the descriptors of all roles.
    watch: Option<Watch>,
    frames: Frames,
    totals_done: Totals,
    /// The node's addresses from `configure`, on which programs may listen.
    addresses: Vec<String>,
    records: Vec<u8>,
    records_due_ns: Option<i64>,
    sent_clients: Option<(u64, u64)>,
}

/// Runs the agent until the launcher closes the socket or SIGTERM arrives, then kills the node's programs;
/// returns the exit status. `ready` is the result of entering the namespaces; if that failed, reports the
/// error to the launcher and returns 1 at once.
pub fn run(
    name: &str,
    directories: &Directories,
    socket: OwnedFd,
    ready: Res<Option<Logs>>,
) -> i32 {
    let mut node = match Node::new(name, directories, socket) {
        Ok(node) => node,
        Err(e) => {
            eprintln!("node {name}: {e}");
            return 1;
        }
    };
    let failed = ready.is_err();
    node.channel.send(&match ready {
        Ok(logs) => {
            node.logs = logs;
            json!({"ready": true}).to_string()
        }
        Err(text) => json!({"ready": false, "error": text}).to_string(),
    });
    if failed {
        return 1;
    }
    let code = match node.serve() {
        Ok(()) => 0,
        Err(text) => {
            eprintln!("node {name}: {text}");
            1
        }
    };
    child::end_all();
    code
}

/// The object to which a descriptor in the poll set belongs; the numbers are indices.
#[derive(Clone, Copy)]
enum Owner {
    Launcher,
    Signals,
    Timer,
    Software(usize),
    Account(usize),
    Exec(usize),
    Role(usize),
    Watch,
    Frames,
    Rings,
}

impl Node {
    fn new(name: &str, directories: &Directories, socket: OwnedFd) -> std::io::Result<Self> {
        os::become_subreaper();
        os::reduce_timer_slack();
        Ok(Self {
            name: name.to_owned(),
            directories: directories.clone(),
            logs: None,
            channel: Channel::new(socket)?,
            signals: os::signal_fd(&[libc::SIGCHLD, libc::SIGTERM])?,
            timer: os::Timer::new()?,
            software: Vec::new(),
            accounts: Vec::new(),
            t0_ns: None,
            execs: Vec::new(),
            roles: Vec::new(),
            watch: None,
            frames: Frames::default(),
            totals_done: Totals::default(),
            addresses: vec!["127.0.0.1".to_owned()],
            records: Vec::new(),
            records_due_ns: None,
            sent_clients: None,
        })
    }

    fn serve(&mut self) -> Res<()> {
        loop {
            self.timer.set(self.next_deadline());
            let (mut fds, owners) = self.poll_set();
            os::poll(&mut fds, -1).map_err(|e| e.to_string())?;
            for (fd, owner) in fds.iter().zip(owners).filter(|(fd, _)| fd.revents != 0) {
                if !self.on_event(owner, fd.fd, fd.revents)? {
                    return Ok(());
                }
            }
            self.on_time()?;
        }
    }

    fn poll_set(&self) -> (Vec<libc::pollfd>, Vec<Owner>) {
        let mut fds = Vec::new();
        let mut owners = Vec::new();
        let mut add = |fd: RawFd, write: bool, owner: Owner| {
            let events = libc::POLLIN | if write { libc::POLLOUT } else { 0 };
            fds.push(libc::pollfd {
                fd,
                events,
                revents: 0,
            });
            owners.push(owner);
        };
        add(
            self.channel.raw(),
            self.channel.wants_write(),
            Owner::Launcher,
        );
        add(self.signals.as_raw_fd(), false, Owner::Signals);
        add(self.timer.raw(), false, Owner::Timer);
        for (i, s) in self.software.iter().enumerate() {
            s.output_fd()
                .into_iter()
                .for_each(|fd| add(fd, false, Owner::Software(i)));
        }
        for (i, account) in self.accounts.iter().enumerate() {
            add(account.fd(), false, Owner::Account(i));
        }
        for (i, e) in self.execs.iter().enumerate() {
            e.fds()
                .into_iter()
                .for_each(|(fd, write)| add(fd, write, Owner::Exec(i)));
        }
        match &self.watch {
            Some(watch) => add(watch.raw(), false, Owner::Watch),
            None => {
                for (i, armed) in self.roles.iter().enumerate() {
                    let role = &armed.role;
                    role.fds(&mut |fd, write| add(fd, write, Owner::Role(i)));
                }
            }
        }
        self.frames
            .fds()
            .for_each(|fd| add(fd, false, Owner::Frames));
        for fd in rings::fds() {
            add(fd, false, Owner::Rings);
        }
        (fds, owners)
    }

    /// Handles one ready descriptor; returns false when the node must end.
    fn on_event(&mut self, owner: Owner, fd: RawFd, revents: i16) -> Res<bool> {
        match owner {
            Owner::Launcher => return Ok(self.on_launcher(revents)),
            Owner::Signals => return Ok(self.on_signals()),
            Owner::Timer => self.timer.clear(),
            // A request in the same round (start, finish) may have removed the program or role to which this
            // descriptor belongs.
            Owner::Software(i) => {
                if let Some(software) = self.software.get_mut(i) {
                    software.on_output();
                }
            }
            Owner::Account(i) => {
                if let Some(account) = self.accounts.get_mut(i) {
                    account.read(&mut self.records);
                }
            }
            Owner::Exec(i) => {
                let events = self.execs.get_mut(i).map(|e| e.on_ready(fd, revents));
                for event in events.unwrap_or_default() {
                    self.channel.send(&event.to_string());
                }
            }
            Owner::Role(i) => {
                if let Some(armed) = self.roles.get_mut(i) {
                    let now = clock::lab_ns();
                    armed.role.on_ready(fd, revents, now, &mut self.records);
                }
            }
            Owner::Watch => self.on_watched()?,
            Owner::Frames => {
                if let Some((id, answer)) = self.frames.on_ready(fd) {
                    self.answer(&id, answer);
                }
            }
            Owner::Rings => rings::on_ready(fd, revents),
        }
        Ok(true)
    }

    /// Handles the ready descriptors of many roles, and makes these roles due.
    fn on_watched(&mut self) -> Res<()> {
        // A request in the same round (finish) may have ended the roles.
        let Some(watch) = &mut self.watch else {
            return Ok(());
        };
        for (i, fd, revents) in watch.ready()? {
            let now = clock::lab_ns();
            let armed = &mut self.roles[i];
            armed.role.on_ready(fd, revents, now, &mut self.records);
            watch.update(i, armed)?;
            watch.wake(i, now);
        }
        Ok(())
    }

    fn on_launcher(&mut self, revents: i16) -> bool {
        if revents & libc::POLLOUT != 0 {
            self.channel.flush();
        }
        let incoming = self.channel.read();
        for line in incoming.lines {
            match serde_json::from_str(&line) {
                Ok(request) => self.request(request),
                Err(e) => eprintln!("node {}: not JSON: {e}: {line}", self.name),
            }
        }
        !incoming.closed
    }

    fn on_signals(&mut self) -> bool {
        // As process 1 of a PID namespace, the node must not end on a SIGTERM from its own programs.
        let contained = std::process::id() == 1;
        let signals = os::read_senders(self.signals.as_raw_fd());
        let ends = |(number, sender): &(i32, i32)| {
            *number == libc::SIGTERM && !(contained && *sender != 0)
        };
        let ended = signals.iter().any(ends);
        let mut ended_one = false;
        while let Some((pid, status)) = os::reap() {
            for s in &mut self.software {
                if s.on_exit(pid, status) {
                    let kept = s.keep_beside(self.logs.as_ref());
                    if let Err(text) = kept {
                        self.channel
                            .send(&json!({"event": "error", "text": text}).to_string());
                    }
                    let own = self.accounts.iter_mut().filter(|a| a.software == s.name);
                    own.for_each(|account| account.ended(&mut self.records));
                    // The records must leave at once, since the client may end the node next.
                    ended_one = true;
                }
            }
            for e in &mut self.execs {
                e.on_exit(pid, status);
            }
        }
        if ended_one {
            self.flush_records();
        }
        !ended
    }

    fn next_deadline(&self) -> Option<i64> {
        let offset = clock::offset_ns();
        let software = self.software.iter().filter_map(Supervised::deadline);
        let execs = self.execs.iter().filter_map(Exec::deadline);
        let roles = match &self.watch {
            Some(watch) => watch.deadline(),
            None => self
                .roles
                .iter()
                .filter_map(|armed| armed.role.deadline())
                .min(),
        };
        software
            .chain(execs)
            .chain(roles.map(|t| t - offset))
            .chain(self.records_due_ns)
            .min()
    }

    /// Runs the due probes, restarts and kills of programs and the due work of roles, and sends pending
    /// messages, records and counts to the launcher.
    fn on_time(&mut self) -> Res<()> {
        let now = clock::mono_ns();
        for s in &mut self.software {
            s.on_time(now, &self.addresses);
            for message in s.take_messages() {
                self.channel.send(&message.to_string());
            }
        }
        self.send_account_messages();
        self.on_time_of_roles(now)?;
        for e in &mut self.execs {
            if let Some(message) = e.on_time(now) {
                self.channel.send(&message.to_string());
            }
        }
        self.execs.retain(|e| !e.done());
        self.pass_records(now);
        self.send_clients();
        Ok(())
    }

    /// Runs the due work of the roles. With many roles, it visits only those that are due.
    fn on_time_of_roles(&mut self, mono_ns: i64) -> Res<()> {
        let Some(watch) = &mut self.watch else {
            for armed in &mut self.roles {
                let now = clock::offset_ns() + mono_ns;
                armed.role.on_time(now, &mut self.records);
            }
            return Ok(());
        };
        let now = clock::offset_ns() + mono_ns;
        for i in watch.take_due(now) {
            let armed = &mut self.roles[i];
            armed.role.on_time(now, &mut self.records);
            watch.update(i, armed)?;
        }
        Ok(())
    }
}
