//! Tests that another crate can add a role to the agent's own roles. The added role counts each message as
//! sent.

use serde_json::json;
use std::os::fd::RawFd;
use vnet_agent::extend::{Item, Outcome, Res, Role, Sends, Totals, add, arm, parse};

struct Beacon {
    sends: Sends,
    t0_ns: Option<i64>,
    sent: u64,
}

#[derive(serde::Deserialize)]
struct Spec {
    loud: bool,
}

fn arm_beacon(mut item: Item) -> Res<Box<dyn Role>> {
    let spec: Spec = parse("spec", item.software.spec.take())?;
    if !spec.loud {
        return Err("loud: a beacon is; write true".to_owned());
    }
    let flow = item.flows.pop().ok_or("flows: needs one")?;
    let sends = Sends::new(flow, &item.software.session, None)?;
    let (t0_ns, sent) = (None, 0);
    Ok(Box::new(Beacon { sends, t0_ns, sent }))
}

impl Role for Beacon {
    fn go(&mut self, t0_ns: i64) {
        self.t0_ns = Some(t0_ns);
    }

    fn deadline(&self) -> Option<i64> {
        Some(self.t0_ns? + self.sends.next_ns()?)
    }

    fn fds(&self, _wait_for: &mut dyn FnMut(RawFd, bool)) {}

    fn on_ready(&mut self, _fd: RawFd, _revents: i16, _now: i64, _out: &mut Vec<u8>) {}

    fn on_time(&mut self, now: i64, out: &mut Vec<u8>) {
        let Some(t0) = self.t0_ns else { return };
        while let Some(mut message) = self.sends.take_due(t0, now, out) {
            (message.sent_ns, message.attempts) = (now, 1);
            self.sends.record(out, &message, 0, Outcome::Sent);
            self.sent += 1;
        }
    }

    fn finish(&mut self, _now: i64, _out: &mut Vec<u8>) {
        self.sends.stop();
    }

    fn totals(&self) -> Totals {
        Totals {
            scheduled: self.sends.scheduled(),
            sent: self.sent,
            ..Totals::default()
        }
    }

    fn connected(&self) -> bool {
        true
    }
}

fn item(kind: &str, loud: bool) -> Item {
    serde_json::from_value(json!({
        "software": {
            "name": "b", "kind": kind, "spec": {"loud": loud},
            "session": {"endpoint": "n", "connect_ns": 0, "disconnect_ns": 1_000_000_000},
        },
        "flows": [{
            "number": 3, "pattern": "push", "payload": {"kind": "bytes", "bytes": 50},
            "schedule": {"kind": "own", "rates": [{"from_ns": 0, "per_s": 10}], "seed": 1},
            "start_ns": 0, "stop_ns": 1_000_000_000,
        }],
    }))
    .unwrap()
}

#[test]
fn a_role_of_another_crate_is_armed_beside_the_agents_own() {
    let unknown = arm(item("beacon", true)).err().unwrap();
    assert!(unknown.contains("\"beacon\" is no role of the agent") && unknown.contains("\"udp\""));
    let refused = add(&[("udp", arm_beacon)]).err().unwrap();
    assert!(refused.contains("\"udp\" has two roles"), "{refused}");
    let twice = add(&[("beacon", arm_beacon), ("beacon", arm_beacon)]);
    assert!(twice.err().unwrap().contains("\"beacon\" has two roles"));

    add(&[("beacon", arm_beacon)]).unwrap();
    assert!(
        add(&[("buoy", arm_beacon)])
            .err()
            .unwrap()
            .contains("at once")
    );
    let quiet = arm(item("beacon", false)).err().unwrap();
    assert_eq!(quiet, "software b: loud: a beacon is; write true");
    let (mut role, mut out) = (arm(item("beacon", true)).unwrap(), Vec::new());
    role.go(5);
    role.on_time(1_000_000_005, &mut out);
    let lines = String::from_utf8(out).unwrap();
    assert_eq!((lines.lines().count(), role.totals().sent), (10, 10));
    assert!(
        lines
            .lines()
            .all(|line| line.starts_with("S,3,") && line.ends_with(",1,sent"))
    );
}
