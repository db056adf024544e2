//! Reads the answers of the sampler and of link proofs, and sends each to the client with the id of its
//! request. An answer of the sampler after its first one has no request and becomes an event.

use super::{Launcher, calls};
use crate::os::Res;
use serde_json::{Value, json};
use std::os::fd::RawFd;

impl Launcher {
    pub(super) fn on_helper(&mut self, fd: RawFd) {
        if let Some((helper, id)) = self.sampler.as_mut().filter(|(s, _)| s.raw() == fd) {
            let Some(outcome) = helper.read() else {
                return;
            };
            let id = id.take();
            if outcome.is_err() {
                self.sampler = None;
            }
            self.send_helper_answer(id, outcome);
        } else if let Some(i) = self.provers.iter().position(|(s, _)| s.raw() == fd)
            && let Some(outcome) = self.provers[i].0.read()
        {
            let (_, id) = self.provers.swap_remove(i);
            self.send_helper_answer(Some(id), outcome);
        }
    }

    fn send_helper_answer(&mut self, id: Option<Value>, outcome: Res<String>) {
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
        self.send_client(&answer);
    }
}
