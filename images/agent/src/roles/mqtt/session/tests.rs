//! Tests a client with a scripted broker on loopback that breaks connections at bad moments.

use crate::clock;
use crate::os::Res;
use crate::roles::Role;
use crate::roles::mqtt::arm;
use crate::roles::testing::turn;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

mod over_tls;

const SECOND: i64 = 1_000_000_000;
const CONNACK: [u8; 4] = [0x20, 2, 0, 0];
const CONNACK_SESSION: [u8; 4] = [0x20, 2, 1, 0];
/// A CONNACK of MQTT 5 with a Receive Maximum of 2.
const CONNACK_5: [u8; 8] = [0x20, 6, 0, 0, 3, 0x21, 0, 2];
const CONNACK_5_SESSION: [u8; 8] = [0x20, 6, 1, 0, 3, 0x21, 0, 2];
const PUBLISH: u8 = 3;
const MESSAGES: u64 = 10;

fn client(version: &str, port: u16, publish: bool, subscribe: Value) -> Box<dyn Role> {
    client_again(version, port, publish, subscribe, json!({}))
}

fn client_again(
    version: &str,
    port: u16,
    publish: bool,
    subscribe: Value,
    resume: Value,
) -> Box<dyn Role> {
    let spec = json!({"version": version, "port": port, "subscribe": subscribe});
    client_of(spec, publish, resume)
}

/// Creates a client with these settings and the default ones.
fn client_of(settings: Value, publish: bool, resume: Value) -> Box<dyn Role> {
    try_client_of(settings, publish, resume).unwrap()
}

fn try_client_of(settings: Value, publish: bool, resume: Value) -> Res<Box<dyn Role>> {
    let mut spec = json!({
        "broker": "127.0.0.1", "keepalive_s": 30, "clean_session": false, "reconnect_ns": SECOND / 50,
    });
    let settings = settings.as_object().unwrap().clone();
    spec.as_object_mut().unwrap().extend(settings);
    let mut flows = json!([]);
    if publish {
        spec["publish"] = json!({"topic": "a", "qos": 1, "inflight": 3, "queue": 100});
        flows = json!([{
            "number": 7, "pattern": "publish", "payload": {"kind": "metering-xml", "bytes": 717},
            "schedule": {"kind": "own", "rates": [{"from_ns": 0, "per_s": 100}], "seed": 1},
            "start_ns": 0, "stop_ns": SECOND / 10,
        }]);
    }
    let session = json!({"endpoint": "c", "connect_ns": 0, "disconnect_ns": 60 * SECOND});
    let item = json!({
        "software": {"name": "mqtt", "kind": "mqtt", "session": session, "spec": spec},
        "flows": flows, "resume": resume,
    });
    arm(serde_json::from_value(item).unwrap())
}

/// Creates a client that publishes ten messages in a tenth of a second, at most three of them unacknowledged.
fn publisher(version: &str, port: u16) -> Box<dyn Role> {
    client(version, port, true, json!([]))
}

/// Runs the client until `done` returns true, at most three seconds; returns its records.
fn drive(client: &mut dyn Role, done: impl Fn(&dyn Role, &str) -> bool) -> String {
    let mut out = Vec::new();
    let until = clock::lab_ns() + 3 * SECOND;
    client.go(clock::lab_ns());
    while clock::lab_ns() < until && !done(client, &String::from_utf8_lossy(&out)) {
        turn(client, 5, &mut out);
    }
    client.finish(clock::lab_ns(), &mut out);
    String::from_utf8(out).unwrap()
}

/// Returns type and body of the next packet; None at the end. All packets here are shorter than 16,384 bytes.
fn packet(stream: &mut impl Read) -> Option<(u8, Vec<u8>)> {
    let mut head = [0; 2];
    stream.read_exact(&mut head).ok()?;
    let mut length = usize::from(head[1] & 0x7f);
    if head[1] & 0x80 != 0 {
        let mut more = [0];
        stream.read_exact(&mut more).ok()?;
        length += usize::from(more[0]) << 7;
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some((head[0] >> 4, body))
}

fn accept(listener: &TcpListener, connack: &[u8]) -> TcpStream {
    accept_login(listener, connack).0
}

/// Accepts a connection and answers its CONNECT; returns the CONNECT's body, too.
fn accept_login(listener: &TcpListener, connack: &[u8]) -> (TcpStream, Vec<u8>) {
    let (mut stream, _) = listener.accept().unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    let (kind, body) = packet(&mut stream).unwrap();
    assert_eq!(kind, 1);
    stream.write_all(connack).unwrap();
    (stream, body)
}

/// Receives and acknowledges messages until another packet or the end arrives; returns the packet ids.
fn acknowledge(stream: &mut (impl Read + Write)) -> Vec<u16> {
    let mut ids = Vec::new();
    while let Some((PUBLISH, body)) = packet(stream) {
        // The topic "a" takes three bytes.
        stream.write_all(&[0x40, 2, body[3], body[4]]).unwrap();
        ids.push(u16::from_be_bytes([body[3], body[4]]));
    }
    ids
}

/// Starts a broker that closes its port while the client's window is full, listens again 150 ms later, and
/// answers the new connection with the CONNACK `second`. The handle returns the packet ids of that
/// connection.
fn restarting(
    listener: TcpListener,
    window: usize,
    first: &'static [u8],
    second: &'static [u8],
) -> JoinHandle<Vec<u16>> {
    spawn(move || {
        let place = listener.local_addr().unwrap();
        let mut stream = accept(&listener, first);
        for _ in 0..window {
            assert_eq!(packet(&mut stream).unwrap().0, PUBLISH);
        }
        drop((stream, listener));
        std::thread::sleep(Duration::from_millis(150));
        let listener = TcpListener::bind(place).unwrap();
        acknowledge(&mut accept(&listener, second))
    })
}

fn restart(version: &str, window: usize, first: &'static [u8], second: &'static [u8]) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = publisher(version, listener.local_addr().unwrap().port());
    let broker = restarting(listener, window, first, second);
    let records = drive(&mut *client, |c, _| c.totals().settled == MESSAGES);
    let settled: Vec<&str> = records.lines().filter(|l| l.starts_with("S,")).collect();
    assert_eq!(settled.len(), MESSAGES as usize);
    assert!(settled.iter().all(|l| l.ends_with(",settled")), "{records}");
    assert!(
        records.contains("C,c,failed"),
        "the broker was away: {records}"
    );
    assert_eq!(broker.join().unwrap().len(), MESSAGES as usize);
}

#[test]
fn a_full_window_is_sent_again_in_the_same_session() {
    restart("3.1.1", 3, &CONNACK, &CONNACK_SESSION);
    restart("5", 2, &CONNACK_5, &CONNACK_5_SESSION);
}

#[test]
fn a_full_window_is_sent_again_to_a_broker_that_forgot_the_session() {
    restart("3.1.1", 3, &CONNACK, &CONNACK);
    restart("5", 2, &CONNACK_5, &CONNACK_5);
}

#[test]
fn half_a_packet_does_not_spoil_the_next_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let broker = spawn(move || {
        let mut stream = accept(&listener, &CONNACK);
        let (kind, body) = packet(&mut stream).unwrap();
        assert_eq!(kind, 8);
        stream.write_all(&[0x90, 3, body[0], body[1], 0]).unwrap();
        stream.write_all(&[0x30, 50, 0, 1, b'a', b'x']).unwrap();
        drop(stream);
        packet(&mut accept(&listener, &CONNACK_SESSION)).map(|(kind, _)| kind)
    });
    let mut client = client("3.1.1", port, false, json!([{"topic": "a", "qos": 0}]));
    let twice = |text: &str| text.matches("C,c,connected").count() == 2;
    let records = drive(&mut *client, |_, text| twice(text));
    assert!(twice(&records), "{records}");
    // The next packet that the broker receives is DISCONNECT (type 14).
    assert_eq!(broker.join().unwrap(), Some(14));
}

#[test]
fn a_resumed_client_accounts_for_earlier_messages_and_continues() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let broker = spawn(move || acknowledge(&mut accept(&listener, &CONNACK)));
    let resume =
        json!({"7": {"next": 3, "open": [1], "ended_ns": 45_000_000, "begins_ns": 65_000_000}});
    let mut client = client_again("3.1.1", port, true, json!([]), resume);
    let records = drive(&mut *client, |c, _| {
        c.totals().scheduled == MESSAGES && c.totals().pending == 0
    });
    let fates: Vec<(u64, &str)> = records
        .lines()
        .filter(|l| l.starts_with("S,"))
        .map(|l| {
            let fields: Vec<&str> = l.split(',').collect();
            (fields[2].parse().unwrap(), fields[8])
        })
        .collect();
    let of = |outcome: &str| -> Vec<u64> {
        let chosen = fates.iter().filter(|f| f.1 == outcome);
        chosen.map(|f| f.0).collect()
    };
    let (unknown, missed, ours) = (of("unsettled"), of("unsent"), of("settled"));
    assert_eq!(unknown[0], 1, "{records}");
    assert_eq!(missed.len(), 2, "20 ms off at 100 messages/s: {records}");
    let mut all = [vec![0, 2], unknown, missed, ours.clone()].concat();
    all.sort_unstable();
    assert_eq!(all, (0..MESSAGES).collect::<Vec<u64>>(), "{records}");
    assert_eq!(broker.join().unwrap().len(), ours.len());
}

#[test]
fn bytes_that_are_no_packet_end_the_connection_and_not_the_agent() {
    let publish = [0x32, 6, 0, 1, b'a', 0, 0, 7]; // at QoS 1, with the packet id 0
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let broker: JoinHandle<()> = spawn(move || {
        let mut first = accept(&listener, &CONNACK);
        first.write_all(&publish).unwrap();
        drop(accept(&listener, &CONNACK)); // the client reconnects
    });
    let subscribe = json!([{"topic": "a", "qos": 1}]);
    let mut subscriber = client("3.1.1", port, false, subscribe);
    let records = drive(&mut *subscriber, |_, records| {
        records.matches("connected").count() >= 3
    });
    assert!(
        records.contains("the broker sent an invalid MQTT packet"),
        "{records}"
    );
    broker.join().unwrap();
}

#[test]
fn a_session_with_an_expiry_begins_clean_once() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let broker = spawn(move || {
        let logins = [&CONNACK_5, &CONNACK_5_SESSION].map(|connack| {
            let (stream, body) = accept_login(&listener, connack);
            drop(stream);
            body
        });
        logins.map(|body| body[7] & 2 != 0) // the flag Clean Start
    });
    let spec = json!({"version": "5", "port": port, "clean_session": true, "session_expiry_s": 60,
        "subscribe": [{"topic": "a", "qos": 1}]});
    let mut client = client_of(spec, false, json!({}));
    let twice = |text: &str| text.matches("C,c,connected").count() == 2;
    let records = drive(&mut *client, |_, text| twice(text));
    assert!(twice(&records), "{records}");
    assert_eq!(broker.join().unwrap(), [true, false]);
}

#[test]
fn retained_messages_and_wills_are_records_of_the_session() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let broker = spawn(move || {
        let mut stream = accept(&listener, &CONNACK);
        let (_, body) = packet(&mut stream).unwrap();
        stream.write_all(&[0x90, 3, body[0], body[1], 0]).unwrap();
        stream.write_all(&[0x31, 4, 0, 1, b'r', b'x']).unwrap(); // RETAIN is set
        stream.write_all(&[0x30, 4, 0, 1, b'w', b'x']).unwrap();
        stream.write_all(&[0x30, 4, 0, 1, b'o', b'x']).unwrap(); // another program's message
        packet(&mut stream).map(|(kind, _)| kind)
    });
    let spec = json!({"version": "3.1.1", "port": port, "wills": ["w"], "subscribe": [{"topic": "#", "qos": 0}]});
    let mut client = client_of(spec, false, json!({}));
    let records = drive(&mut *client, |c, _| c.totals().foreign == 1);
    let of = |what: &str| -> Vec<&str> {
        let lines = records
            .lines()
            .filter(|l| l.starts_with(&format!("C,c,{what},")));
        lines.map(|l| l.rsplit(',').next().unwrap()).collect()
    };
    assert_eq!(
        (of("retained"), of("will")),
        (vec!["r"], vec!["w"]),
        "{records}"
    );
    assert_eq!(client.totals().received, 0);
    assert_eq!(broker.join().unwrap(), Some(14));
}

#[test]
fn a_refused_login_is_recorded_in_words() {
    for (version, connack, why) in [
        ("3.1.1", &[0x20, 2, 0, 5][..], "NotAuthorized"),
        ("5", &[0x20, 3, 0, 0x86, 0][..], "BadUserNameOrPassword"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let connack = connack.to_vec();
        let broker = spawn(move || drop(accept(&listener, &connack)));
        let spec = json!({"version": version, "port": port, "user": "u", "password": "x",
            "subscribe": [{"topic": "a", "qos": 0}]});
        let mut client = client_of(spec, false, json!({}));
        let records = drive(&mut *client, |_, text| text.contains("C,c,failed"));
        assert!(records.contains(&format!("refused: {why}")), "{records}");
        broker.join().unwrap();
    }
}

#[test]
fn a_broker_that_leaves_a_ping_unanswered_is_gone() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let broker = spawn(move || {
        let mut stream = accept(&listener, &CONNACK);
        let kinds: Vec<u8> = std::iter::from_fn(|| packet(&mut stream))
            .map(|p| p.0)
            .collect();
        kinds
    });
    let spec = json!({"version": "3.1.1", "port": port, "keepalive_s": 1, "subscribe": []});
    let mut client = client_of(spec, false, json!({}));
    let records = drive(&mut *client, |_, text| text.contains("disconnected"));
    assert!(records.contains("no PINGRESP in time"), "{records}");
    assert_eq!(broker.join().unwrap().first(), Some(&12));
}
