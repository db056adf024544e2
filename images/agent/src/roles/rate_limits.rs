//! Receives the rate limits that gateways send to a sender; the last limit that has arrived applies.

use crate::control_messages::Inbox;
use crate::os::Res;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::os::fd::RawFd;

#[derive(Deserialize)]
pub struct RateLimitSource {
    port: u16,
    /// The name that the flow has at the gateways.
    name: String,
}

/// A message of a gateway: for each flow its rate limit in bits per second, with all headers.
#[derive(Deserialize)]
struct Shares {
    shares_bps: BTreeMap<String, u64>,
}

pub struct RateLimits {
    inbox: Inbox,
    name: String,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// The last limit for the sender's flow that this call has received; None if it has received none.
    pub share_bps: Option<u64>,
    pub malformed: Vec<String>,
}

impl RateLimits {
    pub fn open(RateLimitSource { port, name }: RateLimitSource) -> Res<Self> {
        let inbox = Inbox::open(port).map_err(|e| format!("rate_limits_from: {e}"))?;
        Ok(Self { inbox, name })
    }

    pub fn fds(&self) -> Vec<RawFd> {
        self.inbox.fds()
    }

    pub fn take(&mut self) -> Received {
        let mut received = Received::default();
        for message in self.inbox.take::<Shares>() {
            match message {
                Ok(shares) => {
                    let ours = shares.shares_bps.get(&self.name).copied();
                    received.share_bps = ours.or(received.share_bps);
                }
                Err(text) => received.malformed.push(text),
            }
        }
        received
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    #[test]
    fn the_last_limit_for_the_own_flow_counts() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let name = "a-be".to_owned();
        let mut limits = RateLimits::open(RateLimitSource { port, name }).unwrap();
        let mut gateway = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let lines = br#"{"shares_bps": {"a-be": 5, "b-be": 6}}
slower
{"shares_bps": {"a-be": 4}}
{"shares_bps": {"b-be": 3}}
"#;
        gateway.write_all(lines).unwrap();
        let mut received = Received::default();
        for _ in 0..200 {
            let now = limits.take();
            received.share_bps = now.share_bps.or(received.share_bps);
            received.malformed.extend(now.malformed);
            if received.share_bps == Some(4) {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(received.share_bps, Some(4));
        assert_eq!(received.malformed.len(), 1);
        assert!(received.malformed[0].starts_with("slower: "));
    }
}
