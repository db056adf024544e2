//! Tests the roles of both sides in one thread, over loopback.

use super::*;
use serde_json::{Value, json};

const SECOND: i64 = 1_000_000_000;

fn role(endpoint: &str, spec: &Value, flow: Option<Value>) -> Res<Zeromq> {
    let session = json!({"endpoint": endpoint, "connect_ns": 0, "disconnect_ns": 60 * SECOND});
    let item = json!({
        "software": {"name": "z", "kind": "zeromq", "session": session, "spec": spec},
        "flows": Vec::from_iter(flow),
    });
    Zeromq::new(serde_json::from_value(item).unwrap())
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// Returns a flow of twenty messages in a tenth of a second, after all sockets have connected.
fn flow(pattern: &str, reply: Option<usize>) -> Value {
    json!({
        "number": 4, "pattern": pattern, "payload": {"kind": "bytes", "bytes": 1699},
        "reply": reply.map(|bytes| json!({"kind": "bytes", "bytes": bytes})),
        "schedule": {"kind": "own", "rates": [{"from_ns": 0, "per_s": 200}], "seed": 1},
        "start_ns": SECOND, "stop_ns": SECOND * 11 / 10,
    })
}

fn sender(socket: &str, answers: Option<u16>, flow: Value) -> (Zeromq, u16) {
    let port = free_port();
    let spec = json!({
        "socket": socket, "transport": "tcp", "port": port, "to": ["a", "b"], "answers": answers, "timeout_ns": SECOND,
    });
    (role("utility", &spec, Some(flow)).unwrap(), port)
}

fn receiver(name: &str, socket: &str, port: u16, answers: Option<u16>) -> Zeromq {
    let spec = json!({
        "socket": socket, "transport": "tcp", "port": port, "address": "127.0.0.1", "answers": answers, "timeout_ns": 0,
    });
    role(name, &spec, None).unwrap()
}

/// Runs all roles for one and a half seconds and finishes them; returns the records of sent messages,
/// received messages and sessions.
fn drive(roles: &mut [&mut Zeromq]) -> [Vec<String>; 3] {
    let mut out = Vec::new();
    let t0 = clock::lab_ns();
    roles.iter_mut().for_each(|r| r.go(t0));
    while clock::lab_ns() < t0 + SECOND * 15 / 10 {
        for role in roles.iter_mut() {
            role.on_time(clock::lab_ns(), &mut out);
        }
        std::thread::sleep(std::time::Duration::from_micros(200));
    }
    for role in roles.iter_mut() {
        role.finish(clock::lab_ns(), &mut out);
    }
    let text = String::from_utf8(out).unwrap();
    ["S", "R", "C"].map(|kind| {
        let lines = text.lines().filter(|l| l.starts_with(kind));
        lines.map(str::to_owned).collect()
    })
}

fn all_received_and_replied(sent: &[String], got: &[String]) {
    assert_eq!(sent.len(), 20);
    assert!(sent.iter().all(|l| l.ends_with(",1,settled")), "{sent:?}");
    for (name, leg) in [("a", 0), ("a", 1), ("b", 0), ("b", 1)] {
        let of = format!(",{name},{leg},");
        assert_eq!(got.iter().filter(|l| l.contains(&of)).count(), 20, "{of}");
    }
}

#[test]
fn dealers_answer_the_router_by_the_same_connection() {
    let (mut router, port) = sender("router", None, flow("request", Some(1699)));
    let (mut a, mut b) = (
        receiver("a", "dealer", port, None),
        receiver("b", "dealer", port, None),
    );
    let [sent, got, sessions] = drive(&mut [&mut router, &mut a, &mut b]);
    all_received_and_replied(&sent, &got);
    for step in ["connecting", "connected", "subscribed", "disconnected"] {
        let of = format!("C,a,{step},");
        assert!(
            sessions.iter().any(|l| l.starts_with(&of)),
            "{of} {sessions:?}"
        );
    }
}

#[test]
fn subscribers_answer_by_a_connection_of_its_own() {
    let answers = Some(free_port());
    let (mut publisher, port) = sender("pub", answers, flow("request", Some(1699)));
    let (mut a, mut b) = (
        receiver("a", "sub", port, answers),
        receiver("b", "sub", port, answers),
    );
    let [sent, got, _] = drive(&mut [&mut publisher, &mut a, &mut b]);
    all_received_and_replied(&sent, &got);
}

#[test]
fn a_receiver_that_is_not_there_is_one_that_the_router_cannot_reach() {
    let (mut router, port) = sender("router", None, flow("push", None));
    let mut a = receiver("a", "dealer", port, None);
    let [sent, got, _] = drive(&mut [&mut router, &mut a]);
    assert_eq!((sent.len(), got.len()), (20, 20));
    assert!(sent.iter().all(|l| l.ends_with(",unsent")), "{sent:?}");
}

#[test]
fn no_busy_loop_after_all_events_are_processed() {
    let (mut publisher, port) = sender("pub", None, flow("push", None));
    let mut a = receiver("a", "sub", port, None);
    drive(&mut [&mut publisher, &mut a]);
    let (mut publisher, port) = sender("pub", None, flow("push", None));
    let mut a = receiver("a", "sub", port, None);
    let (mut out, t0) = (Vec::new(), clock::lab_ns());
    let mut quiet = 0;
    publisher.go(t0);
    a.go(t0);
    while clock::lab_ns() < t0 + SECOND * 15 / 10 {
        let (mut fds, mut due) = (Vec::new(), Vec::new());
        for role in [&mut publisher, &mut a] {
            role.on_time(clock::lab_ns(), &mut out);
            role.fds(&mut |fd, _| {
                fds.push(libc::pollfd {
                    fd,
                    events: libc::POLLIN,
                    revents: 0,
                })
            });
            due.extend(role.deadline().filter(|at| *at <= clock::lab_ns()));
        }
        crate::os::poll(&mut fds, 0).unwrap();
        quiet = if fds.iter().all(|fd| fd.revents == 0) && due.is_empty() {
            quiet + 1
        } else {
            0
        };
        std::thread::sleep(std::time::Duration::from_micros(500));
    }
    assert!(
        quiet > 100,
        "its descriptors stay ready: {quiet} turns without events"
    );
}

#[test]
fn refuses_impossible_combinations() {
    let spec =
        json!({"socket": "pub", "transport": "tcp", "port": 1, "to": ["a"], "timeout_ns": SECOND});
    let refused = role("p", &spec, Some(flow("request", Some(40))))
        .err()
        .unwrap();
    assert!(refused.contains("`answers`"), "{refused}");
    let spec = json!({"socket": "router", "transport": "epgm", "port": 1, "timeout_ns": 0});
    assert!(
        role("p", &spec, None)
            .err()
            .unwrap()
            .contains("epgm needs pub and sub")
    );
    let spec = json!({"socket": "dealer", "transport": "tcp", "port": 1, "timeout_ns": 0});
    assert!(
        role("p", &spec, None)
            .err()
            .unwrap()
            .contains("address: missing")
    );
    let (_held, port) = sender("router", None, flow("push", None));
    let spec = json!({"socket": "router", "transport": "tcp", "port": port, "timeout_ns": 0});
    let refused = role("p", &spec, None).err().unwrap();
    assert!(refused.contains("Address already in use"), "{refused}");
}
