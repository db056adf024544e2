//! Tests the state machine with hand-written frames, whole and cut at any byte.

use super::*;
use proptest::prelude::*;
use serde_json::json;

const NOW: i64 = 1_000;

fn spec(publish: bool, consume: bool) -> Spec {
    let exchange = json!({"name": "m", "type": "topic", "durable": true});
    serde_json::from_value(json!({
        "broker": "127.0.0.1", "port": 5672, "vhost": "/", "user": "guest", "password": "guest",
        "heartbeat_s": 4, "reconnect_ns": SECOND,
        "publish": publish.then(|| json!({
            "exchange": exchange, "key": "k.1", "persistent": true, "confirms": true, "inflight": 5, "queue": 9,
        })),
        "consume": consume.then(|| json!({
            "exchange": exchange, "keys": ["k.#", "l"], "queue": "q", "durable": true, "prefetch": 7,
            "acknowledge": true,
        })),
    }))
    .unwrap()
}

/// Encodes a method as the broker sends it.
fn method(channel: u16, class: u16, id: u16, arguments: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_frame(&mut out, METHOD, channel, |out| {
        out.extend_from_slice(&class.to_be_bytes());
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(arguments);
    });
    out
}

/// Returns the broker's answers up to `Ready`, in order.
fn welcome(publish: bool, consume: bool) -> Vec<u8> {
    let mut all = method(
        0,
        10,
        10,
        b"\x00\x09\x00\x00\x00\x00\x00\x00\x00\x0ePLAIN AMQPLAIN\x00\x00\x00\x05en_US",
    );
    all.extend(method(0, 10, 30, b"\x07\xff\x00\x00\x10\x00\x00\x3c")); // frames of at most 4096 bytes
    all.extend(method(0, 10, 41, b"\x00"));
    all.extend(method(1, 20, 11, b"\x00\x00\x00\x00"));
    if consume {
        all.extend(method(1, 40, 11, b""));
        all.extend(method(1, 50, 11, b"\x01q\x00\x00\x00\x00\x00\x00\x00\x00"));
        all.extend(method(1, 50, 21, b""));
        all.extend(method(1, 50, 21, b""));
        all.extend(method(1, 60, 11, b""));
        all.extend(method(1, 60, 21, b"\x01t"));
    }
    if publish {
        all.extend(method(1, 40, 11, b""));
        all.extend(method(1, 85, 11, b""));
    }
    all
}

fn delivery(tag: u64, redelivered: bool, body: &[u8], pieces: usize) -> Vec<u8> {
    let arguments = [
        b"\x01t",
        &tag.to_be_bytes()[..],
        &[u8::from(redelivered)],
        b"\x01m\x01k",
    ]
    .concat();
    let mut all = method(1, 60, 60, &arguments);
    put_frame(&mut all, HEADER, 1, |out| {
        out.extend_from_slice(&[0, 60, 0, 0]);
        out.extend_from_slice(&(body.len() as u64).to_be_bytes());
        out.extend_from_slice(&[0, 0]);
    });
    for piece in body.chunks(body.len().div_ceil(pieces).max(1)) {
        put_frame(&mut all, BODY, 1, |out| out.extend_from_slice(piece));
    }
    all
}

/// Returns a connection that is ready and whose output is empty.
fn ready(publish: bool, consume: bool) -> Connection {
    let (mut amqp, mut events) = (Connection::new(spec(publish, consume), NOW), Vec::new());
    amqp.receive(&welcome(publish, consume), NOW, &mut events);
    assert_eq!(events.last(), Some(&Event::Ready), "{events:?}");
    amqp.output.clear();
    amqp
}

/// Returns class and method numbers of each method frame in `bytes`.
fn sent_methods(mut bytes: &[u8]) -> Vec<(u16, u16)> {
    let mut found = Vec::new();
    while let Some((frame, size)) = wire::frame(bytes, 1 << 20).unwrap() {
        if frame.kind == METHOD {
            let mut fields = wire::Fields(frame.payload);
            found.push((fields.short().unwrap(), fields.short().unwrap()));
        }
        bytes = &bytes[size..];
    }
    found
}

#[test]
fn requests_the_setup_in_order() {
    let mut amqp = Connection::new(spec(true, true), NOW);
    assert_eq!(amqp.output, GREETING);
    amqp.output.clear();
    let mut events = Vec::new();
    amqp.receive(&welcome(true, true), NOW, &mut events);
    assert_eq!(events, [Event::Connected, Event::Subscribed, Event::Ready]);
    let request = [
        (10, 11),
        (10, 31),
        (10, 40),
        (20, 10),
        (40, 10),
        (50, 10),
        (50, 20),
        (50, 20),
        (60, 10),
        (60, 20),
        (40, 10),
        (85, 10),
    ];
    assert_eq!(sent_methods(&amqp.output), request);
}

#[test]
fn a_message_is_cut_to_the_brokers_frames_and_confirmed_by_number() {
    let mut amqp = ready(true, false);
    assert_eq!(amqp.publish(&[7; 100]), Some(1));
    assert_eq!(amqp.publish(&[7; 5000]), Some(2));
    let (mut bodies, mut rest) = (Vec::new(), amqp.output.as_slice());
    while let Some((frame, size)) = wire::frame(rest, 4096).unwrap() {
        if frame.kind == BODY {
            bodies.push(size);
        }
        rest = &rest[size..];
    }
    assert_eq!(bodies, [108, 4096, 5000 - 4088 + 8]);
    let mut events = Vec::new();
    amqp.receive(
        &method(1, 60, 80, b"\x00\x00\x00\x00\x00\x00\x00\x02\x01"),
        NOW,
        &mut events,
    );
    amqp.receive(
        &method(1, 60, 120, b"\x00\x00\x00\x00\x00\x00\x00\x03\x00"),
        NOW,
        &mut events,
    );
    let confirmed = |tag, multiple, taken| Event::Confirmed {
        tag,
        multiple,
        taken,
    };
    assert_eq!(
        events,
        [confirmed(2, true, true), confirmed(3, false, false)]
    );
}

#[test]
fn silence_of_two_intervals_ends_the_connection_and_half_of_one_makes_us_speak() {
    let mut amqp = ready(true, false);
    let mut events = Vec::new();
    assert_eq!(amqp.deadline(), Some(NOW + 2 * SECOND));
    amqp.on_time(NOW + 2 * SECOND, &mut events);
    assert_eq!(amqp.output, [8, 0, 0, 0, 0, 0, 0, 0xce]);
    amqp.on_time(NOW + 8 * SECOND, &mut events);
    assert_eq!(events, [Event::Closed("no heartbeat in time".to_owned())]);
    assert_eq!(amqp.deadline(), None);
}

#[test]
fn answers_and_reports_a_close_by_the_broker() {
    for (channel, ids, answer) in [
        (0, (10, 50), vec![(10, 51)]),
        (1, (20, 40), vec![(20, 41), (10, 50)]),
    ] {
        let (mut amqp, mut events) = (ready(true, false), Vec::new());
        let why = b"\x01\x94\x09NOT_FOUND\x00\x3c\x00\x28";
        amqp.receive(&method(channel, ids.0, ids.1, why), NOW, &mut events);
        assert!(
            matches!(&events[..], [Event::Closed(text)] if text.contains("404 NOT_FOUND")),
            "{events:?}"
        );
        assert_eq!(sent_methods(&amqp.output), answer);
    }
}

#[test]
fn reports_bytes_that_are_not_amqp() {
    for bytes in [
        &b"HTTP/1.1 400 Bad Request\r\n"[..],
        b"AMQP\x00\x00\x09\x01",
        &method(0, 10, 30, b""),
    ] {
        let (mut amqp, mut events) = (Connection::new(spec(true, true), NOW), Vec::new());
        amqp.receive(bytes, NOW, &mut events);
        assert!(matches!(&events[..], [Event::Closed(_)]), "{events:?}");
    }
}

proptest! {
    #[test]
    fn cuts_change_nothing(cuts in prop::collection::vec(1usize..200, 1..80), pieces in 1usize..4, size in 0usize..900) {
        let mut all = welcome(true, true);
        all.extend(delivery(5, true, &vec![3; size], pieces));
        all.extend(delivery(6, false, b"x", 1));
        let (mut amqp, mut events) = (Connection::new(spec(true, true), NOW), Vec::new());
        let (mut rest, mut cuts) = (all.as_slice(), cuts.into_iter().cycle());
        while !rest.is_empty() {
            let (now, later) = rest.split_at(cuts.next().unwrap().min(rest.len()));
            amqp.receive(now, NOW, &mut events);
            rest = later;
        }
        let message = |redelivered, body: &[u8]| Event::Message { redelivered, body: body.to_vec() };
        prop_assert_eq!(&events[..3], &[Event::Connected, Event::Subscribed, Event::Ready]);
        prop_assert_eq!(&events[3..], &[message(true, &vec![3; size]), message(false, b"x")]);
        let acknowledged: Vec<_> = sent_methods(&amqp.output[GREETING.len()..]).into_iter().filter(|ids| *ids == (60, 80)).collect();
        prop_assert_eq!(acknowledged.len(), 2);
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..400), begun: bool) {
        let mut amqp = if begun { ready(true, true) } else { Connection::new(spec(true, true), NOW) };
        amqp.receive(&bytes, NOW, &mut Vec::new());
    }

    #[test]
    fn any_method_is_survived(channel in 0u16..2, class in 0u16..100, id in 0u16..130,
                              arguments in prop::collection::vec(any::<u8>(), 0..60)) {
        let mut amqp = ready(true, true);
        amqp.receive(&method(channel, class, id, &arguments), NOW, &mut Vec::new());
    }
}
