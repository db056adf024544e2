//! Tests a sender and a sink on loopback.

use super::*;
use crate::roles::testing::{poll_set, turn};
use crate::{clock, os};
use serde_json::{Value, json};

fn role(endpoint: &str, spec: Value, flows: Value) -> Res<Bulk> {
    let session = json!({"endpoint": endpoint, "connect_ns": 0, "disconnect_ns": 60 * SECOND_NS});
    let software = json!({"name": "b", "kind": "bulk", "session": session, "spec": spec});
    let item = json!({"software": software, "flows": flows});
    Bulk::new(serde_json::from_value(item).unwrap())
}

fn flow() -> Value {
    json!([{
        "number": 6, "pattern": "stream", "payload": {"kind": "bytes", "bytes": 1448},
        "schedule": null, "start_ns": 0, "stop_ns": SECOND_NS,
    }])
}

fn sink() -> (Bulk, Value) {
    let sink = role("s", json!({"listen": 0}), json!([])).unwrap();
    let port = sink.sink.as_ref().unwrap().port();
    (
        sink,
        json!({"endpoint": "s", "address": "127.0.0.1", "port": port}),
    )
}

fn b_records(text: &str) -> Vec<Vec<String>> {
    let lines = text.lines().filter(|l| l.starts_with("B,6,"));
    lines
        .map(|l| l.split(',').map(str::to_owned).collect())
        .collect()
}

/// Runs a sender with the further settings `more` and a receiver for 0.7 s, of which the sender sends from
/// 0.05 to 0.5 s; returns their B records as lists of fields.
fn transfer(more: Value) -> Vec<Vec<String>> {
    b_records(&all_records(more))
}

fn all_records(more: Value) -> String {
    let (mut sink, to) = sink();
    let mut spec = json!({"to": [to], "start_ns": SECOND_NS / 20, "stop_ns": SECOND_NS / 2});
    spec.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let mut sender = role("c", spec, flow()).unwrap();
    let mut out = Vec::new();
    let t0 = clock::lab_ns();
    let mut roles = [&mut sink, &mut sender];
    roles.iter_mut().for_each(|r| r.go(t0));
    while clock::lab_ns() < t0 + SECOND_NS * 7 / 10 {
        let mut fds: Vec<_> = roles.iter().flat_map(|role| poll_set(&**role)).collect();
        os::poll(&mut fds, 1).unwrap();
        for role in &mut roles {
            for ready in fds.iter().filter(|fd| fd.revents != 0) {
                let mut mine = false;
                role.fds(&mut |fd, _| mine |= fd == ready.fd);
                if mine {
                    role.on_ready(ready.fd, ready.revents, clock::lab_ns(), &mut out);
                }
            }
            role.on_time(clock::lab_ns(), &mut out);
        }
    }
    roles
        .iter_mut()
        .rev()
        .for_each(|r| r.finish(clock::lab_ns(), &mut out));
    String::from_utf8(out).unwrap()
}

/// Returns the highest byte counts, first the sender's, then the receiver's; 0 without records.
fn ends(records: &[Vec<String>]) -> [u64; 2] {
    ["0", "1"].map(|leg| {
        let of = records.iter().filter(|r| r[3] == leg);
        of.map(|r| r[5].parse::<u64>().unwrap())
            .max()
            .unwrap_or_default()
    })
}

#[test]
fn a_volume_arrives_whole_over_several_streams() {
    let records = transfer(
        json!({"volume_bytes": 10_000_000, "streams": 3, "congestion": "reno", "rate_bps": null, "size": null}),
    );
    let [sent, got] = ends(&records);
    assert_eq!((sent, got), (sent, sent));
    assert!((10_000_000..10_000_100).contains(&sent), "{sent}");
    let last = records.iter().rfind(|r| r[3] == "0").unwrap();
    assert!(
        last[6].parse::<u64>().unwrap() > 0
            && last[8].parse::<u64>().is_ok()
            && !last[9].is_empty(),
        "{last:?}"
    );
}

#[test]
fn greed_is_faster_than_a_pace_and_a_pace_is_kept() {
    let [paced, got] = ends(&transfer(json!({"rate_bps": 80_000_000})));
    // The sender may send 80 Mbit/s for 0.45 s; a slow machine catches up until the end.
    assert!((4_000_000..=4_500_000).contains(&paced), "{paced}");
    assert_eq!(paced, got);
    let [greedy, got] = ends(&transfer(json!({})));
    assert!(greedy > 2 * paced && greedy == got, "{greedy} and {got}");
}

#[test]
fn datagrams_keep_their_rate_and_are_counted_on_both_sides() {
    let spec = json!({"protocol": "udp", "rate_bps": 8_000_000, "size": 1000});
    let text = all_records(spec);
    let steps: Vec<_> = text
        .lines()
        .filter_map(|l| l.strip_prefix("C,"))
        .map(|l| l.split(',').take(2).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        steps,
        [
            "s listening",
            "c connected",
            "c disconnected",
            "s disconnected"
        ]
    );
    let records = b_records(&text);
    let [sent, got] = ends(&records);
    // The sender may send 1 MB/s for 0.45 s. On a slow machine it may wake after the end, and then sends no
    // more.
    assert!(
        (400_000..=450_000).contains(&sent) && sent == got,
        "{sent} and {got}"
    );
    let last = records.iter().rfind(|r| r[3] == "1").unwrap();
    assert_eq!(
        (last[6].parse::<u64>().unwrap(), last[7].as_str()),
        (got / 1000, "0")
    );
}

#[test]
fn records_listening_once() {
    let (mut sink, _) = sink();
    let (mut out, now) = (Vec::new(), clock::lab_ns());
    sink.go(now + SECOND_NS);
    for _ in 0..3 {
        sink.on_time(now, &mut out);
    }
    sink.on_time(now + 2 * SECOND_NS, &mut out);
    assert_eq!(
        String::from_utf8(out).unwrap().matches("listening").count(),
        1
    );
}

#[test]
fn reports_datagrams_lost_in_the_socket() {
    let (mut sink, to) = sink();
    let to = ("127.0.0.1", to["port"].as_u64().unwrap() as u16);
    let stranger = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    // The datagrams have 13 MB in total, more than the socket's buffer holds.
    for _ in 0..200 {
        stranger.send_to(&[0; 65_000], to).unwrap();
    }
    let mut out = Vec::new();
    sink.finish(clock::lab_ns(), &mut out);
    let text = String::from_utf8(out).unwrap();
    assert!(
        text.starts_with("C,s,failed,") && text.contains("buffer full"),
        "{text}"
    );
}

#[test]
fn a_refusal_does_not_keep_the_socket_ready() {
    let closed = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = closed.local_addr().unwrap().port();
    drop(closed);
    let to = json!({"endpoint": "s", "address": "127.0.0.1", "port": port});
    let spec = json!({"to": [to], "protocol": "udp", "rate_bps": 8_000_000, "size": 1000, "volume_bytes": 1000, "stop_ns": SECOND_NS});
    let mut sender = role("c", spec, flow()).unwrap();
    let mut out = Vec::new();
    sender.go(clock::lab_ns() - SECOND_NS / 2);
    sender.on_time(clock::lab_ns(), &mut out);
    let mut fds = poll_set(&sender);
    assert_eq!(os::poll(&mut fds, 1000).unwrap(), 1, "nobody was there");
    sender.on_ready(fds[0].fd, fds[0].revents, clock::lab_ns(), &mut out);
    assert_eq!(os::poll(&mut poll_set(&sender), 0).unwrap(), 0);
}

#[test]
fn a_resumed_sender_does_not_catch_up() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let to = json!({"endpoint": "s", "address": "127.0.0.1", "port": port});
    let spec = json!({"to": [to], "protocol": "udp", "rate_bps": 8_000_000, "size": 1000, "stop_ns": 60 * SECOND_NS});
    let session = json!({"endpoint": "c", "connect_ns": 0, "disconnect_ns": 60 * SECOND_NS});
    let software = json!({"name": "b", "kind": "bulk", "session": session, "spec": spec});
    let resume = json!({"6": {"next": 0, "ended_ns": SECOND_NS, "begins_ns": 10 * SECOND_NS}});
    let item = json!({"software": software, "flows": flow(), "resume": resume});
    let mut sender = Bulk::new(serde_json::from_value(item).unwrap()).unwrap();
    let (mut out, t0) = (Vec::new(), clock::lab_ns());
    sender.go(t0);
    sender.on_time(t0 + 10 * SECOND_NS, &mut out);
    sender.on_time(t0 + 10 * SECOND_NS + SECOND_NS / 100, &mut out);
    sender.finish(t0 + 10 * SECOND_NS + SECOND_NS / 100, &mut out);
    let records = b_records(&String::from_utf8(out).unwrap());
    // The sender may send for 10 ms at 1 MB/s.
    assert_eq!(ends(&records), [10_000, 0]);
}

#[test]
fn a_stream_that_is_stuck_does_not_hold_up_the_others() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let to = json!({"endpoint": "s", "address": "127.0.0.1", "port": port});
    let peer = std::thread::spawn(move || {
        let (_stuck, mut read) = (listener.accept().unwrap(), listener.accept().unwrap().0);
        std::io::copy(&mut read, &mut std::io::sink()).unwrap()
    });
    let spec =
        json!({"to": [to], "streams": 2, "rate_bps": 2_000_000_000, "stop_ns": 60 * SECOND_NS});
    let mut role = role("c", spec, flow()).unwrap();
    let (mut out, t0) = (Vec::new(), clock::lab_ns());
    role.go(t0);
    role.on_time(t0, &mut out);
    let one_is_full = |role: &Bulk| {
        let full = poll_set(role)
            .iter()
            .filter(|fd| fd.events & libc::POLLOUT != 0)
            .count();
        role.connected() && full == 1
    };
    while !one_is_full(&role) {
        assert!(clock::lab_ns() < t0 + 10 * SECOND_NS);
        let mut fds = poll_set(&role);
        os::poll(&mut fds, 1).unwrap();
        for ready in fds.iter().filter(|fd| fd.revents != 0) {
            role.on_ready(ready.fd, ready.revents, clock::lab_ns(), &mut out);
        }
        role.on_time(clock::lab_ns(), &mut out);
    }
    let next = role.sender.as_ref().unwrap().deadline().unwrap();
    assert!(next < clock::lab_ns() + SECOND_NS, "{}", next - t0);
    drop(role);
    assert!(peer.join().unwrap() > 0);
}

#[test]
fn data_is_pending_until_acknowledged() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let to = json!({"endpoint": "s", "address": "127.0.0.1", "port": port});
    let spec = json!({"to": [to], "stop_ns": SECOND_NS / 4});
    let mut role = role("c", spec, flow()).unwrap();
    let (mut out, t0) = (Vec::new(), clock::lab_ns());
    role.go(t0);
    while clock::lab_ns() < t0 + SECOND_NS / 2 {
        turn(&mut role, 10, &mut out);
    }
    assert_eq!(role.totals().pending, 1, "nobody has read a byte");
    let mut reader = listener.accept().unwrap().0;
    std::io::copy(&mut reader, &mut std::io::sink()).unwrap();
    // The receiver acknowledges the end of the stream, too, after the kernel's delay at the latest.
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(role.totals().pending, 0);
}

#[test]
fn a_failing_accept_is_reported_without_a_busy_loop() {
    let (mut sink, _) = sink();
    let before = poll_set(&sink).len();
    let full = std::io::Error::from_raw_os_error(libc::EMFILE);
    assert!(!sink.sink.as_mut().unwrap().take_in(Err(full)));
    assert_eq!(
        poll_set(&sink).len(),
        before - 1,
        "the listener would stay ready"
    );
    let mut out = Vec::new();
    sink.on_ready(-1, 0, clock::lab_ns(), &mut out);
    let text = String::from_utf8(out).unwrap();
    assert!(
        text.starts_with("C,s,failed,") && text.contains("no further"),
        "{text}"
    );
}

#[test]
fn an_unestablished_stream_is_not_connected() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // SAFETY: the arguments are plain numbers. The backlog holds one connection; further connections get no
    // answer.
    os::check(unsafe { libc::listen(std::os::fd::AsRawFd::as_raw_fd(&listener), 0) }).unwrap();
    let _first = std::net::TcpStream::connect(address).unwrap();
    let to = json!({"endpoint": "s", "address": "127.0.0.1", "port": address.port()});
    let mut late = role("c", json!({"to": [to], "stop_ns": SECOND_NS}), flow()).unwrap();
    let (mut out, t0) = (Vec::new(), clock::lab_ns());
    late.go(t0);
    late.on_time(t0, &mut out);
    late.on_ready(poll_set(&late)[0].fd, libc::POLLOUT, t0 + 1, &mut out);
    assert!(!late.connected());
}

#[test]
fn refusals_name_value_and_rule() {
    let (_taken, to) = sink();
    let port = &to["port"];
    let refused = |spec: Value, flows: Value| role("x", spec, flows).err().unwrap();
    let text = refused(json!({"listen": port}), json!([]));
    assert!(
        text.contains(&format!("port {port}")) && text.contains("choose another"),
        "{text}"
    );
    let text = refused(json!({"to": [to], "congestion": "magic"}), flow());
    assert!(
        text.contains("\"magic\"") && text.contains("tcp_available_congestion_control"),
        "{text}"
    );
    assert!(text.contains("cubic") || text.contains("reno"), "{text}");
    let udp = |size: usize, rate: u64| json!({"to": [to], "protocol": "udp", "size": size, "rate_bps": rate});
    assert!(refused(udp(1000, 0), flow()).contains("rate_bps: 0"));
    assert!(refused(udp(20, 1000), flow()).contains("size: 20"));
    assert!(refused(json!({"to": [to]}), json!([])).contains("not 1 and 0"));
    assert!(refused(json!({"to": [to], "streams": 0}), flow()).contains("streams: 0"));
}
