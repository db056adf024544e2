//! Tests roles on loopback with each other, and with a peer that closes connections at critical moments.

use super::*;
use crate::os;
use crate::payload::{self, Identity, Purpose};
use crate::roles::testing::{SECOND, by_kind, flow, turn};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::thread::spawn;
use std::time::Duration;

fn role(endpoint: &str, spec: Value, flow: Option<Value>) -> Res<Tcp> {
    let session = json!({"endpoint": endpoint, "connect_ns": 0, "disconnect_ns": 60 * SECOND});
    let item = json!({
        "software": {"name": "t", "kind": "tcp", "session": session, "spec": spec},
        "flows": Vec::from_iter(flow),
    });
    Tcp::new(serde_json::from_value(item).unwrap())
}

fn server(endpoint: &str) -> (Tcp, Value) {
    let spec = json!({"listen": 0, "nodelay": true, "timeout_ns": 0});
    let server = role(endpoint, spec, None).unwrap();
    let port = server.server.as_ref().unwrap().port();
    (
        server,
        json!({"endpoint": endpoint, "address": "127.0.0.1", "port": port}),
    )
}

fn scripted() -> (TcpListener, Value) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (
        listener,
        json!({"endpoint": "s", "address": "127.0.0.1", "port": port}),
    )
}

fn spec(to: &[&Value]) -> Value {
    json!({"to": to, "nodelay": true, "reconnect_ns": SECOND / 50, "queue": 100, "timeout_ns": SECOND})
}

/// Runs all roles until `done` returns true or for three seconds; returns the records of sent messages,
/// received messages and sessions.
fn drive(
    roles: &mut [&mut Tcp],
    done: impl Fn(&[&mut Tcp]) -> bool,
) -> (Vec<String>, Vec<String>, Vec<String>) {
    let mut out = Vec::new();
    let t0 = clock::lab_ns();
    roles.iter_mut().for_each(|r| r.go(t0));
    while clock::lab_ns() < t0 + 3 * SECOND && !done(roles) {
        roles.iter_mut().for_each(|role| turn(*role, 1, &mut out));
    }
    roles
        .iter_mut()
        .for_each(|r| r.finish(clock::lab_ns(), &mut out));
    by_kind(out)
}

fn all_scheduled_and_none_pending(role: &Tcp) -> bool {
    role.totals().scheduled == 20 && role.totals().pending == 0
}

/// Reads the next message of a stream; None at the stream's end.
fn message(stream: &mut TcpStream) -> Option<Identity> {
    let mut head = [0; 4];
    stream.read_exact(&mut head).ok()?;
    let mut body = vec![0; u32::from_be_bytes(head) as usize];
    stream.read_exact(&mut body).ok()?;
    payload::read(&body)
}

#[test]
fn every_request_is_answered_by_every_server() {
    let ((mut a, to_a), (mut b, to_b)) = (server("a"), server("b"));
    let flow = flow("request", 3000, Some(100_000));
    let mut asker = role("c", spec(&[&to_a, &to_b]), Some(flow)).unwrap();
    let (sent, got, sessions) = drive(&mut [&mut a, &mut b, &mut asker], |roles| {
        all_scheduled_and_none_pending(roles[2])
    });
    assert_eq!(sent.len(), 20);
    assert!(sent.iter().all(|l| l.ends_with(",1,settled")), "{sent:?}");
    for (endpoint, leg) in [("a", 0), ("a", 1), ("b", 0), ("b", 1)] {
        let lines = got
            .iter()
            .filter(|l| l.contains(&format!(",{endpoint},{leg},")))
            .count();
        assert_eq!(lines, 20, "{endpoint} {leg}");
    }
    let mine: Vec<&str> = sessions
        .iter()
        .filter(|l| l.starts_with("C,c,"))
        .map(|l| &l[4..])
        .collect();
    let what: Vec<&str> = mine.iter().map(|l| l.split(',').next().unwrap()).collect();
    assert_eq!(
        what,
        ["connecting", "connecting", "connected", "disconnected"],
        "{mine:?}"
    );
}

#[test]
fn resends_what_the_socket_did_not_accept_and_nothing_twice() {
    // The messages have 20 MB in all, more than the sockets hold, so the end of the first connection cuts a
    // message.
    let (listener, to) = scripted();
    let peer = spawn(move || {
        let (mut first, _) = listener.accept().unwrap();
        let seen = message(&mut first).unwrap();
        // The peer waits until the sockets are full; they are then full in the middle of a message.
        std::thread::sleep(Duration::from_millis(300));
        drop(first);
        let (mut second, _) = listener.accept().unwrap();
        second
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        let mut seqs = vec![seen.seq];
        seqs.extend(std::iter::from_fn(|| message(&mut second)).map(|m| m.seq));
        seqs
    });
    let mut pusher = role("c", spec(&[&to]), Some(flow("push", 1 << 20, None))).unwrap();
    let (sent, _, sessions) = drive(&mut [&mut pusher], |roles| {
        all_scheduled_and_none_pending(roles[0])
    });
    let seqs = peer.join().unwrap();
    assert!(seqs.windows(2).all(|pair| pair[0] < pair[1]), "{seqs:?}");
    assert!(
        sent.len() == 20 && sent.iter().all(|l| l.ends_with(",sent")),
        "{sent:?}"
    );
    let twice: Vec<&String> = sent.iter().filter(|l| l.contains(",2,sent")).collect();
    assert_eq!(twice.len(), 1, "one was cut: {sent:?}");
    let cut: u64 = twice[0].split(',').nth(2).unwrap().parse().unwrap();
    assert!(
        (cut..20).all(|seq| seqs.contains(&seq)),
        "all from {cut} on: {seqs:?}"
    );
    assert!(
        sessions
            .iter()
            .any(|l| l.starts_with("C,c,disconnected") && l.contains("s: ") && l.ends_with(",s"))
    );
}

#[test]
fn unacknowledged_bytes_at_the_end_leave_messages_unsettled() {
    let (listener, to) = scripted();
    let mut pusher = role("c", spec(&[&to]), Some(flow("push", 100_000, None))).unwrap();
    let (sent, _, _) = drive(&mut [&mut pusher], |roles| roles[0].totals().sent == 20);
    // The peer reads nothing: its kernel acknowledges some messages, and the sender's kernel holds the rest.
    let of = |outcome: &str| sent.iter().filter(|l| l.ends_with(outcome)).count();
    assert_eq!(of(",1,sent") + of(",1,unsettled"), 20, "{sent:?}");
    assert!(of(",1,unsettled") > 0, "{sent:?}");
    drop(listener);
}

#[test]
fn the_window_bounds_what_is_unanswered_and_time_reopens_it() {
    let (listener, to) = scripted();
    let peer = spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream
            .set_read_timeout(Some(Duration::from_millis(150)))
            .unwrap();
        let mut at_first = 0;
        while message(&mut stream).is_some() {
            at_first += 1;
        }
        stream
            .set_read_timeout(Some(Duration::from_secs(2)))
            .unwrap();
        let mut later = 0;
        while let Some(request) = message(&mut stream) {
            let mut frame = Vec::new();
            frames::append(&mut frame, |out| crate::roles::peers::reply(&request, out));
            stream.write_all(&frame).unwrap();
            later += 1;
        }
        (at_first, later)
    });
    let mut limits = spec(&[&to]);
    (limits["inflight"], limits["timeout_ns"]) = (json!(3), json!(SECOND / 2));
    let mut asker = role("c", limits, Some(flow("request", 30, Some(30)))).unwrap();
    let (sent, _, _) = drive(&mut [&mut asker], |roles| {
        all_scheduled_and_none_pending(roles[0])
    });
    assert_eq!(peer.join().unwrap(), (3, 17));
    let of = |outcome: &str| sent.iter().filter(|l| l.ends_with(outcome)).count();
    assert_eq!((of(",unsettled"), of(",settled")), (3, 17), "{sent:?}");
}

#[test]
fn a_full_queue_drops_and_nobody_there_leaves_the_rest_unsent() {
    let (listener, to) = scripted();
    drop(listener);
    let mut limits = spec(&[&to]);
    limits["queue"] = json!(5);
    let mut pusher = role("c", limits, Some(flow("push", 30, None))).unwrap();
    let (sent, _, sessions) = drive(&mut [&mut pusher], |roles| {
        roles[0].totals().scheduled == 20
    });
    let of = |outcome: &str| sent.iter().filter(|l| l.ends_with(outcome)).count();
    assert_eq!((of(",0,dropped"), of(",0,unsent")), (15, 5), "{sent:?}");
    assert!(
        sessions.iter().any(|l| l.starts_with("C,c,failed")),
        "{sessions:?}"
    );
}

#[test]
fn without_a_further_attempt_nothing_is_waited_for() {
    let (listener, to) = scripted();
    drop(listener);
    let mut limits = spec(&[&to]);
    limits["reconnect_ns"] = json!(0);
    let mut pusher = role("c", limits, Some(flow("push", 30, None))).unwrap();
    let (mut out, t0) = (Vec::new(), clock::lab_ns());
    pusher.go(t0);
    while clock::lab_ns() < t0 + SECOND / 5 {
        let mut fds = Vec::new();
        pusher.fds(&mut |fd, _| fds.push(fd));
        for fd in fds {
            pusher.on_ready(fd, libc::POLLOUT, clock::lab_ns(), &mut out);
        }
        pusher.on_time(clock::lab_ns(), &mut out);
    }
    assert_eq!(
        (pusher.totals().scheduled, pusher.totals().pending),
        (20, 0)
    );
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text.matches(",0,0,0,unsent").count(), 20, "{text}");
}

#[test]
fn an_unestablished_link_is_not_up() {
    let (listener, to) = scripted();
    // SAFETY: the arguments are plain numbers. The backlog holds one connection; further connections get no
    // answer.
    os::check(unsafe { libc::listen(listener.as_raw_fd(), 0) }).unwrap();
    let _first = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut late = role("c", spec(&[&to]), None).unwrap();
    let (mut out, t0) = (Vec::new(), clock::lab_ns());
    late.go(t0);
    late.on_time(t0, &mut out);
    let fd = late.links[0].fd().unwrap().0;
    late.on_ready(fd, libc::POLLOUT, t0 + 1, &mut out);
    assert!(!late.connected());
}

#[test]
fn requests_wait_while_the_reply_buffer_is_full() {
    let (mut a, to) = server("a");
    let port = to["port"].as_u64().unwrap() as u16;
    let mut asker = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut ask = Vec::new();
    for seq in 0..1000 {
        let identity = Identity {
            purpose: Purpose::Request,
            flow: 4,
            seq,
            scheduled_ns: 0,
            reply_bytes: 100_000,
        };
        frames::append(&mut ask, |out| {
            payload::Payload::write(&payload::bytes::Bytes, &identity, 28, out);
        });
    }
    asker.write_all(&ask).unwrap();
    let (mut out, mut most) = (Vec::new(), 0);
    a.go(clock::lab_ns());
    let reader = spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        (0..1000).map_while(|_| message(&mut asker)).count()
    });
    while a.totals().received < 1000 || !reader.is_finished() {
        let mut fds = vec![libc::pollfd {
            fd: a.server.as_ref().unwrap().raw(),
            events: libc::POLLIN,
            revents: 0,
        }];
        os::poll(&mut fds, 10).unwrap();
        a.on_ready(fds[0].fd, libc::POLLIN, clock::lab_ns(), &mut out);
        most = most.max(a.server.as_ref().unwrap().waiting());
    }
    assert_eq!(reader.join().unwrap(), 1000);
    assert!(most < 500_000, "{most} bytes of 100 MB at once");
}

#[test]
fn a_foreign_connection_is_closed_and_others_are_served() {
    let (mut a, to) = server("a");
    let port = to["port"].as_u64().unwrap() as u16;
    let mut stranger = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut pusher = role("c", spec(&[&to]), Some(flow("push", 40, None))).unwrap();
    let (_, got, _) = drive(&mut [&mut a, &mut pusher], |roles| {
        roles[0].totals().received == 20
    });
    assert_eq!((got.len(), a.totals().foreign), (20, 1));
    stranger
        .set_read_timeout(Some(Duration::from_secs(2)))
        .unwrap();
    assert!(matches!(stranger.read(&mut [0; 10]), Ok(0) | Err(_)));
}

#[test]
fn a_late_answer_and_a_push_are_no_answers() {
    let (mut asker, mut out) = (role("c", spec(&[]), None).unwrap(), Vec::new());
    let mut link = Link::new(serde_json::from_value(scripted().1).unwrap(), 0);
    let identity = Identity {
        purpose: Purpose::Push,
        flow: 4,
        seq: 0,
        scheduled_ns: 0,
        reply_bytes: 0,
    };
    for purpose in [Purpose::Push, Purpose::Reply] {
        let mut frame = Vec::new();
        let identity = Identity {
            purpose,
            ..identity
        };
        frames::append(&mut frame, |out| {
            payload::Payload::write(&payload::bytes::Bytes, &identity, 28, out);
        });
        link.take(&frame, &mut asker.ledger, &mut out).unwrap();
    }
    assert_eq!((link.foreign, out.len()), (2, 0));
}

#[test]
fn refusals_name_value_and_rule() {
    let (_taken, to) = server("a");
    let port = to["port"].clone();
    let text = role(
        "x",
        json!({"listen": port, "nodelay": true, "timeout_ns": 0}),
        None,
    )
    .err()
    .unwrap();
    assert!(
        text.contains(&format!("port {port}")) && text.contains("choose another"),
        "{text}"
    );
    let text = role("x", spec(&[&to]), Some(flow("push", 17 << 20, None)))
        .err()
        .unwrap();
    assert!(text.contains("16777216 at most"), "{text}");
    assert!(
        role("x", json!({"timeout_ns": 0}), None)
            .err()
            .unwrap()
            .contains("nodelay")
    );
}

#[test]
fn every_connection_that_ends_is_disconnected() {
    let ((one, to_one), (two, to_two)) = (scripted(), scripted());
    let peers = spawn(move || {
        let both = (one.accept().unwrap(), two.accept().unwrap());
        std::thread::sleep(Duration::from_millis(50));
        drop((both, one, two));
    });
    let mut spec = spec(&[&to_one, &to_two]);
    spec["reconnect_ns"] = json!(0);
    let mut pusher = role("c", spec, Some(flow("push", 100, None))).unwrap();
    let (_, _, sessions) = drive(&mut [&mut pusher], |roles| {
        all_scheduled_and_none_pending(roles[0]) && !roles[0].links.iter().any(Link::up)
    });
    peers.join().unwrap();
    let of = |what: &str| {
        let start = format!("C,c,{what},");
        sessions.iter().filter(|l| l.starts_with(&start)).count()
    };
    assert_eq!((of("disconnected"), of("failed")), (2, 0), "{sessions:?}");
}
