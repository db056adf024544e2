//! Relays lines between the client and the nodes: requests, answers, events and records.

use super::Launcher;
use super::create::remove_netns;
use crate::clock;
use crate::os::Res;
use serde_json::{Value, json};

const DRAIN_NS: i64 = 1_000_000_000;

impl Launcher {
    pub(super) fn on_client(&mut self, events: u32) {
        self.notice_host(events, false);
        let Some(client) = self.client.as_mut() else {
            return;
        };
        if events & libc::EPOLLOUT as u32 != 0 {
            client.flush();
        }
        let incoming = client.read();
        self.notice_host(events, incoming.data);
        for line in incoming.lines {
            self.request(&line);
        }
        if incoming.closed {
            self.client_gone();
        } else {
            self.rewatch_client();
        }
    }

    pub(super) fn rewatch_client(&self) {
        if let Some(c) = &self.client
            && !self.waits_for_host()
            && let Err(e) = self.watch(c.raw(), c.wants_write(), false)
        {
            eprintln!("launcher: client: {e}");
        }
    }

    /// Sends `value` as one line to the client; drops it if no client would receive it.
    pub(super) fn send_client(&mut self, value: &Value) {
        if self.has_reader()
            && let Some(client) = self.client.as_mut()
        {
            client.send(&value.to_string());
            if client.wants_write() {
                self.rewatch_client();
            }
        }
    }

    /// Sends what still waits for the client before the process ends, for at most `DRAIN_NS`.
    pub(super) fn drain_output(&mut self) {
        let deadline = clock::mono_ns() + DRAIN_NS;
        while self.has_reader() && clock::mono_ns() < deadline {
            let Some(client) = self.client.as_mut().filter(|c| c.wants_write()) else {
                return;
            };
            client.flush();
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    /// Sends `value` as one line to a node; an error if the lab has no such node.
    pub(super) fn send_node(&mut self, name: &str, value: &Value) -> Res<()> {
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

    pub(super) fn on_node(&mut self, name: &str, events: u32) {
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
                    self.send_client(&value);
                }
            } else if let Some(answer) = self.calls.take(id, name, value) {
                // Records precede the answer on the same socket, so a client finds them in the file after `finish`.
                self.flush_records();
                self.send_client(&answer);
            }
        } else if value["event"] == "clients" {
            let count = |key: &str| value[key].as_u64().unwrap_or(0);
            self.clients
                .insert(name.to_owned(), (count("connected"), count("total")));
        } else {
            value["node"] = json!(name);
            self.send_client(&value);
        }
    }

    /// Handles the unexpected end of the process of node `name`: removes the node, its directory and its
    /// network namespace, answers the calls that waited for it, and sends the client an `exited` event.
    fn lost(&mut self, name: &str) {
        if let Some(node) = self.nodes.remove(name) {
            self.by_fd.remove(&node.channel.raw());
            self.directories.remove(name);
            if let Err(e) = remove_netns(node.netns.as_deref()) {
                eprintln!("node {name}: {e}");
            }
        }
        self.clients.remove(name);
        for answer in self.calls.node_gone(name) {
            self.send_client(&answer);
        }
        let log = ["the node's agent ended; see the launcher's log"];
        self.send_client(&json!({"event": "exited", "node": name, "software": "agent", "status": 1, "expected": false, "log": log}));
    }
}
