//! Checks each line that a program writes about its messages and sessions (docs/accounting.md): the fields,
//! the times, and whether the plan has the flow and the message.

use super::outstanding::Sent;
use super::times::{EARLY_NS, Fault, Times, Window, whole};
use crate::proto::Pattern;
use std::collections::{BTreeMap, BTreeSet};

const STEPS: [&str; 6] = [
    "connecting",
    "connected",
    "subscribed",
    "listening",
    "disconnected",
    "failed",
];

/// The most P records (spans) of one program.
const MOST_SPANS: usize = 100_000;
/// Tolerance for spans from tools with a resolution of 1 ms, such as the JVM: their beginning and their
/// length are each up to 1 ms wrong.
const SPAN_EARLY_NS: i64 = 2_000_000;

pub struct Rules {
    endpoint: String,
    sends: BTreeMap<u32, Sent>,
    receives: BTreeSet<u32>,
    spans: usize,
    window: Window,
}

impl Rules {
    pub fn new(
        endpoint: String,
        sends: BTreeMap<u32, Sent>,
        receives: BTreeSet<u32>,
        began_ns: i64,
    ) -> Self {
        Self {
            endpoint,
            sends,
            receives,
            spans: 0,
            window: Window {
                began_ns,
                now_ns: began_ns,
                t0_ns: None,
            },
        }
    }

    pub fn set_t0(&mut self, t0_ns: Option<i64>) {
        self.window.t0_ns = t0_ns;
    }

    /// Checks a line that was read at `now_ns`; the error names the broken rule. Marks the message of an S
    /// record as recorded or refused.
    pub fn check(&mut self, line: &str, now_ns: i64) -> Fault {
        self.window.now_ns = now_ns;
        let fields: Vec<&str> = line.split(',').collect();
        match fields[0] {
            "S" => self.sent(&fields),
            "R" => self.received(&fields),
            "C" => self.session(line),
            "P" => self.span(&fields),
            _ => Err("does not begin with S, R, C or P".to_owned()),
        }
    }

    /// Returns the number of messages that are due by `now_ns` and without a line of the program; 0 before t0
    /// is known.
    pub fn outstanding(&mut self, now_ns: i64) -> u64 {
        let Some(t0_ns) = self.window.t0_ns else {
            return 0;
        };
        let flows = self.sends.values_mut();
        flows.map(|flow| flow.outstanding(now_ns - t0_ns)).sum()
    }

    /// Returns a D record for each range of messages that were due by `now_ns` and have no valid S record;
    /// empty before t0 is known.
    pub fn missing(&mut self, now_ns: i64) -> String {
        let Some(t0_ns) = self.window.t0_ns else {
            return String::new();
        };
        let mut lines = String::new();
        for (number, flow) in &mut self.sends {
            for range in flow.missing(now_ns - t0_ns) {
                lines += &range.line(*number);
            }
        }
        lines
    }

    fn sent(&mut self, fields: &[&str]) -> Fault {
        let &[
            _,
            flow,
            seq,
            bytes,
            scheduled,
            sent,
            settled,
            attempts,
            outcome,
        ] = fields
        else {
            return Err(format!("has {} fields; an S record has 9", fields.len()));
        };
        let number = whole("flow", flow)?;
        let seq = whole("seq", seq)? as u64;
        self.sender(number)?;
        let rest = [bytes, scheduled, sent, settled, attempts];
        let fault = self.message(number, seq, rest, outcome);
        let passed_ns = self.window.now_ns - self.window.t0_ns.unwrap_or(self.window.now_ns);
        let flow = self.sender(number)?;
        if fault.is_err() {
            flow.refuse(seq, passed_ns);
        } else if !flow.record(seq) {
            return Err(format!(
                "message {seq} of flow {number} has its S record already"
            ));
        }
        fault
    }

    /// Checks the fields of an S record; `rest` holds bytes, scheduled_ns, sent_ns, settled_ns and attempts.
    fn message(&mut self, number: i64, seq: u64, rest: [&str; 5], outcome: &str) -> Fault {
        let [bytes, scheduled, sent, settled, attempts] = rest;
        whole("bytes", bytes)?;
        let attempts = whole("attempts", attempts)?;
        let times = Times {
            scheduled: self.window.time("scheduled_ns", scheduled)?,
            sent: self.window.time_or_never("sent_ns", sent)?,
            settled: self.window.time_or_never("settled_ns", settled)?,
        };
        let due = self.due(number, seq)?;
        self.scheduled(number, times.scheduled, due)?;
        times.in_order()?;
        times.agree_with(outcome)?;
        match (times.sent, attempts) {
            (0, 1..) => Err(format!(
                "attempts is {attempts}, and sent_ns is 0; write when it was sent, or 0 attempts"
            )),
            (1.., 0) => Err("attempts is 0, and sent_ns is not; write 1 or more".to_owned()),
            _ => Ok(()),
        }
    }

    /// Returns when a message is due, in Unix nanoseconds; None for a greedy flow or a message that is
    /// already recorded. An error if the program does not send the flow, if the flow has no such message, or
    /// if the message is due more than `EARLY_NS` after now.
    fn due(&mut self, number: i64, seq: u64) -> Result<Option<i64>, String> {
        let (now_ns, t0_ns) = (
            self.window.now_ns + EARLY_NS,
            self.window.t0_ns.unwrap_or(self.window.now_ns),
        );
        let due = self.sender(number)?.due_ns(seq, now_ns - t0_ns);
        due.map(|due| due.map(|due| t0_ns + due))
            .map_err(|rule| format!("flow {number}: {rule}"))
    }

    /// Requires that `scheduled_ns` is the message's due time, so that the record shows how late the program
    /// was. If `due` is None, requires only that it lies between the flow's start and its stop, stop
    /// excluded.
    fn scheduled(&mut self, number: i64, scheduled: i64, due: Option<i64>) -> Fault {
        if let Some(due) = due
            && scheduled != due
        {
            return Err(format!(
                "scheduled_ns is not when the message was due, {due}; write t0_ns + times_ns[seq]"
            ));
        }
        let t0_ns = self.window.t0_ns.unwrap_or(self.window.now_ns);
        let flow = &self.sender(number)?.flow;
        let (from, to) = (t0_ns + flow.start_ns, t0_ns.saturating_add(flow.stop_ns));
        if !(from..to).contains(&scheduled) {
            return Err(format!(
                "scheduled_ns is outside of the flow's time, {from} to {to}"
            ));
        }
        Ok(())
    }

    fn received(&mut self, fields: &[&str]) -> Fault {
        let &[_, flow, seq, receiver, leg, received, copy] = fields else {
            return Err(format!("has {} fields; an R record has 7", fields.len()));
        };
        let number = whole("flow", flow)?;
        let seq = whole("seq", seq)? as u64;
        let at = self.window.time("received_ns", received)?;
        if copy != "0" && copy != "1" {
            return Err("copy is neither 0 nor 1".to_owned());
        }
        match leg {
            "0" => self.arrival(number, receiver),
            "1" => self.reply(number, seq, receiver, at),
            _ => Err("leg is neither 0 (at the receiver) nor 1 (back at the sender)".to_owned()),
        }
    }

    fn arrival(&self, number: i64, receiver: &str) -> Fault {
        if !u32::try_from(number).is_ok_and(|n| self.receives.contains(&n)) {
            let known: Vec<String> = self.receives.iter().map(u32::to_string).collect();
            return Err(format!(
                "flow {number} does not come here; {} do",
                list(&known)
            ));
        }
        if receiver != self.endpoint {
            return Err(format!(
                "receiver is not this software's endpoint, {}",
                self.endpoint
            ));
        }
        Ok(())
    }

    fn reply(&mut self, number: i64, seq: u64, receiver: &str, at: i64) -> Fault {
        let due = self.due(number, seq)?;
        if let Some(due) = due
            && at < due
        {
            return Err(format!(
                "received_ns is earlier than when the request was due, {due}"
            ));
        }
        let flow = self.sender(number)?;
        if flow.flow.pattern != Pattern::Request {
            return Err(format!("flow {number} requests no reply"));
        }
        if !flow.to.iter().any(|name| name == receiver) {
            return Err(format!(
                "receiver is not one of flow {number}'s receivers: {}",
                list(&flow.to)
            ));
        }
        Ok(())
    }

    fn session(&self, line: &str) -> Fault {
        let fields: Vec<&str> = line.splitn(5, ',').collect();
        let &[_, endpoint, what, at, detail] = fields.as_slice() else {
            return Err(format!("has {} fields; a C record has 5", fields.len()));
        };
        self.own(endpoint)?;
        if !STEPS.contains(&what) {
            return Err(format!("what is not one of {}", STEPS.join(", ")));
        }
        self.window.life("t_ns", whole("t_ns", at)?, EARLY_NS)?;
        if !is_field(detail) {
            return Err("detail holds a comma or a quote and is not quoted".to_owned());
        }
        Ok(())
    }

    fn span(&mut self, fields: &[&str]) -> Fault {
        let &[_, endpoint, what, flow, seq, at, duration] = fields else {
            return Err(format!("has {} fields; a P record has 7", fields.len()));
        };
        self.own(endpoint)?;
        if what.is_empty() || !what.bytes().all(|b| b.is_ascii_lowercase() || b == b'-') {
            return Err("what is not a word of small letters and dashes".to_owned());
        }
        if (flow, seq) != ("", "") {
            let number = whole("flow", flow)?;
            let seq = whole("seq", seq)?;
            if !u32::try_from(number).is_ok_and(|n| self.receives.contains(&n)) {
                self.due(number, seq as u64)?;
            }
        }
        let at = whole("t_ns", at)?;
        let duration = whole("duration_ns", duration)?;
        self.window.life("t_ns", at, SPAN_EARLY_NS)?;
        let end = at.saturating_add(duration);
        self.window.life("t_ns + duration_ns", end, SPAN_EARLY_NS)?;
        self.spans += 1;
        if self.spans > MOST_SPANS {
            return Err(format!("is one more than {MOST_SPANS} P records"));
        }
        Ok(())
    }

    fn own(&self, endpoint: &str) -> Fault {
        if endpoint == self.endpoint {
            return Ok(());
        }
        Err(format!(
            "endpoint is not this software's, {}",
            self.endpoint
        ))
    }

    fn sender(&mut self, number: i64) -> Result<&mut Sent, String> {
        let known: Vec<String> = self.sends.keys().map(u32::to_string).collect();
        u32::try_from(number)
            .ok()
            .and_then(|n| self.sends.get_mut(&n))
            .ok_or_else(|| {
                format!(
                    "flow {number} is not sent by this software; {} are",
                    list(&known)
                )
            })
    }
}

fn list(names: &[String]) -> String {
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}

/// Returns whether the text is one CSV field as RFC 4180 requires.
fn is_field(text: &str) -> bool {
    match text.strip_prefix('"') {
        Some(inner) => inner
            .strip_suffix('"')
            .is_some_and(|inner| !inner.replace("\"\"", "").contains('"')),
        None => !text.contains([',', '"', '\r']),
    }
}

#[cfg(test)]
mod tests;
