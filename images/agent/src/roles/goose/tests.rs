//! Tests frames, the retransmission curve, and roles on loopback.

use super::*;
use crate::roles::testing::{SECOND, by_kind, play_for};
use curve::Curve;
use frame::{Content, Moment, Stream};
use proptest::prelude::*;
use serde_json::{Value, json};

const MS: i64 = 1_000_000;

fn stream() -> Value {
    json!({
        "to": {"group": [1, 12, 205, 1, 0, 1], "appid": 1, "tag": null},
        "gocb_ref": "IED1/LLN0$GO$trip", "conf_rev": 1, "interface": "lo",
    })
}

fn encoded(entries: u32, now: &Moment) -> Vec<u8> {
    let stream: Stream = serde_json::from_value(stream()).unwrap();
    let content = Content {
        dat_set: "IED1/LLN0$trip".into(),
        go_id: "trip".into(),
        entries,
    };
    frame::encode([2; 6], &stream, &content, now)
}

fn curve(retransmit_ms: &[i64], stable_ms: i64, lives_ms: u32) -> Curve {
    Curve {
        retransmit_ns: retransmit_ms.iter().map(|ms| ms * MS).collect(),
        stable_ns: stable_ms * MS,
        time_allowed_to_live_ms: lives_ms,
    }
}

#[test]
fn the_curve_grows_to_its_stable_wait() {
    let curve = curve(&[2, 2, 4], 1000, 0);
    let waits: Vec<i64> = (0..5).map(|copies| curve.wait_ns(copies) / MS).collect();
    assert_eq!(waits, [2, 2, 4, 1000, 1000]);
    assert_eq!(
        [curve.lives_ms(0), curve.lives_ms(2), curve.lives_ms(3)],
        [4, 8, 2000]
    );
    assert_eq!((curve.is_over(3), curve.is_over(4)), (false, true));
}

#[test]
fn a_configured_time_allowed_to_live_is_used() {
    assert_eq!(curve(&[2], 1000, 2500).lives_ms(0), 2500);
    assert!(
        curve(&[0], 1000, 0)
            .check()
            .unwrap_err()
            .contains("an interval of 0 ns")
    );
}

proptest! {
    #[test]
    fn encoded_frames_round_trip(st_num: u32, sq_num: u32, time_allowed_to_live: u32, entries in 1u32..60) {
        let bytes = encoded(entries, &Moment { st_num, sq_num, time_allowed_to_live, changed_ns: 5 });
        let seen = frame::read(&bytes).unwrap();
        prop_assert_eq!((seen.appid, seen.gocb_ref), (1, &b"IED1/LLN0$GO$trip"[..]));
        prop_assert_eq!((seen.st_num, seen.sq_num), (u64::from(st_num), u64::from(sq_num)));
        prop_assert_eq!(seen.time_allowed_to_live, u64::from(time_allowed_to_live));
        prop_assert_eq!(frame::read(&bytes[..bytes.len() - 1]), None);
    }

    #[test]
    fn changed_bytes_are_survived(places in proptest::collection::vec((12usize..120, any::<u8>()), 1..6)) {
        let now = Moment { st_num: 3, sq_num: 4, time_allowed_to_live: 5, changed_ns: 6 };
        let mut bytes = encoded(8, &now);
        for (place, byte) in places {
            bytes[place] = byte;
        }
        let _ = frame::read(&bytes);
    }
}

fn item(endpoint: &str, spec: Value, flows: &[Value], leaves_ns: i64) -> Item {
    let session = json!({"endpoint": endpoint, "connect_ns": 0, "disconnect_ns": leaves_ns, "listens": flows.is_empty()});
    let software = json!({"name": "g", "kind": "goose", "session": session, "spec": spec});
    serde_json::from_value(json!({"software": software, "flows": flows})).unwrap()
}

#[test]
fn events_their_copies_and_the_end_of_a_stream_are_noticed() {
    // SAFETY: no arguments.
    if unsafe { libc::geteuid() } != 0 {
        return; // packet sockets are root's
    }
    let mut publish = stream();
    let more = json!({
        "dat_set": "d", "go_id": "g", "entries": 1,
        "retransmit_ns": [2 * MS, 4 * MS], "stable_ns": 20 * MS, "time_allowed_to_live_ms": 0,
    });
    publish
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let flow = json!({
        "number": 3, "pattern": "push", "payload": {"kind": "dataset", "bytes": 8},
        "schedule": {"kind": "own", "arrivals": "together", "rates": [{"from_ns": 0, "per_s": 20}], "seed": 1},
        "start_ns": 50 * MS, "stop_ns": 150 * MS,
    });
    let mut wanted = stream();
    wanted["flow"] = json!(3);
    wanted["publisher"] = json!("ied");
    let mut roles = [
        arm(item("hmi", json!({"subscribe": [wanted]}), &[], SECOND)).unwrap(),
        arm(item("ied", json!({"publish": publish}), &[flow], 200 * MS)).unwrap(),
    ];
    let (sent, got, sessions) = by_kind(play_for(&mut roles, 400 * MS));
    // There are two events, at 50 and 100 ms; the curve of each has three messages.
    assert_eq!(sent.len(), 2, "{sent:?}");
    assert!(
        sent.iter().all(|line| line.ends_with(",0,3,sent")),
        "{sent:?}"
    );
    for seq in 0..2 {
        let of: Vec<&String> = got
            .iter()
            .filter(|line| line.starts_with(&format!("R,3,{seq},hmi,0,")))
            .collect();
        assert!(
            of.len() >= 4,
            "its curve, and more in the stable state: {of:?}"
        );
        assert!(
            of[0].ends_with(",0") && of[1..].iter().all(|line| line.ends_with(",1")),
            "{of:?}"
        );
    }
    let of_peer: Vec<&String> = sessions
        .iter()
        .filter(|line| line.ends_with(",ied"))
        .collect();
    assert!(of_peer[0].starts_with("C,hmi,connected,"), "{sessions:?}");
    assert!(
        of_peer
            .last()
            .unwrap()
            .contains(",timeAllowedToLive is over,ied"),
        "{sessions:?}"
    );
}
