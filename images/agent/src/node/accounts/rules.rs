//! What a program may say of its messages: the rules of one line of its records.

use crate::proto::{Flow, Pattern};
use crate::schedule::Ticks;
use std::collections::{BTreeMap, BTreeSet};

const OUTCOMES: [&str; 5] = ["settled", "sent", "unsettled", "unsent", "dropped"];
const STEPS: [&str; 6] = [
    "connecting",
    "connected",
    "subscribed",
    "listening",
    "disconnected",
    "failed",
];

/// P records of one program.
const MOST_SPANS: usize = 100_000;

/// A flow that the program sends.
pub struct Sent {
    flow: Flow,
    to: Vec<String>,
    /// All below it have their record, and those of `above`.
    below: u64,
    above: BTreeSet<u64>,
}

impl Sent {
    /// `to`: endpoints of its receivers.
    pub fn new(flow: Flow, to: Vec<String>) -> Self {
        Self {
            flow,
            to,
            below: 0,
            above: BTreeSet::new(),
        }
    }

    /// Takes note of a message's record; false if it had one.
    fn note(&mut self, seq: u64) -> bool {
        if seq < self.below || !self.above.insert(seq) {
            return false;
        }
        while self.above.remove(&self.below) {
            self.below += 1;
        }
        true
    }
}

/// Offsets from t0 at which a flow's messages are due: reckoned when they are asked for, since a long flow has millions.
pub fn due(flow: &Flow) -> impl Iterator<Item = i64> {
    let ticks = flow
        .schedule
        .clone()
        .map(|schedule| Ticks::new(schedule, flow.start_ns, flow.stop_ns));
    ticks
        .into_iter()
        .flat_map(|mut ticks| std::iter::from_fn(move || ticks.take_due(i64::MAX)))
}

pub struct Rules {
    endpoint: String,
    sends: BTreeMap<u32, Sent>,
    receives: BTreeSet<u32>,
    spans: usize,
    pub t0_ns: Option<i64>,
}

type Fault = Result<(), String>;

impl Rules {
    pub fn new(endpoint: String, sends: BTreeMap<u32, Sent>, receives: BTreeSet<u32>) -> Self {
        Self {
            endpoint,
            sends,
            receives,
            spans: 0,
            t0_ns: None,
        }
    }

    /// The rule that the line breaks, if it does.
    pub fn check(&mut self, line: &str) -> Fault {
        let fields: Vec<&str> = line.split(',').collect();
        match fields[0] {
            "S" => self.sent(&fields),
            "R" => self.received(&fields),
            "C" => self.session(line),
            "P" => self.span(&fields),
            _ => Err("begins with none of S, R, C and P".to_owned()),
        }
    }

    /// Flows of which messages were due by `now_ns` that have no record.
    pub fn unaccounted(&self, now_ns: i64) -> Vec<String> {
        let Some(t0_ns) = self.t0_ns else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for (number, flow) in &self.sends {
            let by_now = due(&flow.flow).take_while(|at| t0_ns + at <= now_ns);
            let due = by_now.count() as u64;
            let known = flow.below.min(due) + flow.above.range(..due).count() as u64;
            if known < due {
                let missing = due - known;
                found.push(format!(
                    "{missing} of {due} messages that were due of flow {number} have no S record"
                ));
            }
        }
        found
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
        let seq = whole("seq", seq)?;
        for (name, text) in [("bytes", bytes), ("attempts", attempts)] {
            whole(name, text)?;
        }
        let scheduled = self.time("scheduled_ns", scheduled)?;
        let sent = whole("sent_ns", sent)?;
        let settled = whole("settled_ns", settled)?;
        if !OUTCOMES.contains(&outcome) {
            return Err(format!("outcome is none of {}", OUTCOMES.join(", ")));
        }
        if sent != 0 && sent < scheduled {
            return Err("sent_ns is earlier than scheduled_ns".to_owned());
        }
        if settled != 0 && settled < sent.max(scheduled) {
            return Err("settled_ns is earlier than what comes before it".to_owned());
        }
        if outcome == "settled" && settled == 0 {
            return Err("is settled and has no settled_ns".to_owned());
        }
        if !self.sender(number)?.note(seq as u64) {
            return Err(format!(
                "message {seq} of flow {number} has its S record already"
            ));
        }
        Ok(())
    }

    fn received(&mut self, fields: &[&str]) -> Fault {
        let &[_, flow, seq, receiver, leg, received, copy] = fields else {
            return Err(format!("has {} fields; an R record has 7", fields.len()));
        };
        let number = whole("flow", flow)?;
        whole("seq", seq)?;
        self.time("received_ns", received)?;
        if copy != "0" && copy != "1" {
            return Err("copy is neither 0 nor 1".to_owned());
        }
        match leg {
            "0" => self.arrival(number, receiver),
            "1" => self.reply(number, receiver),
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

    fn reply(&mut self, number: i64, receiver: &str) -> Fault {
        let flow = self.sender(number)?;
        if flow.flow.pattern != Pattern::Request {
            return Err(format!("flow {number} asks for no reply"));
        }
        if !flow.to.iter().any(|name| name == receiver) {
            return Err(format!(
                "receiver is none of whom flow {number} asks: {}",
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
            return Err(format!("what is none of {}", STEPS.join(", ")));
        }
        whole("t_ns", at)?;
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
            whole("seq", seq)?;
            if !u32::try_from(number).is_ok_and(|n| self.receives.contains(&n)) {
                self.sender(number)?;
            }
        }
        whole("t_ns", at)?;
        whole("duration_ns", duration)?;
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

    /// A time of the scenario: seconds or milliseconds in place of nanoseconds are found here.
    fn time(&self, name: &str, text: &str) -> Result<i64, String> {
        let at = whole(name, text)?;
        match self.t0_ns {
            Some(t0_ns) if at >= t0_ns => Ok(at),
            Some(t0_ns) => Err(format!(
                "{name} is before t0_ns, {t0_ns}; write Unix nanoseconds of the lab's clock"
            )),
            None => Err(format!(
                "{name} is before the scenario's start; wait until the file has t0_ns"
            )),
        }
    }
}

fn list(names: &[String]) -> String {
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}

fn whole(name: &str, text: &str) -> Result<i64, String> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let value = digits.then(|| text.parse().ok()).flatten();
    value.ok_or_else(|| format!("{name} is not a whole number from 0"))
}

/// One field after RFC 4180.
fn is_field(text: &str) -> bool {
    match text.strip_prefix('"') {
        Some(inner) => inner
            .strip_suffix('"')
            .is_some_and(|inner| !inner.replace("\"\"", "").contains('"')),
        None => !text.contains([',', '"', '\r']),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        let flow = |number: u32, pattern: &str, stop_ns: i64| {
            let flow = serde_json::json!({
                "number": number, "pattern": pattern, "payload": {"kind": "own", "bytes": 100},
                "schedule": {"kind": "own", "arrivals": "together", "seed": 1, "rates": [{"from_ns": 0, "per_s": 1e8}]},
                "start_ns": 0, "stop_ns": stop_ns, "reply": null,
            });
            let to = vec!["far".to_owned()];
            (number, Sent::new(serde_json::from_value(flow).unwrap(), to))
        };
        // Due at 0, 10 and 20; at none.
        let sends = BTreeMap::from([flow(3, "push", 30), flow(4, "request", 0)]);
        let mut rules = Rules::new("me".to_owned(), sends, BTreeSet::from([7]));
        rules.t0_ns = Some(1000);
        rules
    }

    #[test]
    fn records_of_the_contract_are_taken() {
        let mut rules = rules();
        for line in [
            "S,3,0,100,1000,1001,0,1,sent",
            "S,3,2,100,1020,0,0,0,unsent",
            "S,4,0,100,1000,1001,1002,1,settled",
            "R,7,0,me,0,1005,0",
            "R,4,0,far,1,1005,1",
            "C,me,connected,1005,",
            "C,me,failed,1005,\"no, \"\"never\"\"\"",
            "P,me,read,7,0,1005,20",
            "P,me,write,3,0,1005,0",
            "P,me,garbage-collection,,,900,3",
        ] {
            assert_eq!(rules.check(line), Ok(()), "{line}");
        }
    }

    #[test]
    fn each_other_line_breaks_a_rule_of_its_own() {
        for (line, rule) in [
            ("hello", "none of S, R, C and P"),
            ("", "none of S, R, C and P"),
            ("B,3,me,0,1000,1,,,,", "none of S, R, C and P"),
            ("S,3,0,100", "has 4 fields"),
            ("S,x,0,100,1000,1001,0,1,sent", "flow is not a whole number"),
            ("S,3,-1,100,1000,1001,0,1,sent", "seq is not a whole number"),
            ("S,3,0,1e2,1000,1001,0,1,sent", "bytes is not a whole"),
            ("S,3,0,100,999,1001,0,1,sent", "before t0_ns, 1000"),
            ("S,3,0,100,1000,999,0,1,sent", "sent_ns is earlier"),
            (
                "S,3,0,100,1000,1001,1000,1,settled",
                "settled_ns is earlier",
            ),
            ("S,3,0,100,1000,1001,0,1,settled", "no settled_ns"),
            ("S,3,0,100,1000,1001,0,1,gone", "outcome is none of"),
            ("S,7,0,100,1000,1001,0,1,sent", "not sent by this software"),
            ("R,3,0,me,0,1005,0", "does not come here; 7 do"),
            ("R,7,0,far,0,1005,0", "endpoint, me"),
            ("R,7,0,me,2,1005,0", "leg is neither"),
            ("R,7,0,me,0,1005,yes", "copy is neither"),
            ("R,3,0,far,1,1005,0", "asks for no reply"),
            ("R,4,0,me,1,1005,0", "none of whom flow 4 asks: far"),
            ("C,far,connected,1,", "not this software's"),
            ("C,me,born,1,", "what is none of"),
            ("C,me,failed,1,a,b", "is not quoted"),
            ("P,me,read,7,0,1005", "has 6 fields"),
            ("P,far,read,7,0,1005,1", "not this software's"),
            ("P,me,Read it,7,0,1005,1", "not a word"),
            ("P,me,read,9,0,1005,1", "flow 9 is not sent"),
            ("P,me,read,7,,1005,1", "seq is not a whole number"),
            ("P,me,read,7,0,1005,-1", "duration_ns is not a whole number"),
        ] {
            let fault = rules().check(line).expect_err(line);
            assert!(fault.contains(rule), "{line}: {fault}");
        }
    }

    #[test]
    fn a_message_has_one_s_record_and_what_has_none_is_said() {
        let mut rules = rules();
        assert_eq!(rules.check("S,3,1,100,1010,0,0,0,unsent"), Ok(()));
        let fault = rules.check("S,3,1,100,1010,0,0,0,unsent").expect_err("two");
        assert!(fault.contains("has its S record already"));
        let said = rules.unaccounted(1010);
        assert!(said[0].starts_with("1 of 2 messages"), "{said:?}");
        assert!(rules.unaccounted(999).is_empty());
    }
}
