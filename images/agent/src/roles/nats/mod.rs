//! Implements a client of NATS that publishes in an open loop, subscribes, or does both. The native protocol
//! delivers at most once: no message is acknowledged or sent again.

mod wire;

use super::Role;
use super::broker_client::{Broker, Client, Link, Protocol, Rules};
use super::socket::BACKLOG_BYTES;
use crate::os::Res;
use crate::payload;
use crate::proto::{self, Item};
use serde::Deserialize;
use wire::{Operation, Parser};

/// The longest payload in bytes, the server's default of `max_payload`.
const LONGEST: usize = 1 << 20;
/// The most PINGs without an answer.
const PINGS: u32 = 2;

#[derive(Debug, Clone, Deserialize)]
struct Spec {
    #[serde(flatten)]
    broker: Broker,
    user: Option<String>,
    password: String,
    ping_ns: i64,
    publish: Option<Publish>,
    subscribe: Vec<String>,
    /// The queue group of all subscriptions.
    group: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
struct Publish {
    subject: String,
    /// The most messages that wait while the client is disconnected.
    queue: usize,
}

struct Nats {
    spec: Spec,
    parser: Parser,
    output: Vec<u8>,
    /// The time of the next PING; None without a connection.
    ping_at: Option<i64>,
    unanswered: u32,
}

/// Creates a client for an item of `workload`; an error if its settings are invalid.
pub fn arm(mut item: Item) -> Res<Box<dyn Role>> {
    let spec: Spec = proto::parse("spec", item.software.spec.take())?;
    item.flows.iter().try_for_each(|flow| flow.fits(LONGEST))?;
    let publish = spec.publish.as_ref().map(|one| &one.subject);
    let words = |text: &&String| text.is_empty() || text.contains(char::is_whitespace);
    if let Some(text) = spec.subscribe.iter().chain(publish).find(words) {
        return Err(format!("{text:?} is no subject; write words with dots"));
    }
    let broker = spec.broker.clone();
    let rules = spec.publish.as_ref().map(|publish| Rules {
        queue: publish.queue,
        ..Rules::default()
    });
    let nats = Nats {
        spec,
        parser: Parser::default(),
        output: Vec::new(),
        ping_at: None,
        unanswered: 0,
    };
    Ok(Box::new(Client::new(item, broker, rules, nats)?))
}

impl Nats {
    /// Appends the login, the subscriptions and a PING; the answer to the PING shows that the server has
    /// accepted them.
    fn log_in(&mut self) {
        let mut options = serde_json::json!({
            "verbose": false, "pedantic": false, "tls_required": false, "lang": "vnet", "version": "1",
            "protocol": 1, "echo": false,
        });
        if let Some(user) = &self.spec.user {
            options["user"] = user.as_str().into();
            options["pass"] = self.spec.password.as_str().into();
        }
        let login = format!("CONNECT {options}\r\n");
        self.output.extend_from_slice(login.as_bytes());
        for (number, subject) in self.spec.subscribe.iter().enumerate() {
            let group = self.spec.group.as_deref();
            wire::subscribe(subject, group, number + 1, &mut self.output);
        }
        self.output.extend_from_slice(b"PING\r\n");
    }

    fn take(
        &mut self,
        operation: Operation,
        link: &mut Link,
        now: i64,
        out: &mut Vec<u8>,
    ) -> Res<()> {
        match operation {
            Operation::Info if self.ping_at.is_none() => {
                self.log_in();
                self.ping_at = Some(now + self.spec.ping_ns);
                self.unanswered = 1;
            }
            Operation::Info | Operation::Ok => {}
            Operation::Message(body) => link.received(false, payload::read(&body), now, out),
            Operation::Ping => self.output.extend_from_slice(b"PONG\r\n"),
            Operation::Pong => {
                self.unanswered = 0;
                if !link.is_up() {
                    link.welcome("", now, out);
                    if !self.spec.subscribe.is_empty() {
                        link.note("subscribed", now, "", out);
                    }
                    link.ready();
                }
            }
            // The server closes the connection after an error, unless the error is about a subject.
            Operation::Error(text) if link.is_up() => {
                link.note("failed", now, &text, out);
                link.error = Some(text);
            }
            Operation::Error(text) => return Err(text),
        }
        Ok(())
    }
}

impl Protocol for Nats {
    const LATE: &'static str = "no answer to the login in time";

    fn begin(&mut self, _now: i64) {
        self.end();
    }

    fn established(&mut self, _link: &mut Link, _now: i64, _out: &mut Vec<u8>) -> Res<()> {
        Ok(()) // the server speaks first
    }

    fn receive(&mut self, bytes: &[u8], link: &mut Link, now: i64, out: &mut Vec<u8>) -> Res<()> {
        let mut found = Vec::new();
        let fed = self.parser.feed(bytes, LONGEST, &mut found);
        for operation in found {
            self.take(operation, link, now, out)?;
        }
        fed
    }

    fn deadline(&self) -> Option<i64> {
        self.ping_at
    }

    fn on_time(&mut self, _link: &mut Link, now: i64, _out: &mut Vec<u8>) -> Res<()> {
        if self.ping_at.is_none_or(|at| now < at) {
            return Ok(());
        }
        if self.unanswered >= PINGS {
            return Err(format!("no answer to {PINGS} PINGs"));
        }
        self.output.extend_from_slice(b"PING\r\n");
        self.unanswered += 1;
        self.ping_at = Some(now + self.spec.ping_ns);
        Ok(())
    }

    fn pump(&mut self, link: &mut Link, now: i64, out: &mut Vec<u8>) -> Res<()> {
        if let Some(publish) = self.spec.publish.as_ref().filter(|_| link.is_up()) {
            while self.output.len() < BACKLOG_BYTES
                && let Some((_, body)) = link.delivery.next()
            {
                wire::publish(&publish.subject, &body, &mut self.output);
                link.delivery.emitted(None, self.output.len());
            }
        }
        link.write(&mut self.output, now, out);
        Ok(())
    }

    fn has_output(&self) -> bool {
        !self.output.is_empty()
    }

    fn leave(&mut self, link: &mut Link, now: i64, out: &mut Vec<u8>) {
        link.write(&mut self.output, now, out);
    }

    fn end(&mut self) {
        self.parser = Parser::default();
        self.output = Vec::new();
        self.ping_at = None;
        self.unanswered = 0;
    }
}

/// Passes a server's bytes, in two pieces, to the parser.
#[cfg(feature = "fuzzing")]
pub fn fuzz(bytes: &[u8]) {
    let (mut parser, mut found) = (Parser::default(), Vec::new());
    let (one, other) = bytes.split_at(bytes.len() / 2);
    let _ = parser.feed(one, LONGEST, &mut found);
    let _ = parser.feed(other, LONGEST, &mut found);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use crate::roles::testing::{SECOND, by_kind, flow, turn};
    use serde_json::json;
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::thread::spawn;

    fn item(port: u16, publish: bool) -> Item {
        let flows = if publish {
            vec![flow("publish", 100, None)]
        } else {
            Vec::new()
        };
        serde_json::from_value(json!({
            "software": {"name": "c", "kind": "nats", "session": {
                "endpoint": "c1", "connect_ns": 0, "disconnect_ns": 3 * SECOND, "listens": false,
            }, "spec": {
                "broker": "127.0.0.1", "port": port, "user": "u", "password": "p", "ping_ns": SECOND / 10,
                "reconnect_ns": 0, "subscribe": ["m.>"], "group": "g",
                "publish": publish.then(|| json!({"subject": "m.1", "queue": 50})),
            }},
            "flows": flows,
        }))
        .unwrap()
    }

    fn play(item: Item, length_ns: i64) -> (Vec<String>, Vec<String>, Vec<String>) {
        let (mut client, mut out) = (arm(item).unwrap(), Vec::new());
        let t0 = clock::lab_ns();
        client.go(t0);
        while clock::lab_ns() < t0 + length_ns {
            turn(&mut *client, 2, &mut out);
        }
        client.finish(clock::lab_ns(), &mut out);
        by_kind(out)
    }

    /// Starts a server that echoes publications, and answers the first `answers` PINGs.
    fn server(answers: usize) -> (u16, std::thread::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let serve = move || {
            let mut socket = listener.accept().unwrap().0;
            socket.write_all(b"INFO {}\r\nPING\r\n").unwrap();
            let (mut lines, mut pings) = (Vec::new(), 0);
            let mut input = BufReader::new(socket.try_clone().unwrap());
            let mut line = Vec::new();
            while input.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
                let text = String::from_utf8_lossy(&line).trim().to_owned();
                line.clear();
                if let Some(length) = text.strip_prefix("PUB m.1 ") {
                    let mut body = vec![0; length.parse::<usize>().unwrap() + 2];
                    std::io::Read::read_exact(&mut input, &mut body).unwrap();
                    let head = format!("MSG m.1 1 {length}\r\n");
                    let _ = socket.write_all(&[head.as_bytes(), &body].concat());
                }
                pings += usize::from(text == "PING");
                if text == "PING" && pings <= answers {
                    let _ = socket.write_all(b"PONG\r\n");
                }
                lines.push(text);
            }
            lines
        };
        (port, spawn(serve))
    }

    #[test]
    fn messages_are_sent_once_and_received() {
        let (port, served) = server(usize::MAX);
        let (sent, got, steps) = play(item(port, true), SECOND / 2);
        assert_eq!((sent.len(), got.len()), (20, 20));
        assert!(
            sent.iter().all(|line| line.ends_with(",1,sent")),
            "{sent:?}"
        );
        let what: Vec<_> = steps
            .iter()
            .map(|line| line.split(',').nth(2).unwrap())
            .collect();
        assert_eq!(
            what,
            ["connecting", "connected", "subscribed", "disconnected"]
        );
        let lines = served.join().unwrap();
        assert!(lines[0].starts_with("CONNECT {") && lines[0].contains("\"user\":\"u\""));
        assert_eq!(lines[1..4], ["SUB m.> g 1", "PING", "PONG"]);
        assert!(lines.iter().filter(|line| *line == "PING").count() > 2);
    }

    #[test]
    fn a_server_that_does_not_answer_pings_is_left() {
        let (port, _served) = server(1);
        let (_, _, steps) = play(item(port, false), SECOND / 2);
        assert!(
            steps
                .iter()
                .any(|line| line.contains("no answer to 2 PINGs")),
            "{steps:?}"
        );
    }

    #[test]
    fn a_refused_login_and_a_wrong_subject_are_named() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let refuse = b"INFO {}\r\n-ERR 'Authorization Violation'\r\n";
        let served = spawn(move || listener.accept().unwrap().0.write_all(refuse).unwrap());
        let (sent, _, steps) = play(item(port, true), SECOND / 5);
        served.join().unwrap();
        assert!(
            steps
                .iter()
                .any(|line| line.contains("Authorization Violation")),
            "{steps:?}"
        );
        assert!(
            sent.iter().all(|line| line.ends_with(",unsent")),
            "{sent:?}"
        );
        let mut wrong = item(1, false);
        wrong.software.spec["subscribe"] = json!(["a b"]);
        assert!(arm(wrong).err().unwrap().contains("no subject"));
    }
}
