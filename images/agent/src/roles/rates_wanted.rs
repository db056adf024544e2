//! Sends a gateway the rate at which a subscriber wants to receive a flow, at the times of a schedule.

use crate::control_messages::Outbox;
use crate::os::Res;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::RawFd;

/// The interval at which the role checks whether the gateway still has the wish, since a restarted gateway
/// has lost it.
const RETRY_NS: i64 = 1_000_000_000;

#[derive(Deserialize)]
pub struct Settings {
    gateway: SocketAddr,
    /// The name that the flow has at the gateways.
    name: String,
    steps: Vec<Step>,
}

/// A wish, which holds from `from_ns` (an offset from t0) until the next one.
#[derive(Deserialize)]
struct Step {
    from_ns: i64,
    /// The rate with all headers; 0: no particular rate.
    bps: u64,
}

#[derive(Serialize)]
struct Message<'a> {
    wanted_bps: BTreeMap<&'a str, u64>,
}

pub struct RatesWanted {
    settings: Settings,
    outbox: Outbox,
    /// The number of steps whose time has come.
    begun: usize,
    look_ns: i64,
}

impl RatesWanted {
    pub fn new(settings: Settings) -> Self {
        Self {
            outbox: Outbox::new(settings.gateway),
            settings,
            begun: 0,
            look_ns: i64::MAX,
        }
    }

    /// Returns the descriptor to poll for writing; None while nothing waits to be sent.
    pub fn fd(&self) -> Option<RawFd> {
        self.outbox.fd()
    }

    /// Returns when to call `on_time` next.
    pub fn deadline(&self, t0_ns: i64) -> i64 {
        let next = self.settings.steps.get(self.begun);
        let step = next.map_or(i64::MAX, |step| t0_ns.saturating_add(step.from_ns));
        step.min(self.look_ns)
    }

    /// Sends the wish of the last step whose time has come, if the gateway does not have it yet; returns the
    /// rate if a step has begun, and an error if the connection failed.
    pub fn on_time(&mut self, t0_ns: i64, now: i64) -> (Option<u64>, Res<()>) {
        let mut wish = None;
        while let Some(step) = self.settings.steps.get(self.begun)
            && t0_ns.saturating_add(step.from_ns) <= now
        {
            wish = Some(step.bps);
            self.begun += 1;
        }
        if let Some(bps) = wish {
            let wanted_bps = BTreeMap::from([(self.settings.name.as_str(), bps)]);
            if let Err(error) = self.outbox.set(&Message { wanted_bps }) {
                return (wish, Err(error));
            }
        }
        (wish, self.send(now))
    }

    /// Sends as much as the connection accepts.
    pub fn send(&mut self, now: i64) -> Res<()> {
        if self.begun > 0 {
            self.look_ns = now + RETRY_NS;
        }
        self.outbox.send().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control_messages::Inbox;
    use serde_json::{Value, json};
    use std::net::TcpListener;
    use std::time::Duration;

    fn wanted(port: u16) -> RatesWanted {
        let steps = json!([{"from_ns": 100, "bps": 7}, {"from_ns": 200, "bps": 0}]);
        let settings =
            json!({"gateway": format!("127.0.0.1:{port}"), "name": "pmu", "steps": steps});
        RatesWanted::new(serde_json::from_value(settings).unwrap())
    }

    fn free_port() -> u16 {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        free.local_addr().unwrap().port()
    }

    #[test]
    fn nothing_is_sent_before_the_first_moment() {
        let mut wishes = wanted(9);
        assert_eq!(wishes.deadline(1000), 1100);
        assert_eq!(wishes.on_time(1000, 1099), (None, Ok(())));
        assert_eq!((wishes.fd(), wishes.deadline(1000)), (None, 1100));
    }

    #[test]
    fn each_wish_arrives_at_its_moment() {
        let port = free_port();
        let mut inbox = Inbox::open(port).unwrap();
        let mut wishes = wanted(port);
        let mut received: Vec<Value> = Vec::new();
        for (now, count) in [(1150, 1), (1250, 2)] {
            let (wish, _) = wishes.on_time(1000, now);
            assert_eq!(wish, Some([7, 0][count - 1]));
            assert_eq!(wishes.on_time(1000, now).0, None, "it has begun already");
            for _ in 0..500 {
                wishes.send(now).unwrap();
                received.extend(inbox.take::<Value>().into_iter().map(Result::unwrap));
                if received.len() == count {
                    break;
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        assert_eq!(
            received,
            [
                json!({"wanted_bps": {"pmu": 7}}),
                json!({"wanted_bps": {"pmu": 0}})
            ]
        );
        assert_eq!(
            wishes.deadline(1000),
            1250 + RETRY_NS,
            "it looks after the gateway"
        );
    }

    #[test]
    fn late_steps_send_the_last_wish_alone() {
        let mut wishes = wanted(free_port());
        assert_eq!(wishes.on_time(1000, 5000).0, Some(0));
    }
}
