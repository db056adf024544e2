//! Performs the operations of a node, each in one short function.

use super::accounts::Account;
use super::exec::Exec;
use super::software::{Supervised, files};
use super::watch::{MANY, Watch};
use super::{Armed, Node, configure, stack};
use crate::clock;
use crate::os::{self, Res};
use crate::proto::{Item, Network, Software, Totals, parse};
use crate::roles;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

impl Node {
    /// Performs a request and answers it. The answers to start, stop, exec and frames come later unless they
    /// fail at once; a request without an id (input, resize, signal) has no answer, and its error is only
    /// printed.
    pub(super) fn request(&mut self, mut request: Value) {
        let id = request["id"].take();
        let op = request["op"].as_str().unwrap_or("").to_owned();
        let outcome = match op.as_str() {
            "configure" => self.configure(request).map(Some),
            "set" => set(&request).map(Some),
            "start" => self.start(&id, request).map(|()| None),
            "stop" => self.stop(&id, &request).map(|()| None),
            "freeze" => self.freeze(&request).map(Some),
            "software" => Ok(Some(json!({"value": self.states()}))),
            "stack" => stack::counters().map(|counted| Some(json!({"value": counted}))),
            "workload" => self.arm(request).map(Some),
            "go" => self.go(&request).map(Some),
            "pending" => Ok(Some(json!({"value": self.pending()}))),
            "finish" => self.finish().map(Some),
            "exec" => self.exec(&id, &request).map(|()| None),
            "frames" => self.frames.request(&id, request).map(|()| None),
            "input" | "resize" | "signal" => self.pass_to_exec(&op, &request).map(|()| None),
            _ => Err(format!(
                "op: \"{op}\" is no operation of a node; see docs/contracts.md"
            )),
        };
        match outcome {
            Ok(None) => {}
            Ok(Some(fields)) => self.answer(&id, Ok(fields)),
            Err(text) if id.is_null() => eprintln!("node {}: {op}: {text}", self.name),
            Err(text) => self.answer(&id, Err(text)),
        }
    }

    fn configure(&mut self, request: Value) -> Res<Value> {
        let network: Network = parse("configure", request)?;
        self.addresses.extend(
            network
                .interfaces
                .iter()
                .flat_map(|i| i.addresses().map(|(address, _)| address.to_owned())),
        );
        let mut read = json!(configure::apply(&network)?);
        read["hostname"] = json!(os::hostname().map_err(|e| format!("hostname: {e}"))?);
        Ok(json!({"value": read}))
    }

    fn start(&mut self, id: &Value, mut request: Value) -> Res<()> {
        let software: Software = parse("start", request["software"].take())?;
        let mut process = software.process.ok_or_else(|| {
            format!(
                "software {}: has no process; a role of the agent is armed with `workload`",
                software.name
            )
        })?;
        if let Some(old) = self.software.iter().position(|s| s.name == software.name) {
            if self.software[old].alive() {
                return Err(format!(
                    "software {}: runs already; stop it first",
                    software.name
                ));
            }
            self.software.remove(old);
        }
        let log = request["log"].as_str().map(str::to_owned);
        let log = log.or_else(|| self.directories.log(&self.name, &software.name));
        let dir = self.directories.make(&self.name)?;
        let mut spec = software.spec;
        self.account(
            &software.name,
            spec["accounts"].take(),
            &dir,
            &mut process.env,
        )?;
        let opened = log.as_ref();
        let opened = opened.map(|path| files::open_log(&software.name, path, self.logs.as_ref()));
        let mut started = Supervised::start(
            &software.name,
            process,
            &dir,
            opened.transpose()?,
            id.clone(),
        )?;
        started.log_path = log;
        self.software.push(started);
        Ok(())
    }

    /// Creates the account of a program that records its own messages, and adds the paths of its files to
    /// `environment`; does nothing if `settings` is null. A restart with the same flows continues the old
    /// account; other flows finish the old one.
    fn account(
        &mut self,
        name: &str,
        settings: Value,
        dir: &str,
        environment: &mut BTreeMap<String, String>,
    ) -> Res<()> {
        if settings.is_null() {
            return Ok(());
        }
        let known = self.accounts.iter().position(|a| a.software == name);
        let place = match known {
            Some(place) if self.accounts[place].has_settings(&settings) => place,
            Some(place) => {
                // The flows differ: close the old account, which first reads the rest of its pipe.
                let old = &mut self.accounts[place];
                old.finish(clock::lab_ns(), &mut self.records);
                let messages = old.take_messages();
                self.accounts[place] = Account::new(name, settings, dir, self.t0_ns)?;
                for message in messages {
                    self.channel.send(&message.to_string());
                }
                place
            }
            None => {
                let account = Account::new(name, settings, dir, self.t0_ns)?;
                self.accounts.push(account);
                self.accounts.len() - 1
            }
        };
        self.accounts[place].name_files(environment);
        Ok(())
    }

    fn stop(&mut self, id: &Value, request: &Value) -> Res<()> {
        let name = request["software"]
            .as_str()
            .ok_or("stop: software is missing; name it")?;
        let signal = os::signal_number(request["signal"].as_str().unwrap_or("SIGTERM"))?;
        let timeout = request["timeout_ns"].as_i64().unwrap_or(5_000_000_000);
        let known: Vec<&str> = self.software.iter().map(|s| s.name.as_str()).collect();
        let missing = format!("software {name}: not on this node; write one of {known:?}");
        let software = self
            .software
            .iter_mut()
            .find(|s| s.name == name)
            .ok_or(missing)?;
        software.stop(id.clone(), signal, clock::mono_ns() + timeout);
        Ok(())
    }

    /// Stops or continues the processes of the program `software`, or of all running programs if the request
    /// names none. Returns the names of the programs for which this changed anything.
    fn freeze(&mut self, request: &Value) -> Res<Value> {
        let frozen = request["frozen"]
            .as_bool()
            .ok_or("freeze: frozen is missing; write true or false")?;
        let wanted = request["software"].as_str();
        if let Some(name) = wanted.filter(|name| self.software.iter().all(|s| s.name != *name)) {
            return Err(format!("software {name}: not on this node; start it first"));
        }
        let chosen = self.software.iter_mut();
        let changed: Vec<String> = chosen
            .filter(|s| wanted.is_none_or(|name| s.name == name))
            .filter_map(|s| s.freeze(frozen).then(|| s.name.clone()))
            .collect();
        Ok(json!({"software": changed}))
    }

    fn states(&self) -> Map<String, Value> {
        self.software
            .iter()
            .map(|s| (s.name.clone(), s.state()))
            .collect()
    }

    fn arm(&mut self, mut request: Value) -> Res<Value> {
        let items: Vec<Item> = parse("workload", request["items"].take())?;
        let mut armed = Vec::new();
        for item in items {
            let listens = item.software.session.listens;
            let role = roles::arm(item)?;
            armed.push(Armed { role, listens });
        }
        if self.roles.is_empty() {
            // A new scenario begins; `finish` has already reported the counts of the previous one.
            self.totals_done = Totals::default();
        }
        self.roles.extend(armed);
        if self.watch.is_none() && self.roles.len() >= MANY {
            self.watch = Some(Watch::new()?);
        }
        self.watch_roles()?;
        Ok(json!({}))
    }

    /// If the roles are many, registers the descriptors and times for which they wait now.
    fn watch_roles(&mut self) -> Res<()> {
        if let Some(watch) = &mut self.watch {
            for (i, armed) in self.roles.iter().enumerate() {
                watch.update(i, armed)?;
            }
        }
        Ok(())
    }

    fn go(&mut self, request: &Value) -> Res<Value> {
        let t0 = request["t0_ns"]
            .as_i64()
            .ok_or("go: t0_ns is missing; give Unix nanoseconds")?;
        for armed in &mut self.roles {
            armed.role.go(t0);
        }
        self.watch_roles()?;
        self.t0_ns = Some(t0);
        for account in &mut self.accounts {
            account.go(self.t0_ns)?;
        }
        Ok(json!({}))
    }

    /// Returns the message counts of this scenario; `pending` includes the due messages without a record of
    /// programs that run or will restart.
    fn pending(&mut self) -> Totals {
        let now = clock::lab_ns();
        let mut sum = self.totals();
        for account in &mut self.accounts {
            let of = |s: &&Supervised| s.name == account.software && s.goes_on();
            if self.software.iter().any(|s| of(&s)) {
                sum.pending += account.outstanding(now);
            }
        }
        sum
    }

    fn totals(&self) -> Totals {
        let mut sum = self.totals_done;
        for armed in &self.roles {
            sum += armed.role.totals();
        }
        let (connected, clients) = self.clients();
        sum.connected += connected;
        sum.clients += clients;
        sum
    }

    /// Ends all roles and accounts, and returns the message counts; keeps the counts, so that a second
    /// `finish` gives the same answer.
    fn finish(&mut self) -> Res<Value> {
        let now = clock::lab_ns();
        for armed in &mut self.roles {
            armed.role.finish(now, &mut self.records);
        }
        for account in &mut self.accounts {
            account.finish(now, &mut self.records);
        }
        self.watch = None; // its counts are those before the roles have finished
        self.totals_done = self.totals();
        self.roles.clear();
        self.flush_records();
        self.send_account_messages();
        Ok(json!({"value": self.totals_done}))
    }

    fn exec(&mut self, id: &Value, request: &Value) -> Res<()> {
        self.execs.push(Exec::start(id.clone(), request)?);
        Ok(())
    }

    fn pass_to_exec(&mut self, op: &str, request: &Value) -> Res<()> {
        let target = &request["target"];
        let exec = self.execs.iter_mut().find(|e| e.id == *target);
        let exec = exec.ok_or_else(|| format!("exec {target}: has ended; start another"))?;
        match op {
            "input" => exec.input(request),
            "resize" => exec.resize(request),
            _ => exec.signal(request),
        }
    }
}

fn set(request: &Value) -> Res<Value> {
    let mut out = json!({});
    if let Some(mtus) = request["mtu"].as_object() {
        for (name, mtu) in mtus {
            let mtu = mtu.as_u64().and_then(|m| u32::try_from(m).ok());
            let mtu =
                mtu.ok_or_else(|| format!("set: mtu of {name}: not a whole number of bytes"))?;
            out["mtu"][name] = json!(configure::set_mtu(name, mtu)?);
        }
    }
    if let Some(name) = request["hostname"].as_str() {
        os::set_hostname(name)
            .map_err(|e| format!("hostname {name}: {e}; at most 64 characters"))?;
        out["hostname"] = json!(os::hostname().map_err(|e| format!("hostname: {e}"))?);
    }
    Ok(out)
}
