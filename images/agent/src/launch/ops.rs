//! Dispatches requests: the launcher's own operations, and those that it forwards to nodes.

use super::calls::{Call, Merge, failure, success};
use super::helper::Helper;
use super::{Launcher, fetch, netns, spawn};
use crate::netlink::Netlink;
use crate::os::Res;
use crate::proto::{LinkProbe, Sample, parse};
use crate::{clock, ethtool, prove, sampler};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

impl Launcher {
    /// Handles one line from the client: performs the request and answers it, or forwards it to nodes. Also
    /// answers errors, and a line that is not JSON.
    pub(super) fn request(&mut self, line: &str) {
        let request: Value = match serde_json::from_str(line) {
            Ok(value) => value,
            Err(e) => {
                self.send_client(&failure(
                    &Value::Null,
                    &format!("request: not JSON: {e}; send one object per line"),
                ));
                return;
            }
        };
        let id = request["id"].clone();
        match self.perform(&id, request) {
            Ok(None) => {}
            Ok(Some(fields)) => self.send_client(&success(&id, fields)),
            Err(text) => self.send_client(&failure(&id, &text)),
        }
    }

    /// Performs a request; returns the answer's fields, or None if the answer is sent separately, mostly
    /// later. An error if the operation is unknown or fails.
    fn perform(&mut self, id: &Value, request: Value) -> Res<Option<Map<String, Value>>> {
        let op = request["op"].as_str().unwrap_or("").to_owned();
        match op.as_str() {
            "hello" => Ok(Some(hello())),
            "fetch" => fetch::fetch(&parse("fetch", request)?).map(Some),
            "clock" => Ok(Some(fetch::clock())),
            "resume" => self.resume(&parse("resume", request)?).map(Some),
            "create" => self.create(&request).map(Some),
            "destroy" => self.destroy(&request).map(Some),
            "configure" => self.configure(id, request),
            "set" | "stop" | "freeze" | "frames" => self.forward(id, request),
            "start" | "exec" => {
                self.populate(&request)?;
                self.forward(id, request)
            }
            "disk" => self.disk(&request).map(Some),
            "input" | "resize" | "signal" => self.pass_to_exec(request).map(Some),
            "software" | "stack" => self.gather(id, Merge::Nodes, &request),
            "pending" | "finish" => self.gather(id, Merge::Totals, &request),
            "counts" => Ok(Some(self.counts())),
            "go" => self.gather(id, Merge::Plain, &request),
            "workload" => self.workload(id, request),
            "messages" => self.messages(&request).map(Some),
            "sample" => self.sample(id, request).map(|()| None),
            "prove" => self.prove(id, request).map(|()| None),
            "capture" => self.capture(id, request).map(|()| None),
            "capture-end" => self.capture_end(&request).map(|()| Some(Map::new())),
            "quit" => {
                self.destroy_all()?;
                self.quit = true;
                Ok(Some(Map::new()))
            }
            _ => Err(format!("op: \"{op}\" is unknown; see docs/contracts.md")),
        }
    }

    /// Returns the numbers of connected and of all load clients, and of settled and received messages. The
    /// launcher counts messages that the nodes have already reported, so no node has to answer.
    fn counts(&self) -> Map<String, Value> {
        let (connected, clients) = self.connected();
        let totals = json!({"settled": self.records.settled, "received": self.records.received});
        Map::from_iter([
            ("connected".to_owned(), json!(connected)),
            ("clients".to_owned(), json!(clients)),
            ("totals".to_owned(), totals),
        ])
    }

    fn messages(&mut self, request: &Value) -> Res<Map<String, Value>> {
        let path = request["path"]
            .as_str()
            .ok_or("messages: path is missing; give a file name")?;
        self.records.open(path)?;
        Ok(Map::new())
    }

    /// Mounts the file systems of the node that is about to start a program, unless they are mounted already.
    /// Does nothing for an unknown node.
    fn populate(&mut self, request: &Value) -> Res<()> {
        let name = request["node"].as_str().unwrap_or_default();
        let node = self.nodes.get_mut(name);
        node.map_or(Ok(()), |node| {
            spawn::populate(name, node, self.sandbox.as_ref())
        })
    }

    /// Fills the writable file systems of a node, or frees the space again; returns their size and free
    /// space. An error for a node that is unknown or has no file systems of its own.
    fn disk(&mut self, request: &Value) -> Res<Map<String, Value>> {
        let full = request["full"]
            .as_bool()
            .ok_or("disk: full is missing; write true or false")?;
        self.populate(request)?;
        let name = request["node"].as_str().unwrap_or_default();
        let node = self
            .nodes
            .get_mut(name)
            .ok_or_else(|| format!("node {name}: not in this lab; `create` it first"))?;
        let space = spawn::fill(name, node, full)?;
        let fields = [
            ("size_bytes", space.size_bytes),
            ("free_bytes", space.free_bytes),
        ];
        Ok(fields
            .map(|(key, value)| (key.to_owned(), json!(value)))
            .into_iter()
            .collect())
    }

    /// Forwards a request to its node and returns None; the launcher relays the node's answer later. An error
    /// if the request names no node of the lab.
    fn forward(&mut self, id: &Value, mut request: Value) -> Res<Option<Map<String, Value>>> {
        let node = request["node"]
            .as_str()
            .ok_or("node: missing; name the node")?
            .to_owned();
        if !self.nodes.contains_key(&node) {
            return Err(format!("node {node}: not in this lab; `create` it first"));
        }
        let number = self
            .calls
            .add(Call::new(id.clone(), Merge::Single, [node.clone()]));
        request["id"] = json!(number);
        self.send_node(&node, &request)?;
        Ok(None)
    }

    /// Forwards input, a resize or a signal to the node of a running exec, without waiting for the node. An
    /// error if the exec is not running.
    fn pass_to_exec(&mut self, mut request: Value) -> Res<Map<String, Value>> {
        let target = request["target"].clone();
        let missing = || format!("exec {target}: not running; `exec` first");
        let number = self.calls.number_of(&target).ok_or_else(missing)?;
        let node = self.calls.node_of(number).ok_or_else(missing)?;
        request["target"] = json!(number);
        request["id"] = Value::Null;
        self.send_node(&node, &request)?;
        Ok(Map::new())
    }

    /// Sends the same request to all nodes and returns None; the merged answer follows when all have
    /// answered, at once if the lab has no nodes.
    fn gather(
        &mut self,
        id: &Value,
        merge: Merge,
        request: &Value,
    ) -> Res<Option<Map<String, Value>>> {
        let per_node = self
            .nodes
            .keys()
            .map(|n| (n.clone(), request.clone()))
            .collect();
        self.scatter(id, merge, per_node, Map::new())
    }

    /// Sends each node of `per_node` its own request and returns None. The merged answer, with the fields
    /// `extra`, follows when all have answered, at once if there are none. An error if the lab lacks one of
    /// the nodes.
    fn scatter(
        &mut self,
        id: &Value,
        merge: Merge,
        per_node: BTreeMap<String, Value>,
        extra: Map<String, Value>,
    ) -> Res<Option<Map<String, Value>>> {
        if let Some(missing) = per_node.keys().find(|n| !self.nodes.contains_key(*n)) {
            return Err(format!(
                "node {missing}: not in this lab; `create` it first"
            ));
        }
        let mut call = Call::new(id.clone(), merge, per_node.keys().cloned());
        call.extra = extra;
        if call.complete() {
            let answer = call.answer();
            self.send_client(&answer);
            return Ok(None);
        }
        let number = self.calls.add(call);
        for (node, mut request) in per_node {
            request["id"] = json!(number);
            self.send_node(&node, &request)?;
        }
        Ok(None)
    }

    fn configure(&mut self, id: &Value, mut request: Value) -> Res<Option<Map<String, Value>>> {
        let devices: Vec<String> = match request["core_devices"].take() {
            Value::Null => Vec::new(),
            list => parse("configure", list)?,
        };
        let mut extra = Map::new();
        if !devices.is_empty() {
            let core = self
                .core
                .clone()
                .ok_or("core_devices: this lab has no core namespace; give `core` to create")?;
            let done = netns::within(&core, || {
                let sock = ethtool::control_socket()?;
                let mut netlink = Netlink::open()?;
                devices
                    .iter()
                    .map(|d| {
                        Ok((
                            d.clone(),
                            json!(ethtool::switch_off(&sock, &mut netlink, d)?),
                        ))
                    })
                    .collect::<Res<Map<_, _>>>()
            })?;
            extra.insert("core_devices".to_owned(), Value::Object(done));
        }
        let per_node = self.by_node("configure", request["nodes"].take(), |item| {
            let mut request = item.clone();
            request["op"] = json!("configure");
            request
        })?;
        self.scatter(id, Merge::Nodes, per_node, extra)
    }

    fn by_node(
        &self,
        op: &str,
        list: Value,
        make: impl Fn(&Value) -> Value,
    ) -> Res<BTreeMap<String, Value>> {
        let items: Vec<Value> = parse(op, list)?;
        items
            .iter()
            .map(|item| {
                let name = item["name"]
                    .as_str()
                    .ok_or_else(|| format!("{op}: name is missing in {item}"))?;
                Ok((name.to_owned(), make(item)))
            })
            .collect()
    }

    fn workload(&mut self, id: &Value, mut request: Value) -> Res<Option<Map<String, Value>>> {
        let items: Vec<Value> = parse("workload", request["items"].take())?;
        let mut per_node: BTreeMap<String, Value> = BTreeMap::new();
        for item in items {
            let node = item["node"]
                .as_str()
                .ok_or("workload: node is missing; name the node")?
                .to_owned();
            let entry = per_node
                .entry(node)
                .or_insert_with(|| json!({"op": "workload", "items": []}));
            if let Some(list) = entry["items"].as_array_mut() {
                list.push(item);
            }
        }
        self.scatter(id, Merge::Plain, per_node, Map::new())
    }

    fn sample(&mut self, id: &Value, mut request: Value) -> Res<()> {
        if request.get("core").is_none() {
            request["core"] = json!(self.core);
        }
        let spec: Sample = parse("sample", request)?;
        if let Some((old, old_id)) = self.sampler.take() {
            old.end();
            if let Some(old_id) = old_id {
                self.send_client(&failure(&old_id, "sample: replaced by a later request"));
            }
        }
        let helper = Helper::start(&[], |send| sampler::run(&spec, send))?;
        self.watch(helper.raw(), false, true)
            .map_err(|e| format!("sample: {e}"))?;
        self.sampler = Some((helper, Some(id.clone())));
        Ok(())
    }

    fn prove(&mut self, id: &Value, mut request: Value) -> Res<()> {
        let probes: Vec<LinkProbe> = parse("prove", request["probes"].take())?;
        let helper = Helper::start(&[], |send| {
            let answer = match prove::run(&probes) {
                Ok(list) => json!({"ok": true, "probes": list}),
                Err(text) => json!({"ok": false, "error": text}),
            };
            // The answer must not wait for the sockets to close: that takes the kernel a grace period each.
            send(&format!("{answer}\n"));
            String::new()
        })?;
        self.watch(helper.raw(), false, true)
            .map_err(|e| format!("prove: {e}"))?;
        self.provers.push((helper, id.clone()));
        Ok(())
    }
}

fn hello() -> Map<String, Value> {
    Map::from_iter([
        ("version".to_owned(), json!(env!("CARGO_PKG_VERSION"))),
        ("pid".to_owned(), json!(std::process::id())),
        ("clock_offset_ns".to_owned(), json!(clock::offset_ns())),
    ])
}
