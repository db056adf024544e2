//! Tests roles on loopback with each other, and with foreign programs.

use super::*;
use crate::roles::testing::{SECOND, by_kind, flow};
use serde_json::{Value, json};

fn role(endpoint: &str, spec: Value, flow: Option<Value>) -> Res<Udp> {
    let session = json!({"endpoint": endpoint, "connect_ns": 0, "disconnect_ns": 60 * SECOND});
    let item = json!({
        "software": {"name": "u", "kind": "udp", "session": session, "spec": spec},
        "flows": Vec::from_iter(flow),
    });
    Udp::new(serde_json::from_value(item).unwrap())
}

fn server(endpoint: &str) -> (Udp, Value) {
    let server = role(endpoint, json!({"listen": 0, "timeout_ns": 0}), None).unwrap();
    let port = server.socket.as_ref().unwrap().local_addr().unwrap().port();
    (
        server,
        json!({"endpoint": endpoint, "address": "127.0.0.1", "port": port}),
    )
}

fn client(to: &[&Value], flow: Value) -> Udp {
    role(
        "c",
        json!({"listen": null, "to": to, "timeout_ns": SECOND / 5}),
        Some(flow),
    )
    .unwrap()
}

/// Runs all roles for `seconds` and finishes them; returns the records of sent messages, received messages
/// and sessions.
fn drive(roles: &mut [&mut Udp], seconds: f64) -> (Vec<String>, Vec<String>, Vec<String>) {
    let mut out = Vec::new();
    let t0 = clock::lab_ns();
    roles.iter_mut().for_each(|r| r.go(t0));
    let mut rounds_left = 5; // after the end, for messages that a busy machine sent late
    while rounds_left > 0 {
        rounds_left -= i32::from(clock::lab_ns() >= t0 + (seconds * 1e9) as i64);
        for role in roles.iter_mut() {
            role.on_ready(0, libc::POLLIN | libc::POLLOUT, clock::lab_ns(), &mut out);
            role.on_time(clock::lab_ns(), &mut out);
        }
        std::thread::sleep(std::time::Duration::from_micros(200));
    }
    roles
        .iter_mut()
        .for_each(|r| r.finish(clock::lab_ns(), &mut out));
    by_kind(out)
}

#[test]
fn every_request_is_answered_by_every_server() {
    let ((mut a, to_a), (mut b, to_b)) = (server("a"), server("b"));
    let mut asker = client(&[&to_a, &to_b], flow("request", 100, Some(4000)));
    let (sent, got, sessions) = drive(&mut [&mut a, &mut b, &mut asker], 0.3);
    assert_eq!(sent.len(), 20);
    assert!(sent.iter().all(|l| l.ends_with(",1,settled")), "{sent:?}");
    for (endpoint, leg) in [("a", 0), ("a", 1), ("b", 0), ("b", 1)] {
        let lines = got
            .iter()
            .filter(|l| l.contains(&format!(",{endpoint},{leg},")))
            .count();
        assert_eq!(lines, 20, "{endpoint} {leg}");
    }
    let what: Vec<&str> = sessions
        .iter()
        .map(|l| l.split(',').nth(2).unwrap())
        .collect();
    assert_eq!(
        what.iter().filter(|w| **w == "listening").count(),
        2,
        "{sessions:?}"
    );
    assert!(
        what.contains(&"connected") && what.contains(&"disconnected"),
        "{sessions:?}"
    );
}

#[test]
fn messages_that_go_round_reach_one_server_each() {
    let ((mut a, to_a), (mut b, to_b)) = (server("a"), server("b"));
    let mut round = flow("request", 100, Some(40));
    round["spread"] = json!("round-robin");
    let mut asker = client(&[&to_a, &to_b], round);
    let (sent, got, _) = drive(&mut [&mut a, &mut b, &mut asker], 0.3);
    assert_eq!(sent.len(), 20);
    assert!(sent.iter().all(|l| l.ends_with(",1,settled")), "{sent:?}");
    for line in &got {
        let fields: Vec<&str> = line.split(',').collect();
        let turn = fields[2].parse::<u32>().unwrap() % 2;
        assert_eq!(fields[3], ["a", "b"][turn as usize], "{line}");
    }
    assert_eq!(got.len(), 40);
}

#[test]
fn a_reply_comes_from_the_address_that_was_asked() {
    // The server uses an address of a server with several addresses: the kernel alone would answer from
    // 127.0.0.1.
    let (mut a, mut to_a) = server("a");
    to_a["address"] = json!("127.0.0.2");
    let mut asker = client(&[&to_a], flow("request", 100, Some(40)));
    let (sent, _, _) = drive(&mut [&mut a, &mut asker], 0.3);
    assert_eq!(sent.len(), 20);
    assert!(sent.iter().all(|l| l.ends_with(",1,settled")), "{sent:?}");
    assert_eq!(asker.totals().foreign, 0);
}

#[test]
fn pushes_arrive_and_are_no_more_than_sent() {
    let (mut a, to_a) = server("a");
    let mut pusher = client(&[&to_a], flow("push", 100, None));
    let (sent, got, _) = drive(&mut [&mut a, &mut pusher], 0.2);
    assert_eq!((sent.len(), got.len()), (20, 20));
    assert!(
        sent.iter()
            .all(|l| l.contains(",100,") && l.ends_with(",0,1,sent")),
        "{sent:?}"
    );
}

#[test]
fn an_unanswered_request_expires() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let to = json!({"endpoint": "s", "address": "127.0.0.1", "port": port});
    let mut asker = client(&[&to], flow("request", 100, Some(28)));
    let (sent, got, _) = drive(&mut [&mut asker], 0.35);
    assert_eq!((sent.len(), got.len()), (20, 0));
    assert!(
        sent.iter().all(|l| l.ends_with(",0,1,unsettled")),
        "{sent:?}"
    );
}

#[test]
fn refused_datagrams_are_unsent_and_reported_once_per_receiver() {
    // The address is a broadcast address, which the socket may not send to.
    let to = |name: &str| json!({"endpoint": name, "address": "255.255.255.255", "port": 9});
    let mut pusher = client(&[&to("a"), &to("b")], flow("push", 100, None));
    let (sent, _, sessions) = drive(&mut [&mut pusher], 0.2);
    assert_eq!(sent.len(), 20);
    assert!(sent.iter().all(|l| l.ends_with(",0,0,unsent")), "{sent:?}");
    let failed = sessions.iter().filter(|l| l.contains(",failed,"));
    assert_eq!(failed.count(), 2, "{sessions:?}");
}

#[test]
fn foreign_datagrams_are_counted_and_copies_recorded() {
    let (mut a, to_a) = server("a");
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = ("127.0.0.1", to_a["port"].as_u64().unwrap() as u16);
    let mut push = Vec::new();
    let identity = Identity {
        purpose: Purpose::Push,
        flow: 9,
        seq: 1,
        scheduled_ns: 5,
        reply_bytes: 0,
    };
    payload::Payload::write(&payload::bytes::Bytes, &identity, 30, &mut push);
    let mut reply = Vec::new();
    peers::reply(&identity, &mut reply);
    for datagram in [&b"hello"[..], &push, &push, &reply] {
        stranger.send_to(datagram, to).unwrap();
    }
    let (_, got, _) = drive(&mut [&mut a], 0.05);
    assert_eq!(got.len(), 2, "{got:?}");
    assert_eq!((a.totals().foreign, a.totals().received), (2, 2));
}

#[test]
fn refusals_name_value_and_rule() {
    let (_taken, to) = server("a");
    let port = to["port"].clone();
    let refused = |spec: Value, flow| role("x", spec, flow).err().unwrap();
    let text = refused(json!({"listen": port, "timeout_ns": 0}), None);
    assert!(
        text.contains(&format!("port {port}")) && text.contains("choose another"),
        "{text}"
    );
    let nobody = json!({"to": [], "timeout_ns": 0});
    assert!(refused(nobody, Some(flow("push", 100, None))).contains("has no receivers"));
    let to = json!({"to": [to], "timeout_ns": 0});
    assert!(refused(to.clone(), Some(flow("request", 100, None))).contains("reply"));
    assert!(refused(to.clone(), Some(flow("request", 100, Some(70_000)))).contains("65507"));
    let mut xml = flow("request", 100, Some(100));
    xml["payload"] = json!({"kind": "metering-xml", "bytes": 717});
    assert!(refused(to, Some(xml)).contains("write \"bytes\""));
}

#[test]
fn messages_of_a_session_that_could_not_begin_are_unsent_and_no_queue_was_full() {
    let (_, to) = server("a");
    let mut many = flow("stream", 100, None);
    many["schedule"]["rates"][0]["per_s"] = json!(2 * WAITING * 10);
    let mut client = client(&[&to], many);
    client.state = State::Over;
    let (sent, ..) = drive(&mut [&mut client], 0.12);
    assert!(sent.len() > WAITING);
    assert!(sent.iter().all(|l| l.ends_with(",0,unsent")), "{sent:?}");
}
