//! Tests the roles of stations and concentrators with each other in one thread, over loopback.

use super::*;
use crate::roles::testing::{SECOND, by_kind, play_for};
use serde_json::{Value, json};

const BYTES: usize = 30 + 8 * 6; // of a data frame with six phasors

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn armed(endpoint: &str, end_ns: i64, spec: &Value, flow: Option<Value>) -> Res<Box<dyn Role>> {
    let session = json!({"endpoint": endpoint, "connect_ns": 0, "disconnect_ns": end_ns});
    let item = json!({
        "software": {"name": "s", "kind": "synchrophasor", "session": session, "spec": spec},
        "flows": Vec::from_iter(flow),
    });
    arm(serde_json::from_value(item).unwrap())
}

fn station(transport: &str, port: u16, flow: u32, bytes: usize) -> Res<Box<dyn Role>> {
    let station =
        json!({"name": "bay", "idcode": 7 + flow, "phasors": 6, "analogs": 0, "nominal_hz": 50});
    let flow = json!({
        "number": flow, "pattern": "stream", "payload": {"kind": "own", "bytes": bytes}, "reply": null,
        "schedule": {"kind": "own", "rates": [{"from_ns": 0, "per_s": 100}], "seed": 1},
        "start_ns": SECOND / 2, "stop_ns": SECOND,
    });
    armed(
        "bay",
        60 * SECOND,
        &json!({"transport": transport, "listen": port, "station": station}),
        Some(flow),
    )
}

fn asks(transport: &str, to: &[(u16, u32)]) -> Box<dyn Role> {
    let to: Vec<Value> = to
        .iter()
        .map(|(port, flow)| {
            json!({"endpoint": format!("bay{flow}"), "address": "127.0.0.1", "port": port, "idcode": 7 + flow, "flow": flow})
        })
        .collect();
    armed(
        "centre",
        60 * SECOND,
        &json!({"transport": transport, "to": to}),
        None,
    )
    .unwrap()
}

#[test]
fn two_concentrators_receive_every_frame_of_two_stations() {
    for transport in ["tcp", "udp"] {
        let ports = [free_port(), free_port()];
        let mut roles = vec![
            station(transport, ports[0], 0, BYTES).unwrap(),
            station(transport, ports[1], 1, BYTES).unwrap(),
            asks(transport, &[(ports[0], 0), (ports[1], 1)]),
            asks(transport, &[(ports[0], 0)]),
        ];
        let (sent, received, sessions) = by_kind(play_for(&mut roles, SECOND * 12 / 10));
        assert_eq!(sent.len(), 100, "{transport}");
        assert!(
            sent.iter().all(|line| line.ends_with(",1,sent")),
            "{transport}: {sent:?}"
        );
        let of = |flow: &str| {
            received
                .iter()
                .filter(|line| line.starts_with(flow))
                .count()
        };
        assert_eq!((of("R,0,"), of("R,1,")), (100, 50), "{transport}");
        let steps = |what: &str| sessions.iter().filter(|line| line.contains(what)).count();
        assert_eq!(
            (steps(",listening,"), steps(",subscribed,")),
            (2, 2),
            "{sessions:?}"
        );
    }
}

#[test]
fn measurements_without_a_concentrator_are_unsent() {
    let mut roles = vec![station("udp", free_port(), 0, BYTES).unwrap()];
    let (sent, ..) = by_kind(play_for(&mut roles, SECOND * 12 / 10));
    assert_eq!(
        sent.iter()
            .filter(|line| line.ends_with(",0,unsent"))
            .count(),
        50
    );
}

#[test]
fn requests_to_an_absent_station_are_repeated() {
    let port = free_port();
    let mut roles = vec![asks("udp", &[(port, 0)])];
    let mut out = play_for(&mut roles, SECOND / 10);
    out.clear();
    let mut roles = vec![asks("tcp", &[(port, 0)])];
    let (.., sessions) = by_kind(play_for(&mut roles, SECOND * 12 / 10));
    let failed = sessions
        .iter()
        .filter(|line| line.contains(",failed,"))
        .count();
    assert!(failed >= 2, "{sessions:?}");
}

#[test]
fn invalid_bytes_end_their_connection_only() {
    use std::io::{Read, Write};
    let port = free_port();
    let mut roles = vec![
        station("tcp", port, 0, BYTES).unwrap(),
        asks("tcp", &[(port, 0)]),
    ];
    let mut stranger = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let (_, received, _) = by_kind(play_for(&mut roles, SECOND * 12 / 10));
    assert_eq!(received.len(), 50);
    assert_eq!(stranger.read(&mut [0; 10]).unwrap_or(0), 0);
}

/// Starts a relay that forwards datagrams between a station and a concentrator and corrupts the checksum of
/// every tenth data frame; returns its port.
fn spoiling(station: u16) -> u16 {
    let relay = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = relay.local_addr().unwrap().port();
    let mut bytes = [0; 2048];
    std::thread::spawn(move || {
        let (mut asker, mut data) = (None, 0);
        while let Ok((n, from)) = relay.recv_from(&mut bytes) {
            if from.port() != station {
                asker = Some(from);
                relay.send_to(&bytes[..n], ("127.0.0.1", station)).unwrap();
            } else if let Some(asker) = asker {
                if bytes[1] >> 4 == 0 {
                    data += 1;
                    bytes[n - 1] ^= u8::from(data % 10 == 0);
                }
                relay.send_to(&bytes[..n], asker).unwrap();
            }
        }
    });
    port
}

#[test]
fn frames_of_a_wrong_checksum_are_counted_and_the_stream_goes_on() {
    let port = free_port();
    let mut roles = vec![
        station("udp", port, 0, BYTES).unwrap(),
        asks("udp", &[(spoiling(port), 0)]),
    ];
    let (sent, received, _) = by_kind(play_for(&mut roles, SECOND * 12 / 10));
    assert_eq!((sent.len(), received.len()), (50, 45));
    assert_eq!(roles[1].totals().foreign, 5);
}

#[test]
fn refuses_names_and_sizes_that_do_not_fit() {
    let fault = station("tcp", free_port(), 0, 100).err().unwrap();
    assert!(
        fault.contains("payload.bytes: 100; a data frame has 78"),
        "{fault}"
    );
    let both = json!({"transport": "tcp", "listen": 1, "to": [{"endpoint": "a", "address": "127.0.0.1", "port": 1, "idcode": 1, "flow": 0}]});
    assert!(
        armed("x", SECOND, &both, None)
            .err()
            .unwrap()
            .contains("either")
    );
}
