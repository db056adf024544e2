//! What gateways let a sender have: it listens, and sends no more than their last word.

use crate::lines::Inbox;
use crate::os::Res;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::os::fd::RawFd;

#[derive(Deserialize)]
pub struct Obeys {
    port: u16,
    /// As which gateways know its flow.
    name: String,
}

/// Shares in bits per second on the wire, by the flow's name.
#[derive(Deserialize)]
struct Shares {
    shares_bps: BTreeMap<String, u64>,
}

pub struct Orders {
    inbox: Inbox,
    name: String,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// The last word on the sender's flow.
    pub share_bps: Option<u64>,
    pub not_understood: Vec<String>,
}

impl Orders {
    pub fn open(Obeys { port, name }: Obeys) -> Res<Self> {
        let inbox = Inbox::open(port).map_err(|e| format!("obeys: {e}"))?;
        Ok(Self { inbox, name })
    }

    pub fn fds(&self) -> Vec<RawFd> {
        self.inbox.fds()
    }

    pub fn take(&mut self) -> Heard {
        let mut heard = Heard::default();
        for message in self.inbox.take::<Shares>() {
            match message {
                Ok(said) => {
                    let ours = said.shares_bps.get(&self.name).copied();
                    heard.share_bps = ours.or(heard.share_bps);
                }
                Err(text) => heard.not_understood.push(text),
            }
        }
        heard
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    #[test]
    fn the_last_word_on_the_own_flow_counts() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let name = "a-be".to_owned();
        let mut orders = Orders::open(Obeys { port, name }).unwrap();
        let mut gateway = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let lines = br#"{"shares_bps": {"a-be": 5, "b-be": 6}}
slower
{"shares_bps": {"a-be": 4}}
{"shares_bps": {"b-be": 3}}
"#;
        gateway.write_all(lines).unwrap();
        let mut heard = Heard::default();
        for _ in 0..200 {
            let now = orders.take();
            heard.share_bps = now.share_bps.or(heard.share_bps);
            heard.not_understood.extend(now.not_understood);
            if heard.share_bps == Some(4) {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(heard.share_bps, Some(4));
        assert_eq!(heard.not_understood.len(), 1);
        assert!(heard.not_understood[0].starts_with("slower: "));
    }
}
