//! Tests a client with a scripted broker on loopback that closes connections at bad moments.

use super::wire::{self, Fields, METHOD, put_frame};
use super::*;
use crate::clock;
use crate::roles::testing::{SECOND, by_kind, flow, turn};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

/// The way in which the scripted broker confirms the publications of one connection.
#[derive(Clone, Copy)]
enum Confirms {
    Each,
    /// The broker confirms once: after this many messages, it confirms the first half of them and closes the
    /// connection.
    UpTo(u64),
    Never,
}

fn item(port: u16, confirms: bool, reconnect_ns: i64) -> Item {
    let exchange = json!({"name": "m", "type": "topic", "durable": true});
    serde_json::from_value(json!({
        "software": {"name": "c", "kind": "amqp", "session": {
            "endpoint": "c1", "connect_ns": 0, "disconnect_ns": 3 * SECOND, "listens": false,
        }, "spec": {
            "broker": "127.0.0.1", "port": port, "vhost": "/", "user": "u", "password": "p", "heartbeat_s": 0,
            "reconnect_ns": reconnect_ns, "consume": Value::Null,
            "publish": {
                "exchange": exchange, "key": "k", "persistent": false, "confirms": confirms, "inflight": 50,
                "queue": 50,
            },
        }},
        "flows": [flow("publish", 100, None)],
    }))
    .unwrap()
}

fn answer(socket: &mut TcpStream, channel: u16, (class, id): (u16, u16), arguments: &[u8]) {
    let mut out = Vec::new();
    put_frame(&mut out, METHOD, channel, |out| {
        out.extend_from_slice(&class.to_be_bytes());
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(arguments);
    });
    // The client may have disconnected.
    let _ = socket.write_all(&out);
}

/// Serves one connection as the broker; returns the number of published messages.
fn serve(mut socket: TcpStream, confirms: Confirms) -> u64 {
    socket
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    let mut greeting = [0; 8];
    socket.read_exact(&mut greeting).unwrap();
    answer(
        &mut socket,
        0,
        (10, 10),
        b"\x00\x09\x00\x00\x00\x00\x00\x00\x00\x05PLAIN\x00\x00\x00\x00",
    );
    let (mut seen, mut kept, mut chunk) = (0, Vec::new(), [0; 4096]);
    loop {
        match socket.read(&mut chunk) {
            Ok(0) | Err(_) => return seen,
            Ok(n) => kept.extend_from_slice(&chunk[..n]),
        }
        while let Some((frame, size)) = wire::frame(&kept, 1 << 20).unwrap() {
            let mut fields = Fields(frame.payload);
            let ids = (
                frame.kind,
                fields.short().unwrap_or(0),
                fields.short().unwrap_or(0),
            );
            match ids {
                (METHOD, 10, 11) => answer(&mut socket, 0, (10, 30), &[0; 8]),
                (METHOD, 10, 40) => answer(&mut socket, 0, (10, 41), b"\x00"),
                (METHOD, 10, 50) => return seen,
                (METHOD, 20, 10) => answer(&mut socket, 1, (20, 11), &[0; 4]),
                (METHOD, 40, 10) => answer(&mut socket, 1, (40, 11), b""),
                (METHOD, 85, 10) => answer(&mut socket, 1, (85, 11), b""),
                (METHOD, 60, 40) => seen += 1,
                (wire::BODY, ..) => match confirms {
                    Confirms::Each => confirm(&mut socket, seen, false),
                    Confirms::UpTo(last) if seen == last => {
                        confirm(&mut socket, seen / 2, true);
                        return seen;
                    }
                    _ => {}
                },
                _ => {}
            }
            kept.drain(..size);
        }
    }
}

fn confirm(socket: &mut TcpStream, tag: u64, multiple: bool) {
    let arguments = [&tag.to_be_bytes()[..], &[u8::from(multiple)]].concat();
    answer(socket, 1, (60, 80), &arguments);
}

/// Starts a broker that serves one connection per entry of `script`; returns its port, and a handle that
/// yields the number of published messages of each connection.
fn broker(script: Vec<Confirms>) -> (u16, JoinHandle<Vec<u64>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = move || {
        let serve = |confirms| serve(listener.accept().unwrap().0, confirms);
        script.into_iter().map(serve).collect()
    };
    (port, spawn(serving))
}

/// Runs the role in real time until all messages are settled or `most` has passed; returns its S, R and C
/// records.
fn play(item: Item, most: Duration) -> (Vec<String>, Vec<String>, Vec<String>) {
    let (mut client, mut out) = (arm(item).unwrap(), Vec::new());
    let t0 = clock::lab_ns();
    client.go(t0);
    while clock::lab_ns() < t0 + most.as_nanos() as i64 {
        turn(&mut *client, 2, &mut out);
        let totals = client.totals();
        if totals.scheduled == 20 && totals.settled == 20 {
            break;
        }
    }
    client.finish(clock::lab_ns(), &mut out);
    by_kind(out)
}

fn outcomes(sent: &[String], outcome: &str) -> usize {
    sent.iter().filter(|line| line.ends_with(outcome)).count()
}

#[test]
fn resends_messages_unconfirmed_by_a_lost_connection() {
    let (port, served) = broker(vec![Confirms::UpTo(6), Confirms::Each]);
    let (sent, _, steps) = play(item(port, true, SECOND / 20), Duration::from_secs(10));
    assert_eq!(outcomes(&sent, ",settled"), 20, "{sent:?}");
    assert_eq!(
        served.join().unwrap(),
        [6, 17],
        "three of six were confirmed"
    );
    let again = |line: &String| line.ends_with(",2,settled");
    assert!(!sent[..3].iter().any(again), "confirmed at once: {sent:?}");
    assert!(sent[3..6].iter().all(again), "{sent:?}");
    let what: Vec<_> = steps
        .iter()
        .map(|line| line.split(',').nth(2).unwrap())
        .collect();
    assert_eq!(
        what,
        [
            "connecting",
            "connected",
            "disconnected",
            "connecting",
            "connected",
            "disconnected"
        ]
    );
}

#[test]
fn a_broker_that_confirms_nothing_leaves_all_accounted_for() {
    let (port, served) = broker(vec![Confirms::Never]);
    let (sent, _, _) = play(item(port, true, 0), Duration::from_millis(400));
    assert_eq!(outcomes(&sent, ",unsettled"), 20, "{sent:?}");
    assert_eq!(served.join().unwrap(), [20]);
}

#[test]
fn without_confirms_a_message_is_sent_once_it_has_left() {
    let (port, served) = broker(vec![Confirms::Never]);
    let (sent, _, _) = play(item(port, false, 0), Duration::from_millis(400));
    assert_eq!(outcomes(&sent, ",1,sent"), 20, "{sent:?}");
    assert_eq!(served.join().unwrap(), [20]);
}

#[test]
fn without_a_listener_all_is_unsent_and_attempts_are_recorded() {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let (sent, _, steps) = play(item(port, true, SECOND / 10), Duration::from_millis(400));
    assert_eq!(outcomes(&sent, ",unsent"), 20, "{sent:?}");
    assert!(
        steps
            .iter()
            .filter(|line| line.contains(",failed,"))
            .count()
            > 1,
        "{steps:?}"
    );
}

#[test]
fn a_wrong_specification_is_refused_with_its_place() {
    let mut wrong = item(1, true, 0);
    wrong.software.spec["publish"]["key"] = json!("k".repeat(256));
    assert!(arm(wrong).err().unwrap().contains("publish.key"));
    let mut wrong = item(1, true, 0);
    wrong.software.spec["broker"] = json!("server");
    assert!(arm(wrong).err().unwrap().contains("not an IP address"));
    let mut wrong = item(1, true, 0);
    wrong.flows.clear();
    assert!(arm(wrong).err().unwrap().contains("exactly one flow"));
}
