//! Forks one process per node into namespaces of its own; nothing is executed, so it is fast and shares its memory.

use super::netns;
use super::places::Places;
use crate::channel::Channel;
use crate::node;
use crate::os::{self, Res};
use crate::proto::CreateNode;
use std::fs;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// A node's process as the launcher sees it.
pub struct NodeProcess {
    pub pid: i32,
    pub netns: Option<String>,
    pub channel: Channel,
}

/// Forks the process of one node. It reports by itself when its namespaces are ready.
pub fn fork_node(spec: &CreateNode, places: &Places) -> Res<NodeProcess> {
    let fail = |e: std::io::Error| format!("node {}: cannot be forked: {e}", spec.name);
    let (mine, theirs) = UnixStream::pair().map_err(fail)?;
    let parent = std::process::id() as i32;
    // SAFETY: the launcher is single threaded, so the child may do anything that the parent may.
    let pid = os::check(unsafe { libc::fork() }).map_err(fail)?;
    if pid == 0 {
        in_child(spec, places, parent, theirs.into());
    }
    let channel = Channel::new(mine.into()).map_err(fail)?;
    Ok(NodeProcess {
        pid,
        netns: spec.netns.clone(),
        channel,
    })
}

fn in_child(spec: &CreateNode, places: &Places, parent: i32, socket: OwnedFd) -> ! {
    let socket = keep_only(socket);
    let ready = if os::die_with_parent(parent, libc::SIGTERM) {
        settle(spec)
    } else {
        Err("the launcher has ended".to_owned())
    };
    let code = node::run(&spec.name, places, socket, ready);
    // SAFETY: leaves at once: the launcher's state, copied by the fork, must not be dropped here.
    unsafe { libc::_exit(code) }
}

/// Moves the socket to descriptor 3 and closes everything above, which the fork copied from the launcher.
fn keep_only(socket: OwnedFd) -> OwnedFd {
    use std::os::fd::IntoRawFd;
    let raw = socket.into_raw_fd();
    // SAFETY: descriptor 3 is about to be ours alone; the launcher's owners of it never run in this process.
    unsafe {
        if raw != 3 {
            libc::dup2(raw, 3);
        }
        libc::close_range(4, libc::c_uint::MAX, 0);
        libc::fcntl(3, libc::F_SETFD, libc::FD_CLOEXEC);
        OwnedFd::from_raw_fd(3)
    }
}

/// Enters cgroups and, unless the node is this machine itself, new namespaces.
fn settle(spec: &CreateNode) -> Res<()> {
    for file in &spec.cgroup_procs {
        fs::write(file, "0")
            .map_err(|e| format!("{file}: cannot be joined: {e}; the cgroup must exist"))?;
    }
    if spec.netns.is_some() {
        separate(&spec.name)?;
    }
    os::set_hostname(&spec.hostname).map_err(|e| format!("hostname {}: {e}", spec.hostname))?;
    if spec.ipv6 { Ok(()) } else { netns::ipv6_off() }
}

/// New network, UTS and mount namespaces.
fn separate(name: &str) -> Res<()> {
    os::unshare(libc::CLONE_NEWNET | libc::CLONE_NEWUTS | libc::CLONE_NEWNS)
        .map_err(|e| format!("namespaces cannot be made: {e}; run as root"))?;
    os::mount("", "/", "none", libc::MS_REC | libc::MS_PRIVATE)
        .map_err(|e| format!("mounts cannot be made private: {e}"))?;
    // The copied mounts would keep other nodes' namespaces alive.
    if os::unmount(netns::DIR).is_err() {
        return Err(format!("{}: not a mount of its own", netns::DIR));
    }
    // /sys shows the namespace that mounted it; where that is refused the host's stays, and only /sys/class/net is wrong.
    if os::mount("sysfs", "/sys", "sysfs", 0).is_err() {
        eprintln!(
            "node {name}: /sys cannot be mounted anew; /sys/class/net shows the machine's devices"
        );
    }
    Ok(())
}

/// Waits until the node reports that it is ready (or why not).
pub fn await_ready(name: &str, node: &mut NodeProcess, deadline_ns: i64) -> Res<()> {
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
                None => Ok(()),
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
