//! Forks one process per node into namespaces of its own. Forking without exec is fast, and a node shares the
//! memory pages that neither it nor the launcher changes.

use super::directories::Directories;
use super::sandbox::{self, Charged, Logs, Sandbox, Space};
use super::{descriptors, netns};
use crate::channel::Channel;
use crate::node;
use crate::os::{self, Res};
use crate::proto::{CreateNode, Mounts};
use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

/// A node's process as the launcher sees it.
pub struct NodeProcess {
    pub pid: i32,
    pub netns: Option<String>,
    pub channel: Channel,
    /// The node's end of the socket; the launcher keeps it open until the node has its own table of
    /// descriptors.
    pub lent: Option<OwnedFd>,
    /// The data with which `populate` mounts the file systems of a node in the sandbox, before the node's
    /// first program. None once they are mounted.
    unpopulated: Option<Unpopulated>,
    /// Whether the node has writable file systems of its own, which `populate` mounts.
    confined: bool,
    /// The size of these file systems before `fill` made them full; None while they are not full.
    size_when_free: Option<u64>,
}

/// The mounts and the disk quota of a node whose own file systems are not mounted yet.
struct Unpopulated {
    mounts: Mounts,
    disk_bytes: Option<u64>,
}

/// Forks the process of one node, in the sandbox if there is one and the node has a network namespace.
/// Returns without waiting; the process reports over its channel when its namespaces are made.
pub fn fork_node(
    spec: &CreateNode,
    directories: &Directories,
    sandbox: Option<&Sandbox>,
) -> Res<NodeProcess> {
    let fail = |e: std::io::Error| format!("node {}: cannot be forked: {e}", spec.name);
    let (mine, theirs) = UnixStream::pair().map_err(fail)?;
    let parent = std::process::id() as i32;
    let (mine, theirs) = (descriptors::move_high(mine.into()), OwnedFd::from(theirs));
    let sandbox = sandbox.filter(|_| spec.netns.is_some());
    let shares = sandbox
        .map(|sandbox| sandbox.descriptors(&spec.mounts))
        .is_some_and(|needs| {
            descriptors::all_low(&needs) && descriptors::all_low(&[theirs.as_raw_fd()])
        });
    let pid = fork(sandbox.is_some(), shares).map_err(fail)?;
    if pid == 0 {
        if shares && let Err(e) = descriptors::unshare_low() {
            eprintln!("node {}: its table of descriptors: {e}", spec.name);
            // SAFETY: the child ends here, and does not drop the descriptors, which still belong to the
            // launcher.
            unsafe { libc::_exit(1) }
        }
        in_child(spec, directories, parent, theirs, sandbox);
    }
    let channel = Channel::new(mine).map_err(fail)?;
    Ok(NodeProcess {
        pid,
        netns: spec.netns.clone(),
        channel,
        lent: shares.then_some(theirs),
        unpopulated: sandbox.map(|_| Unpopulated {
            mounts: spec.mounts.clone(),
            disk_bytes: spec.disk_bytes,
        }),
        confined: sandbox.is_some(),
        size_when_free: None,
    })
}

/// Forks this process and returns the child's pid, 0 in the child. A sandboxed child is process 1 of a PID
/// namespace, so all its descendants end with it. `shares`: the child uses this process's table of
/// descriptors.
fn fork(sandboxed: bool, shares: bool) -> std::io::Result<i32> {
    let flags = libc::SIGCHLD
        | if sandboxed { libc::CLONE_NEWPID } else { 0 }
        | if shares { libc::CLONE_FILES } else { 0 };
    // SAFETY: the call forks as its flags say, and the child needs no stack of its own. The launcher is
    // single threaded, so the child may call any function.
    os::check(unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) } as i32)
}

fn in_child(
    spec: &CreateNode,
    directories: &Directories,
    parent: i32,
    socket: OwnedFd,
    sandbox: Option<&Sandbox>,
) -> ! {
    // A node in another PID namespace sees no pid of its parent; such a node ends when its socket closes.
    let bound = os::die_with_parent(parent, libc::SIGTERM) || sandbox.is_some();
    let ready = match sandbox {
        _ if !bound => Err("the launcher has ended".to_owned()),
        Some(sandbox) => enter_sandbox(spec, directories, sandbox, socket.as_raw_fd()),
        None => enter_namespaces(spec).map(|()| None),
    };
    let (socket, ready) = keep_only(socket, ready);
    if let (Some(bytes), Some(_)) = (spec.ring_bytes, sandbox) {
        node::rings::limit(bytes);
    }
    let code = node::run(&spec.name, directories, socket, ready);
    // SAFETY: the child ends here, since it must not drop its copy of the launcher's state.
    unsafe { libc::_exit(code) }
}

/// Moves the socket to descriptor 3 and the directory of logs, if there is one, to 4, and closes all
/// descriptors above that the fork has copied.
fn keep_only(socket: OwnedFd, ready: Res<Option<Logs>>) -> (OwnedFd, Res<Option<Logs>>) {
    use std::os::fd::IntoRawFd;
    const ABOVE: RawFd = 16; // out of the way of 3 and 4
    let logs = ready.as_ref().ok().and_then(Option::as_ref).map(Logs::raw);
    // SAFETY: from now on only this process uses descriptors 3 and 4; the launcher's owners of them never run
    // in this process.
    let (socket, directory) = unsafe {
        let kept: Vec<RawFd> = [Some(socket.into_raw_fd()), logs]
            .into_iter()
            .flatten()
            .map(|fd| libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, ABOVE))
            .collect();
        for (fd, place) in kept.iter().zip(3..) {
            libc::dup3(*fd, place, libc::O_CLOEXEC);
        }
        libc::close_range(3 + kept.len() as u32, libc::c_uint::MAX, 0);
        let directory = logs.map(|_| OwnedFd::from_raw_fd(4));
        (OwnedFd::from_raw_fd(3), directory)
    };
    (
        socket,
        ready.map(|logs| logs.zip(directory).map(|(logs, fd)| logs.moved(fd))),
    )
}

fn join_groups(spec: &CreateNode) -> Res<()> {
    for file in &spec.cgroup_procs {
        fs::write(file, "0")
            .map_err(|e| format!("{file}: cannot be joined: {e}; the cgroup must exist"))?;
    }
    Ok(())
}

/// Enters the node's cgroups, and new namespaces unless the node is this machine itself. Sets the host name,
/// and disables IPv6 unless the node has it.
fn enter_namespaces(spec: &CreateNode) -> Res<()> {
    join_groups(spec)?;
    if spec.netns.is_some() {
        unshare_namespaces(&spec.name)?;
        netns::mark()?;
    }
    name_host(spec)
}

fn name_host(spec: &CreateNode) -> Res<()> {
    os::set_hostname(&spec.hostname).map_err(|e| format!("hostname {}: {e}", spec.hostname))?;
    if spec.ipv6 { Ok(()) } else { netns::ipv6_off() }
}

/// Enters the node's cgroups, the sandbox and new namespaces, waits until the launcher has mapped the node's
/// users, and drops privileges. Also sets the host name, IPv6 and HOME. Returns the open directory for logs,
/// None if the lab has none.
fn enter_sandbox(
    spec: &CreateNode,
    directories: &Directories,
    sandbox: &Sandbox,
    socket: RawFd,
) -> Res<Option<Logs>> {
    const OWN: libc::c_int = libc::CLONE_NEWNET | libc::CLONE_NEWUTS | libc::CLONE_NEWIPC;
    join_groups(spec)?;
    let user = sandbox::own_user();
    let logs = sandbox.enter(&spec.name, &spec.mounts, spec.disk_bytes)?;
    // The network namespace belongs to the node's user namespace, so root there controls the node's network.
    let charged = Sandbox::unshare(user, OWN);
    let own_users = charged != Charged::NoUsers;
    if !own_users {
        os::unshare(OWN).map_err(|e| format!("namespaces cannot be made: {e}; run as root"))?;
    }
    write_line(
        socket,
        &format!("{{\"unshared\": {{\"users\": {own_users}}}}}\n"),
    )?;
    await_line(socket)?;
    charged.become_root()?;
    netns::mark()?;
    name_host(spec)?;
    sandbox.drop_privileges(own_users)?;
    os::die_with_parent(0, libc::SIGTERM); // changed privileges may have cleared the signal
    // SAFETY: the process is single threaded.
    unsafe { std::env::set_var("HOME", directories.directory(&spec.name)) };
    Ok(logs)
}

fn write_line(socket: RawFd, line: &str) -> Res<()> {
    match os::write(socket, line.as_bytes()) {
        Ok(n) if n == line.len() => Ok(()),
        other => Err(format!("the launcher's socket: {other:?}")),
    }
}

fn await_line(socket: RawFd) -> Res<()> {
    let mut byte = [0];
    loop {
        match os::read(socket, &mut byte) {
            Ok(1) if byte[0] == b'\n' => return Ok(()),
            Ok(1) => {}
            other => return Err(format!("the launcher's socket: {other:?}")),
        }
    }
}

/// Waits until the node has made its namespaces, maps the users of its user namespace, and resumes the node;
/// only a process outside the namespace may map them. Returns whether the node has a user namespace. An error
/// if the node reports one, ends, or is not ready by `deadline_ns` (CLOCK_MONOTONIC).
pub fn map_users(name: &str, node: &mut NodeProcess, deadline_ns: i64) -> Res<bool> {
    let message = await_message(name, node, deadline_ns)?;
    node.lent = None;
    let users = message["unshared"]["users"] == serde_json::json!(true);
    if users {
        sandbox::map_users(node.pid)
            .map_err(|e| format!("node {name}: its user namespace cannot be mapped: {e}"))?;
    }
    node.channel.send("go");
    Ok(users)
}

/// Mounts the file systems of a node in the sandbox once, before the node's first program. If that fails, the
/// program does not start, and the next call tries again.
pub fn populate(name: &str, node: &mut NodeProcess, sandbox: Option<&Sandbox>) -> Res<()> {
    if let (Some(unpopulated), Some(sandbox)) = (&node.unpopulated, sandbox) {
        sandbox
            .populate(node.pid, name, &unpopulated.mounts, unpopulated.disk_bytes)
            .map_err(|e| format!("node {name}: {e}"))?;
        node.unpopulated = None;
    }
    Ok(())
}

/// Shrinks the writable file systems of a node to the size of its files (`full`), or restores their former
/// size; returns the present size and free space. Does nothing if they are in that state already. Call it
/// after `populate`. An error for a node outside the sandbox, which has no such file systems.
pub fn fill(name: &str, node: &mut NodeProcess, full: bool) -> Res<Space> {
    if !node.confined {
        return Err(format!(
            "node {name}: has no file systems of its own that could be made full"
        ));
    }
    let former = node.size_when_free;
    let space = sandbox::in_mount_ns(node.pid, || match (full, former) {
        (true, None) => {
            let before = Space::now()?;
            before.shrink()?;
            Ok((Some(before.size_bytes), Space::now()?))
        }
        (false, Some(size)) => {
            Space::resize(size)?;
            Ok((None, Space::now()?))
        }
        _ => Ok((former, Space::now()?)),
    });
    let (former, space) = space.map_err(|e| format!("node {name}: {e}"))?;
    node.size_when_free = former;
    Ok(space)
}

/// Enters new network, UTS and mount namespaces with private mounts, unmounts /run/netns there, and mounts a
/// new /sys; only prints it if /sys cannot be mounted.
fn unshare_namespaces(name: &str) -> Res<()> {
    os::unshare(libc::CLONE_NEWNET | libc::CLONE_NEWUTS | libc::CLONE_NEWNS)
        .map_err(|e| format!("namespaces cannot be made: {e}; run as root"))?;
    os::mount("", "/", "none", libc::MS_REC | libc::MS_PRIVATE)
        .map_err(|e| format!("mounts cannot be made private: {e}"))?;
    // Copies of the mounts would keep other nodes' namespaces alive.
    if os::unmount(netns::DIR).is_err() {
        return Err(format!("{}: not a mount of its own", netns::DIR));
    }
    // /sys shows the namespace that mounted it. If the mount fails, only /sys/class/net is wrong.
    if os::mount("sysfs", "/sys", "sysfs", 0).is_err() {
        eprintln!(
            "node {name}: /sys cannot be mounted anew; /sys/class/net shows the host's devices"
        );
    }
    Ok(())
}

/// Waits until the node reports that it is ready; an error if it reports one, ends, or is late, as in
/// `await_message`.
pub fn await_ready(name: &str, node: &mut NodeProcess, deadline_ns: i64) -> Res<()> {
    await_message(name, node, deadline_ns).map(drop)
}

/// Waits for the node's next message and returns it. An error if the message is one, if the process ends, or
/// if `deadline_ns` (CLOCK_MONOTONIC) passes before.
fn await_message(name: &str, node: &mut NodeProcess, deadline_ns: i64) -> Res<serde_json::Value> {
    loop {
        let left_ms = ((deadline_ns - crate::clock::mono_ns()) / 1_000_000).max(0) as i32;
        let mut fds = [libc::pollfd {
            fd: node.channel.raw(),
            events: libc::POLLIN,
            revents: 0,
        }];
        os::poll(&mut fds, left_ms).map_err(|e| format!("node {name}: {e}"))?;
        let incoming = node.channel.read();
        if let Some(line) = incoming.lines.first() {
            let value: serde_json::Value =
                serde_json::from_str(line).map_err(|e| format!("node {name}: {e}"))?;
            return match value["error"].as_str() {
                None => Ok(value),
                Some(text) => Err(format!("node {name}: {text}")),
            };
        }
        if incoming.closed {
            return Err(format!(
                "node {name}: its process ended before it was ready; see the launcher's log"
            ));
        }
        if left_ms == 0 {
            return Err(format!(
                "node {name}: not ready in time; the machine is overloaded or the kernel is stuck"
            ));
        }
    }
}
