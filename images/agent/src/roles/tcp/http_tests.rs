//! Tests HTTP clients and servers with each other on loopback, and clients with scripted servers.

use super::*;
use crate::roles::testing::{SECOND, by_kind, flow, turn};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

const CA: &str = include_str!("../mqtt/session/certificates/ca.pem");
const FOREIGN: &str = include_str!("../mqtt/session/certificates/foreign.pem");
const CERT: &str = include_str!("../mqtt/session/certificates/server.pem");
const KEY: &str = include_str!("../mqtt/session/certificates/server.key");

fn role(endpoint: &str, spec: Value, flow: Option<Value>) -> Tcp {
    let session = json!({"endpoint": endpoint, "connect_ns": 0, "disconnect_ns": 60 * SECOND});
    let item = json!({
        "software": {"name": "t", "kind": "http", "session": session, "spec": spec},
        "flows": Vec::from_iter(flow),
    });
    Tcp::new(serde_json::from_value(item).unwrap()).unwrap()
}

fn server(more: Value) -> (Tcp, Value) {
    let mut spec = json!({
        "listen": 0, "nodelay": true, "timeout_ns": 0, "http": {"path": "/", "keep_alive": true},
    });
    spec.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let server = role("s", spec, None);
    let port = server.server.as_ref().unwrap().port();
    (server, to(port))
}

fn to(port: u16) -> Value {
    json!({"endpoint": "s", "address": "127.0.0.1", "port": port})
}

fn client(peer: &Value, keep_alive: bool, connections: usize, more: Value) -> Tcp {
    let mut spec = json!({
        "to": [peer], "nodelay": true, "reconnect_ns": SECOND / 50, "inflight": 1,
        "timeout_ns": SECOND / 2, "connections": connections,
        "http": {"path": "/x", "keep_alive": keep_alive},
    });
    spec.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    role("c", spec, Some(flow("request", 3000, Some(100_000))))
}

/// Runs all roles for a second, or until the client has no request left; returns records as `by_kind`.
fn drive(server: Option<&mut Tcp>, client: &mut Tcp) -> (Vec<String>, Vec<String>, Vec<String>) {
    let mut roles: Vec<&mut Tcp> = server.into_iter().collect();
    let mut out = Vec::new();
    let t0 = clock::lab_ns();
    roles.iter_mut().for_each(|role| role.go(t0));
    client.go(t0);
    while clock::lab_ns() < t0 + 3 * SECOND {
        roles.iter_mut().for_each(|role| turn(*role, 1, &mut out));
        turn(client, 1, &mut out);
        if client.totals().scheduled == 20 && client.totals().pending == 0 {
            break;
        }
    }
    client.finish(clock::lab_ns(), &mut out);
    roles
        .iter_mut()
        .for_each(|role| role.finish(clock::lab_ns(), &mut out));
    by_kind(out)
}

fn steps(sessions: &[String]) -> Vec<&str> {
    let mine = sessions.iter().filter_map(|line| line.strip_prefix("C,c,"));
    mine.map(|line| line.split(',').next().unwrap()).collect()
}

fn settled(sent: &[String]) -> usize {
    sent.iter()
        .filter(|line| line.ends_with(",1,settled"))
        .count()
}

#[test]
fn every_request_is_answered_on_kept_and_on_single_connections() {
    for (keep_alive, connections) in [(true, 1), (true, 5), (false, 1), (false, 5)] {
        let (mut server, peer) = server(json!({}));
        let mut client = client(&peer, keep_alive, connections, json!({}));
        let (sent, got, sessions) = drive(Some(&mut server), &mut client);
        assert_eq!(
            (sent.len(), settled(&sent)),
            (20, 20),
            "{keep_alive} {sent:?}"
        );
        for leg in [",s,0,", ",c,1,", ",s,1,"] {
            let lines = got.iter().filter(|line| line.contains(leg)).count();
            assert_eq!(lines, if leg == ",c,1," { 0 } else { 20 }, "{leg} {got:?}");
        }
        assert_eq!(
            steps(&sessions),
            ["connecting", "connected", "disconnected"]
        );
        assert_eq!(client.totals().foreign + server.totals().foreign, 0);
    }
}

#[test]
fn tls_encrypts_both_ways_and_refuses_a_foreign_authority() {
    for (ca, version, keep_alive) in [
        (CA, "1.2", true),
        (CA, "1.3", true),
        (CA, "1.3", false),
        (FOREIGN, "1.3", true),
    ] {
        let (mut server, peer) = server(json!({"accept_tls": {"cert": CERT, "key": KEY}}));
        let tls = json!({"tls": {"ca": ca, "server_name": "server", "versions": [version]}});
        let mut client = client(&peer, keep_alive, 2, tls);
        let (sent, _, sessions) = drive(Some(&mut server), &mut client);
        if ca == CA {
            assert_eq!(
                (sent.len(), settled(&sent)),
                (20, 20),
                "{version} {sessions:?}"
            );
            assert_eq!(
                steps(&sessions),
                ["connecting", "tls", "connected", "disconnected"]
            );
        } else {
            assert_eq!(settled(&sent), 0);
            assert!(
                sessions.iter().any(|line| line.contains("TLS: ")),
                "{sessions:?}"
            );
        }
    }
}

fn second(keep_alive: bool) -> Value {
    json!({"inflight": 100, "http": {"path": "/x", "keep_alive": keep_alive, "version": 2}})
}

#[test]
fn every_request_of_http2_is_answered_in_the_clear_and_by_tls() {
    for (keep_alive, connections, encrypted) in [
        (true, 1, false),
        (true, 3, true),
        (false, 2, false),
        (false, 2, true),
    ] {
        let (identity, trust) = if encrypted {
            let tls = json!({"ca": CA, "server_name": "server", "versions": ["1.3"]});
            (
                json!({"accept_tls": {"cert": CERT, "key": KEY}}),
                json!({"tls": tls}),
            )
        } else {
            (json!({}), json!({}))
        };
        let (mut server, peer) = server(identity);
        let mut more = second(keep_alive);
        let trust = trust.as_object().unwrap().clone();
        more.as_object_mut().unwrap().extend(trust);
        let mut client = client(&peer, keep_alive, connections, more);
        let (sent, got, sessions) = drive(Some(&mut server), &mut client);
        assert_eq!(
            (sent.len(), settled(&sent)),
            (20, 20),
            "{sessions:?} {sent:?}"
        );
        for leg in [",s,0,", ",s,1,"] {
            let lines = got.iter().filter(|line| line.contains(leg)).count();
            assert_eq!(lines, 20, "{leg} {got:?}");
        }
        assert_eq!(client.totals().foreign + server.totals().foreign, 0);
        let wanted: &[&str] = if encrypted {
            &["connecting", "tls", "connected", "disconnected"]
        } else {
            &["connecting", "connected", "disconnected"]
        };
        assert_eq!(steps(&sessions), wanted);
    }
}

#[test]
fn http2_names_a_server_that_does_not_speak_it() {
    let (peer, thread) = scripted(b"HTTP/1.1 400 Bad\r\n\r\n", Duration::from_secs(1));
    let mut client = client(&peer, true, 1, second(true));
    let (sent, _, sessions) = drive(None, &mut client);
    assert_eq!((sent.len(), settled(&sent)), (20, 0));
    assert!(
        sessions.iter().any(|line| line.contains("HTTP/2: ")),
        "{sessions:?}"
    );
    thread.join().unwrap();
}

#[test]
fn requests_of_http2_that_a_silent_server_leaves_are_unanswered_and_end_their_streams_alone() {
    let (peer, thread) = scripted(b"", Duration::from_secs(2));
    let mut client = client(&peer, true, 1, second(true));
    let (sent, _, sessions) = drive(None, &mut client);
    assert_eq!(sent.len(), 20);
    let unsettled = |line: &&String| line.ends_with(",unsettled");
    assert_eq!(sent.iter().filter(unsettled).count(), 20, "{sent:?}");
    let begun = steps(&sessions)
        .iter()
        .filter(|step| **step == "connecting")
        .count();
    assert_eq!(begun, 1, "{sessions:?}");
    thread.join().unwrap();
}

/// Answers the first request of each of the connections by `reply`, and closes them after `wait`.
fn scripted(reply: &'static [u8], wait: Duration) -> (Value, JoinHandle<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = to(listener.local_addr().unwrap().port());
    let thread = spawn(move || {
        listener.set_nonblocking(true).unwrap();
        let (mut count, end) = (0, clock::lab_ns() + 2 * SECOND);
        while clock::lab_ns() < end {
            match listener.accept() {
                Ok((stream, _)) => {
                    count += 1;
                    spawn(move || answer_one(stream, reply, wait));
                }
                Err(_) => std::thread::sleep(Duration::from_millis(2)),
            }
        }
        count
    });
    (peer, thread)
}

fn answer_one(mut stream: TcpStream, reply: &[u8], wait: Duration) {
    stream.set_nonblocking(false).unwrap();
    let mut seen = vec![0; 4000];
    _ = stream.read(&mut seen);
    _ = stream.write_all(reply);
    std::thread::sleep(wait);
}

#[test]
fn other_statuses_and_silence_leave_requests_unanswered() {
    let busy = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    for (reply, foreign) in [(&busy[..], true), (b"", false)] {
        let (peer, thread) = scripted(reply, Duration::from_secs(1));
        let mut client = client(&peer, true, 30, json!({}));
        let (sent, got, _) = drive(None, &mut client);
        assert_eq!(sent.len(), 20);
        assert!(
            sent.iter().all(|line| line.ends_with(",unsettled")),
            "{sent:?}"
        );
        assert!(got.is_empty());
        assert_eq!(client.totals().foreign > 0, foreign);
        assert!(thread.join().unwrap() > 1);
    }
}

#[test]
fn a_server_of_something_else_is_named() {
    let (peer, thread) = scripted(b"220 smtp ready\r\n\r\n", Duration::from_secs(1));
    let mut client = client(&peer, true, 1, json!({}));
    let (sent, _, sessions) = drive(None, &mut client);
    assert_eq!(settled(&sent), 0);
    assert!(
        sessions
            .iter()
            .any(|line| line.contains("no start line of HTTP/1")),
        "{sessions:?}"
    );
    thread.join().unwrap();
}

#[test]
fn a_request_of_somebody_else_is_answered_by_400() {
    let (mut server, peer) = server(json!({}));
    let port = peer["port"].as_u64().unwrap() as u16;
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: s\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut out = Vec::new();
    server.go(clock::lab_ns());
    for _ in 0..50 {
        turn(&mut server, 1, &mut out);
    }
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 400 "), "{text}");
    assert_eq!(server.totals().foreign, 1);
}
