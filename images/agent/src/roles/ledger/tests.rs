//! Tests messages to several receivers, with events in every order.

use super::*;
use crate::payload::Purpose;
use serde_json::json;

const MS: i64 = 1_000_000;

fn ledger(pattern: &str, receivers: usize) -> Ledger {
    let reply = (pattern == "request").then(|| json!({"kind": "bytes", "bytes": 40}));
    let item = json!({
        "software": {"name": "x", "kind": "x", "session": {"endpoint": "x", "connect_ns": 0, "disconnect_ns": 1000 * MS}, "spec": {}},
        "flows": [{
            "number": 3, "pattern": pattern, "payload": {"kind": "bytes", "bytes": 30}, "reply": reply,
            "schedule": {"kind": "own", "arrivals": "together", "rates": [{"from_ns": 0, "per_s": 100}], "seed": 1},
            "start_ns": 0, "stop_ns": 50 * MS,
        }],
    });
    let item: Item = serde_json::from_value(item).unwrap();
    let session = item.software.session.clone();
    Ledger::new(item, &session, receivers, 20 * MS).unwrap()
}

fn reply(seq: u64) -> Identity {
    let scheduled_ns = seq as i64 * 10 * MS;
    Identity {
        purpose: Purpose::Reply,
        flow: 3,
        seq,
        scheduled_ns,
        reply_bytes: 0,
    }
}

fn text(out: Vec<u8>) -> String {
    String::from_utf8(out).unwrap()
}

#[test]
fn a_push_is_sent_when_the_last_receiver_has_it() {
    let (mut ledger, mut out) = (ledger("push", 2), Vec::new());
    let key = ledger.take_due(0, 0, &mut out).unwrap();
    assert_eq!(ledger.take_due(0, 0, &mut out), None);
    assert_eq!(ledger.deadline(0), Some(10 * MS));
    ledger.taken(&key, 5, &mut out);
    assert!(out.is_empty() && ledger.is_open(&key));
    ledger.taken(&key, 7, &mut out);
    assert_eq!(text(out), "S,3,0,30,0,7,0,1,sent\n");
    assert_eq!((ledger.totals().sent, ledger.totals().pending), (1, 0));
}

#[test]
fn a_request_is_settled_by_the_last_first_reply() {
    let (mut ledger, mut out) = (ledger("request", 2), Vec::new());
    let key = ledger.take_due(0, 0, &mut out).unwrap();
    ledger.taken(&key, 5, &mut out);
    ledger.taken(&key, 5, &mut out);
    assert!(ledger.answered(&reply(0), (1, "b"), 8, &mut out).is_some());
    ledger.answered(&reply(0), (1, "b"), 9, &mut out);
    assert_eq!(ledger.totals().pending, 1, "a copy is no second answer");
    ledger.answered(&reply(0), (0, "a"), 11, &mut out);
    assert_eq!(
        ledger.answered(&reply(1), (0, "a"), 12, &mut out),
        None,
        "not requested yet"
    );
    let lines = [
        "R,3,0,b,1,8,0",
        "R,3,0,b,1,9,0",
        "R,3,0,a,1,11,0",
        "S,3,0,30,0,5,11,1,settled",
        "",
    ];
    assert_eq!(text(out), lines.join("\n"));
    assert_eq!((ledger.totals().settled, ledger.totals().received), (1, 3));
}

#[test]
fn a_request_expires_and_a_late_reply_is_still_recorded() {
    let (mut ledger, mut out) = (ledger("request", 1), Vec::new());
    let key = ledger.take_due(0, 0, &mut out).unwrap();
    ledger.taken(&key, 5, &mut out);
    ledger.take_due(0, 10 * MS, &mut out).unwrap();
    assert!(!ledger.expire(20 * MS - 1, &mut out));
    assert!(ledger.expire(20 * MS, &mut out));
    assert!(!ledger.is_open(&key));
    ledger.answered(&reply(0), (0, "a"), 21 * MS, &mut out);
    ledger.finish(&mut out);
    let lines = [
        "S,3,0,30,0,5,0,1,unsettled",
        "R,3,0,a,1,21000000,0",
        "S,3,1,30,10000000,0,0,0,unsent",
        "",
    ];
    assert_eq!(text(out), lines.join("\n"));
}

/// Returns the record of a push to three receivers: one accepts it at the second attempt, one drops it, one
/// refuses it.
fn record_of_three(order: [usize; 3]) -> (String, u64) {
    let (mut ledger, mut out) = (ledger("push", 3), Vec::new());
    let key = ledger.take_due(0, 0, &mut out).unwrap();
    for receiver in order {
        match receiver {
            0 => {
                ledger.taken_back(&key);
                ledger.taken(&key, 5, &mut out);
            }
            1 => ledger.failed(&key, 1, Outcome::Dropped, &mut out),
            _ => ledger.failed(&key, 2, Outcome::Unsent, &mut out),
        }
    }
    (text(out), ledger.totals().sent)
}

#[test]
fn the_worst_receiver_decides_and_their_order_does_not() {
    let orders = [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ];
    for order in orders {
        let record = ("S,3,0,30,0,5,0,2,dropped\n".to_owned(), 1);
        assert_eq!(record_of_three(order), record, "{order:?}");
    }
}
