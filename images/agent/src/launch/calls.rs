//! Keeps pending calls: requests that the launcher has forwarded to one or many nodes, and whose client waits
//! for an answer.

use crate::proto::Totals;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The way in which the answers of several nodes become one answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Merge {
    /// The answer and the events of one node are passed on unchanged.
    Single,
    /// An object {"nodes": {node: value}} with the field `value` of each answer.
    Nodes,
    /// The sums of the nodes' `Totals`.
    Totals,
    /// Success without further fields.
    Plain,
}

pub struct Call {
    pub client_id: Value,
    pub merge: Merge,
    waiting: BTreeSet<String>,
    answers: Map<String, Value>,
    totals: Totals,
    errors: Vec<String>,
    pub extra: Map<String, Value>,
}

impl Call {
    pub fn new(client_id: Value, merge: Merge, nodes: impl IntoIterator<Item = String>) -> Self {
        Self {
            client_id,
            merge,
            waiting: nodes.into_iter().collect(),
            answers: Map::new(),
            totals: Totals::default(),
            errors: Vec::new(),
            extra: Map::new(),
        }
    }

    pub fn waits_for(&self, node: &str) -> bool {
        self.waiting.contains(node)
    }

    /// Adds one node's answer or error; returns true once all nodes have answered.
    pub fn take(&mut self, node: &str, mut answer: Value) -> bool {
        self.waiting.remove(node);
        if answer["ok"] != json!(true) {
            self.errors.push(
                answer["error"]
                    .as_str()
                    .unwrap_or("no reason given")
                    .to_owned(),
            );
        } else if let Some(fields) = answer.as_object_mut() {
            fields.remove("id");
            fields.remove("ok");
            match self.merge {
                Merge::Single => self.answers = std::mem::take(fields),
                Merge::Nodes => {
                    let value = fields.remove("value").unwrap_or(Value::Null);
                    self.answers.insert(node.to_owned(), value);
                }
                Merge::Totals => match serde_json::from_value::<Totals>(answer["value"].take()) {
                    Ok(t) => self.totals += t,
                    Err(e) => self.errors.push(format!("node {node}: totals: {e}")),
                },
                Merge::Plain => {}
            }
        }
        self.waiting.is_empty()
    }

    pub fn complete(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns the merged answer for the client, with the fields of `extra`; a failure with the errors of all
    /// nodes if any node failed.
    pub fn answer(mut self) -> Value {
        if !self.errors.is_empty() {
            return failure(&self.client_id, &self.errors.join("\n"));
        }
        let mut out = match self.merge {
            Merge::Single => std::mem::take(&mut self.answers),
            Merge::Nodes => Map::from_iter([("nodes".to_owned(), Value::Object(self.answers))]),
            Merge::Totals => totals_fields(&self.totals),
            Merge::Plain => Map::new(),
        };
        out.extend(self.extra);
        success(&self.client_id, out)
    }
}

fn totals_fields(totals: &Totals) -> Map<String, Value> {
    json!({
        "pending": totals.pending,
        "connected": totals.connected,
        "clients": totals.clients,
        "totals": totals,
    })
    .as_object()
    .cloned()
    .unwrap_or_default()
}

pub fn success(id: &Value, mut fields: Map<String, Value>) -> Value {
    fields.insert("id".to_owned(), id.clone());
    fields.insert("ok".to_owned(), Value::Bool(true));
    Value::Object(fields)
}

pub fn failure(id: &Value, text: &str) -> Value {
    json!({"id": id, "ok": false, "error": text})
}

/// The pending calls, by the id under which they were forwarded to the nodes.
#[derive(Default)]
pub struct Calls {
    /// The map is sorted, so that calls that complete together are always answered in the same order.
    open: BTreeMap<u64, Call>,
    next: u64,
}

impl Calls {
    /// Registers a call; returns the id to use towards the nodes.
    pub fn add(&mut self, call: Call) -> u64 {
        self.next += 1;
        self.open.insert(self.next, call);
        self.next
    }

    pub fn get(&self, id: u64) -> Option<&Call> {
        self.open.get(&id)
    }

    /// Returns the id under which a client's request was forwarded to a node; None if the request is not
    /// pending.
    pub fn number_of(&self, client_id: &Value) -> Option<u64> {
        self.open
            .iter()
            .find(|(_, c)| &c.client_id == client_id)
            .map(|(n, _)| *n)
    }

    /// Returns the node that a call with `Merge::Single` waits for; None if the call is not pending.
    pub fn node_of(&self, id: u64) -> Option<String> {
        self.open.get(&id).and_then(|c| c.waiting.first().cloned())
    }

    /// Adds one node's answer to the call with this id. Removes the call and returns the merged answer once
    /// all nodes have answered, else None; also None if the call is not pending.
    pub fn take(&mut self, id: u64, node: &str, answer: Value) -> Option<Value> {
        if self.open.get_mut(&id)?.take(node, answer) {
            return self.open.remove(&id).map(Call::answer);
        }
        None
    }

    /// Records a failure of `node`, which has ended, in the calls that wait for it; returns the answers of
    /// the calls that are complete by that.
    pub fn node_gone(&mut self, node: &str) -> Vec<Value> {
        let ids: Vec<u64> = self
            .open
            .iter()
            .filter(|(_, c)| c.waits_for(node))
            .map(|(i, _)| *i)
            .collect();
        let text = format!(
            "node {node}: its process ended; see the launcher's log, then remove the node or take the lab down"
        );
        ids.into_iter()
            .filter_map(|id| self.take(id, node, json!({"ok": false, "error": text})))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_to_a_lost_node_fail_in_the_order_of_their_requests() {
        let mut calls = Calls::default();
        for id in 0..50 {
            calls.add(Call::new(json!(id), Merge::Single, ["n".to_owned()]));
        }
        let answers = calls.node_gone("n");
        let ids: Vec<u64> = answers.iter().filter_map(|a| a["id"].as_u64()).collect();
        assert_eq!(ids, Vec::from_iter(0..50));
    }
}
