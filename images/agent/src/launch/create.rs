//! Implements the operations `create` and `destroy`, which make and remove namespaces and node processes
//! in bulk.

use super::sandbox::Sandbox;
use super::{Launcher, netns, spawn};
use crate::clock;
use crate::os::{self, Res};
use crate::proto::{CreateNode, parse};
use serde_json::{Map, Value, json};

const READY_NS: i64 = 60_000_000_000;
const END_NS: i64 = 3_000_000_000;

impl Launcher {
    /// Creates the core namespace, if the request names one, and all nodes of the request, and returns their
    /// pids. After an error it removes the namespace and the nodes that it has created.
    pub(super) fn create(&mut self, request: &Value) -> Res<Map<String, Value>> {
        let specs: Vec<CreateNode> = parse("create", request["nodes"].clone())?;
        self.at_most_one_on_host(&specs)?;
        self.build_sandbox(&request["sandbox"], &specs)?;
        if request["core"].is_string() || specs.iter().any(|s| s.netns.is_some()) {
            netns::prepare()?;
        }
        let made_core = self.create_core(request["core"].as_str())?;
        let new: Vec<String> = specs
            .iter()
            .map(|s| s.name.clone())
            .filter(|name| !self.nodes.contains_key(name))
            .collect();
        let outcome = self.create_nodes(&specs);
        if outcome.is_err() {
            self.destroy_nodes(&new)?;
            if made_core && let Some(core) = self.core.take() {
                netns::remove(&core)?;
            }
        }
        outcome
    }

    /// Builds the launcher's sandbox from `spec`, if it has none yet, and prepares the mounts of these nodes.
    /// Does nothing if `spec` is null: the nodes then have the launcher's rights, as in a VM of their own.
    fn build_sandbox(&mut self, spec: &Value, specs: &[CreateNode]) -> Res<()> {
        if spec.is_null() {
            return Ok(());
        }
        if self.sandbox.is_none() {
            self.sandbox = Some(Sandbox::new(
                &parse("create", spec.clone())?,
                self.directories.nodes(),
            )?);
        }
        let sandbox = self.sandbox.as_mut();
        sandbox.map_or(Ok(()), |sandbox| {
            specs
                .iter()
                .try_for_each(|node| sandbox.prepare(&node.mounts))
        })
    }

    fn create_core(&mut self, core: Option<&str>) -> Res<bool> {
        let Some(core) = core else {
            return Ok(false);
        };
        if self.core.as_deref() == Some(core) {
            return Ok(false);
        }
        netns::make(core)?;
        self.core = Some(core.to_owned());
        Ok(true)
    }

    /// Returns an error if more than one node, existing ones included, would have the launcher's own network
    /// namespace, since they would share one host name and one set of interfaces.
    fn at_most_one_on_host(&self, specs: &[CreateNode]) -> Res<()> {
        let here = self.nodes.iter().filter(|(_, n)| n.netns.is_none());
        let new = specs.iter().filter(|s| s.netns.is_none());
        let names: Vec<&str> = here
            .map(|(name, _)| name.as_str())
            .chain(new.map(|s| s.name.as_str()))
            .collect();
        if names.len() > 1 {
            return Err(format!(
                "create: {} without netns; one node at most can have the launcher's own, name a netns for the others",
                names.join(", ")
            ));
        }
        Ok(())
    }

    fn create_nodes(&mut self, specs: &[CreateNode]) -> Res<Map<String, Value>> {
        for spec in specs {
            if self.nodes.contains_key(&spec.name) {
                return Err(format!(
                    "node {}: exists already; destroy it first",
                    spec.name
                ));
            }
            if let Some(netns) = &spec.netns {
                netns::reserve(netns)?;
            }
            match spawn::fork_node(spec, &self.directories, self.sandbox.as_ref()) {
                Ok(process) => self.nodes.insert(spec.name.clone(), process),
                Err(text) => {
                    remove_netns(spec.netns.as_deref())?;
                    return Err(text);
                }
            };
        }
        // The namespaces get their names after all forks; otherwise every later node would copy the mounts
        // in /run/netns.
        let deadline = clock::mono_ns() + READY_NS;
        if self.sandbox.is_some() {
            for spec in specs.iter().filter(|spec| spec.netns.is_some()) {
                if let Some(node) = self.nodes.get_mut(&spec.name) {
                    spawn::map_users(&spec.name, node, deadline)?;
                }
            }
        }
        for spec in specs {
            if let Some(node) = self.nodes.get_mut(&spec.name) {
                spawn::await_ready(&spec.name, node, deadline)?;
                if let Some(netns) = &spec.netns {
                    netns::bind(&node.pid.to_string(), netns)?;
                }
            }
        }
        self.register(specs)
    }

    fn register(&mut self, specs: &[CreateNode]) -> Res<Map<String, Value>> {
        let mut pids = Map::new();
        for spec in specs {
            if let Some(node) = self.nodes.get(&spec.name) {
                let fd = node.channel.raw();
                pids.insert(spec.name.clone(), json!(node.pid));
                self.watch(fd, false, true)
                    .map_err(|e| format!("node {}: {e}", spec.name))?;
                self.by_fd.insert(fd, spec.name.clone());
            }
        }
        Ok(Map::from_iter([("pids".to_owned(), Value::Object(pids))]))
    }

    /// Ends the nodes that the request names; without names ends all nodes and helper processes and removes
    /// the core namespace.
    pub(super) fn destroy(&mut self, request: &Value) -> Res<Map<String, Value>> {
        if request["nodes"].is_null() {
            self.destroy_all()?;
        } else {
            let names: Vec<String> = parse("destroy", request["nodes"].clone())?;
            self.destroy_nodes(&names)?;
        }
        Ok(Map::new())
    }

    /// Ends all helper processes and nodes and removes the core namespace; continues after an error and
    /// returns it.
    pub(super) fn destroy_all(&mut self) -> Res<()> {
        if let Some((sampler, _)) = self.sampler.take() {
            sampler.end();
        }
        for (prover, _) in self.provers.drain(..) {
            prover.end();
        }
        for capture in self.captures.drain(..) {
            capture.helper.end();
        }
        let names: Vec<String> = self.nodes.keys().cloned().collect();
        let nodes = self.destroy_nodes(&names);
        match self.core.take() {
            Some(core) => nodes.and(netns::remove(&core)),
            None => nodes,
        }
    }

    fn destroy_nodes(&mut self, names: &[String]) -> Res<()> {
        let mut gone = Vec::new();
        for name in names {
            if let Some(node) = self.nodes.remove(name) {
                self.by_fd.remove(&node.channel.raw());
                self.clients.remove(name);
                // Dropping the channel closes it; the node then ends its software and itself.
                gone.push((name, node.pid, node.netns, node.lent));
            }
            for answer in self.calls.node_gone(name) {
                self.send_client(&answer);
            }
        }
        let mut errors = Vec::new();
        for (_, _, netns, _) in &gone {
            errors.extend(remove_netns(netns.as_deref()).err());
        }
        let deadline = clock::mono_ns() + END_NS;
        for (name, pid, ..) in &gone {
            await_end(name, *pid, deadline);
            self.directories.remove(name);
        }
        if errors.is_empty() {
            Ok(())
        } else {
            Err(errors.join("\n"))
        }
    }
}

pub(super) fn remove_netns(name: Option<&str>) -> Res<()> {
    name.map_or(Ok(()), netns::remove)
}

/// Waits for child process `pid` to end; kills it once the monotonic clock has passed the deadline.
fn await_end(name: &str, pid: i32, deadline_ns: i64) {
    let mut killed = false;
    loop {
        let mut status = 0;
        // SAFETY: status is a valid int. -1 (ECHILD) means that other code has reaped the process.
        if unsafe { libc::waitpid(pid, &mut status, libc::WNOHANG) } != 0 {
            return;
        }
        if !killed && clock::mono_ns() > deadline_ns {
            eprintln!("node {name}: did not end by itself and is killed");
            killed = os::kill(pid, libc::SIGKILL).is_ok();
        }
        std::thread::sleep(std::time::Duration::from_micros(500));
    }
}
