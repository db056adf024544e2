//! Sends a node's messages to the launcher: records, counts of sessions, events of its programs, and answers.

use super::Node;
use crate::os::Res;
use serde_json::{Value, json};

/// The longest delay of records in the node; with the launcher's interval the total delay is below a second.
const RECORDS_NS: i64 = 500_000_000;
const RECORDS_BYTES: usize = 8192;

impl Node {
    pub(super) fn send_account_messages(&mut self) {
        for account in &mut self.accounts {
            for message in account.take_messages() {
                self.channel.send(&message.to_string());
            }
        }
    }

    pub(super) fn pass_records(&mut self, now: i64) {
        if self.records.is_empty() {
            self.records_due_ns = None;
            return;
        }
        let due = *self.records_due_ns.get_or_insert(now + RECORDS_NS);
        if now >= due || self.records.len() >= RECORDS_BYTES {
            self.flush_records();
        }
    }

    pub(super) fn flush_records(&mut self) {
        let records = std::mem::take(&mut self.records);
        self.channel.send_lines(&records);
        self.records_due_ns = None;
    }

    /// Returns how many roles that are clients are connected, and how many there are.
    pub(super) fn clients(&self) -> (u64, u64) {
        if let Some(watch) = &self.watch {
            return watch.clients();
        }
        let clients = self.roles.iter().filter(|armed| !armed.listens);
        clients.fold((0, 0), |(up, all), armed| {
            (up + u64::from(armed.role.connected()), all + 1)
        })
    }

    pub(super) fn send_clients(&mut self) {
        let counts = self.clients();
        if self.sent_clients.unwrap_or((0, 0)) != counts {
            self.sent_clients = Some(counts);
            let event = json!({"event": "clients", "connected": counts.0, "total": counts.1});
            self.channel.send(&event.to_string());
        }
    }

    pub(super) fn answer(&mut self, id: &Value, outcome: Res<Value>) {
        let line = match outcome {
            Ok(mut fields) => {
                fields["id"] = id.clone();
                fields["ok"] = json!(true);
                fields
            }
            Err(text) => {
                json!({"id": id, "ok": false, "error": format!("node {}: {text}", self.name)})
            }
        };
        self.channel.send(&line.to_string());
    }
}
