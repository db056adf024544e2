//! Tests frames, and roles on loopback.

use super::*;
use crate::roles::testing::{SECOND, by_kind, play_for};
use frame::{Content, Dataset, Stream, Template};
use proptest::prelude::*;
use serde_json::{Value, json};

fn stream(sv_id: &str, rate: u32, asdus: u32) -> Value {
    json!({
        "to": {"group": [1, 12, 205, 4, 0, 1], "appid": 0x4001, "tag": null},
        "sv_id": sv_id, "conf_rev": 1, "rate": rate, "asdus": asdus,
    })
}

fn template(rate: u32, asdus: u32, dataset: Dataset, signals: u32) -> Template {
    let stream: Stream = serde_json::from_value(stream("MU01", rate, asdus)).unwrap();
    let content = Content {
        smp_synch: 2,
        dataset,
        signals,
        frequency: 50,
    };
    Template::new([2; 6], &stream, &content)
}

#[test]
fn the_frame_is_that_of_the_guideline() {
    let mut template = template(4000, 1, Dataset::Phsmeas, 8);
    let bytes = template.fill(4001);
    assert_eq!(
        bytes[..22],
        [
            1, 12, 205, 4, 0, 1, 2, 2, 2, 2, 2, 2, 0x88, 0xba, 0x40, 1, 0, 102, 0, 0, 0, 0,
        ]
    );
    let head = [
        0x60, 92, 0x80, 1, 1, 0xa2, 87, 0x30, 85, 0x80, 4, b'M', b'U', b'0', b'1', 0x82, 2, 0, 1,
        0x83, 4, 0, 0, 0, 1, 0x85, 1, 2, 0x87, 64,
    ];
    assert_eq!(bytes[22..52], head);
    assert_eq!(bytes.len(), 52 + 64);
    // The second of 80 samples of a cycle has sin(2 pi / 80) of the peak.
    let expected = (141_421.0 * (std::f64::consts::TAU / 80.0).sin()).round() as i32;
    assert_eq!(bytes[52..56], expected.to_be_bytes());
}

#[test]
fn ten_signals_take_the_bytes_that_reserve_printed() {
    let stream: Stream = serde_json::from_value(stream("0123456789", 100, 1)).unwrap();
    let content = Content {
        smp_synch: 0,
        dataset: Dataset::Float32,
        signals: 10,
        frequency: 50,
    };
    // Deliverable D4.6, table 5: 14 bytes of Ethernet, 44 of SV, and 40 of payload.
    assert_eq!(Template::new([2; 6], &stream, &content).fill(0).len(), 98);
}

#[test]
fn other_frames_are_not_ours() {
    let whole = template(4000, 2, Dataset::Phsmeas, 8).fill(0).to_vec();
    assert!(frame::read(&whole).is_some());
    for cut in 0..whole.len() {
        assert_eq!(frame::read(&whole[..cut]), None, "{cut}");
    }
    let mut two = whole.clone();
    let second = two.windows(4).rposition(|w| w == [0x82, 2, 0, 1]).unwrap();
    two[second + 3] = 9;
    assert_eq!(
        frame::read(&two),
        None,
        "samples that do not follow one another"
    );
}

proptest! {
    #[test]
    fn filled_frames_round_trip(asdus in 1u32..9, frames in 1u32..2000, seq in 0u64..1 << 40, signals in 1u32..40) {
        let rate = asdus * frames;
        let mut template = template(rate, asdus, Dataset::Float32, signals);
        let seen = frame::read(template.fill(seq)).unwrap();
        let first = (seq * u64::from(asdus) % u64::from(rate)) as u32;
        prop_assert_eq!((seen.appid, seen.sv_id, seen.conf_rev), (0x4001, &b"MU01"[..], 1));
        prop_assert_eq!((seen.first, seen.asdus), (first, asdus));
    }

    #[test]
    fn changed_bytes_are_survived(places in proptest::collection::vec((12usize..150, any::<u8>()), 1..6)) {
        let mut bytes = template(4000, 2, Dataset::Phsmeas, 8).fill(5).to_vec();
        for (place, byte) in places {
            bytes[place] = byte;
        }
        let _ = frame::read(&bytes);
    }
}

fn item(endpoint: &str, spec: Value, flows: &[Value]) -> Item {
    let session = json!({"endpoint": endpoint, "connect_ns": 0, "disconnect_ns": 60 * SECOND, "listens": flows.is_empty()});
    let software = json!({"name": "s", "kind": "sampled-values", "session": session, "spec": spec});
    serde_json::from_value(json!({"software": software, "flows": flows})).unwrap()
}

fn publisher(rate: u32, start_ns: i64) -> Item {
    let mut publish = stream("MU01", rate, 2);
    publish["smp_synch"] = json!(2);
    publish["dataset"] = json!("phsmeas");
    publish["signals"] = json!(8);
    publish["frequency"] = json!(50);
    let flow = json!({
        "number": 3, "pattern": "stream", "payload": {"kind": "samples", "bytes": 128},
        "schedule": {"kind": "own", "arrivals": "together", "rates": [{"from_ns": 0, "per_s": rate / 2}], "seed": 1},
        "start_ns": start_ns, "stop_ns": start_ns + SECOND / 10,
    });
    publish["interface"] = json!("lo");
    item("mu", json!({"publish": publish}), &[flow])
}

fn subscriber() -> Item {
    let mut wanted = stream("MU01", 4000, 2);
    wanted["flow"] = json!(3);
    wanted["start_ns"] = json!(0);
    wanted["interface"] = json!("lo");
    item("ied", json!({"subscribe": [wanted]}), &[])
}

#[test]
fn every_frame_is_accounted_for() {
    // SAFETY: no arguments.
    if unsafe { libc::geteuid() } != 0 {
        return; // packet sockets are root's
    }
    let mut roles = [arm(subscriber()).unwrap(), arm(publisher(4000, 0)).unwrap()];
    let (sent, got, sessions) = by_kind(play_for(&mut roles, SECOND / 4));
    assert_eq!(sent.len(), 200);
    assert!(
        sent.iter().all(|line| line.ends_with(",0,1,sent")),
        "{sent:?}"
    );
    let numbers = |lines: &[String]| -> Vec<u64> {
        lines
            .iter()
            .map(|line| line.split(',').nth(2).unwrap().parse().unwrap())
            .collect()
    };
    assert_eq!(numbers(&sent), Vec::from_iter(0..200));
    assert_eq!(numbers(&got), Vec::from_iter(0..200));
    assert_eq!(sessions.len(), 4, "{sessions:?}");
    assert_eq!(roles[0].totals().received, 200);
}

#[test]
fn refusals_name_value_and_rule() {
    let refused = |item: Item| arm(item).err().unwrap();
    assert!(refused(publisher(70_000, 0)).contains("smpCnt cannot count"));
    assert!(refused(publisher(4001, 0)).contains("4001 samples a second in frames of 2"));
    assert!(refused(publisher(4000, 5)).contains("smpCnt begins with a second"));
    let mut elsewhere = publisher(4000, 0);
    elsewhere.software.spec["publish"]["interface"] = json!("eth77");
    let text = refused(elsewhere);
    assert!(text.contains("eth77") || text.contains("root"), "{text}");
}
