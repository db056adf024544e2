//! Tests each rule by a line that breaks it. `@17` in a line stands for 17 ms in nanoseconds.

use super::super::times::OUTCOMES;
use super::*;
use crate::proto::Flow;
use proptest::prelude::*;

const MS: i64 = 1_000_000;
const NOW: i64 = 5000 * MS;

fn flow(number: u32, pattern: &str, schedule: bool, stop_ms: i64) -> (u32, Sent) {
    let rates = serde_json::json!([{"from_ns": 0, "per_s": 100.0}]);
    let schedule = schedule.then(
        || serde_json::json!({"kind": "own", "arrivals": "together", "seed": 1, "rates": rates}),
    );
    let flow = serde_json::json!({
        "number": number, "pattern": pattern, "payload": {"kind": "own", "bytes": 100}, "schedule": schedule,
        "start_ns": 0, "stop_ns": stop_ms * MS, "reply": null,
    });
    let flow: Flow = serde_json::from_value(flow).unwrap();
    (number, Sent::new(flow, vec!["far".to_owned()]))
}

/// The rules of a program: flow 3 has messages at 1000, 1010 and 1020 ms, flow 4 a request at 1000 ms; flow 5
/// is greedy, flow 6 lasts beyond NOW.
fn rules() -> Rules {
    let sends = BTreeMap::from([
        flow(3, "push", true, 30),
        flow(4, "request", true, 10),
        flow(5, "push", false, 9000),
        flow(6, "push", true, 9000),
    ]);
    let mut rules = Rules::new("me".to_owned(), sends, BTreeSet::from([7]), 500 * MS);
    rules.set_t0(Some(1000 * MS));
    rules
}

/// Replaces fields such as `@17` (17 ms) by nanoseconds.
fn line(text: &str) -> String {
    let field = |field: &str| match field.strip_prefix('@') {
        Some(ms) => (ms.parse::<i64>().unwrap() * MS).to_string(),
        None => field.to_owned(),
    };
    text.split(',').map(field).collect::<Vec<_>>().join(",")
}

#[test]
fn records_of_the_contract_are_taken() {
    let mut rules = rules();
    for text in [
        "S,3,0,100,@1000,@1001,0,1,sent",
        "S,3,2,100,@1020,0,0,0,unsent",
        "S,3,1,100,@1010,0,0,0,dropped",
        "S,4,0,100,@1000,@1001,@1002,2,settled",
        "S,5,1,100,@4000,@4000,0,1,unsettled",
        "S,5,0,100,@1000,@1000,0,1,sent",
        "S,6,399,100,@4990,@5000,0,1,sent",
        "R,7,0,me,0,@1005,0",
        "R,4,0,far,1,@1005,1",
        "C,me,connected,@505,",
        "C,me,failed,@1005,\"no, \"\"never\"\"\"",
        "P,me,read,7,0,@1005,20",
        "P,me,write,3,0,@1005,0",
        "P,me,garbage-collection,,,@900,3",
    ] {
        assert_eq!(rules.check(&line(text), NOW), Ok(()), "{text}");
    }
}

#[test]
fn each_other_line_breaks_a_rule_of_its_own() {
    for (text, rule) in [
        ("hello", "does not begin with S, R, C or P"),
        ("", "does not begin with S, R, C or P"),
        ("B,3,me,0,1000,1,,,,", "does not begin with S, R, C or P"),
        ("D,3,0,1,missing", "does not begin with S, R, C or P"),
        ("S,3,0,100", "has 4 fields"),
        (
            "S,x,0,100,@1000,@1001,0,1,sent",
            "flow is not a whole number",
        ),
        (
            "S,3,-1,100,@1000,@1001,0,1,sent",
            "seq is not a whole number",
        ),
        ("S,3,0,1e2,@1000,@1001,0,1,sent", "bytes is not a whole"),
        (
            "S,3,0,100,@999,@1001,0,1,sent",
            "scheduled_ns is before t0_ns, 1000000000",
        ),
        // The line hides lateness (coordinated omission): it gives the time of sending as the due time.
        (
            "S,3,0,100,@1001,@1001,0,1,sent",
            "not when the message was due, 1000000000",
        ),
        (
            "S,3,0,100,@1010,@1010,0,1,sent",
            "not when the message was due, 1000000000",
        ),
        (
            "S,3,3,100,@1030,@1031,0,1,sent",
            "flow 3: there is no seq 3: the flow has 3 messages, counted from 0",
        ),
        ("S,3,100000,100,@1000,@1001,0,1,sent", "no seq 100000"),
        (
            "S,6,401,100,@5010,@5010,0,1,sent",
            "scheduled_ns is after now, 5000000000",
        ),
        (
            "S,6,401,100,@5000,@5000,0,1,sent",
            "flow 6: message 401 is not due yet",
        ),
        (
            "S,5,70000,100,@1000,@1001,0,1,sent",
            "more than 65536 beyond 0",
        ),
        ("S,3,0,100,@1000,@999,0,1,sent", "sent_ns is before t0_ns"),
        ("S,3,1,100,@1010,@1009,0,1,sent", "sent_ns is earlier"),
        (
            "S,3,0,100,@1000,@5001,0,1,sent",
            "sent_ns is after now, 5000000000",
        ),
        (
            "S,3,0,100,@1000,@1002,@1001,1,settled",
            "settled_ns is earlier",
        ),
        (
            "S,3,0,100,@1000,@1001,@5001,1,settled",
            "settled_ns is after now",
        ),
        (
            "S,3,0,100,@1000,@1001,0,1,settled",
            "is settled and has no settled_ns",
        ),
        (
            "S,3,0,100,@1000,0,@1001,0,settled",
            "is settled and has no sent_ns",
        ),
        ("S,3,0,100,@1000,0,0,0,sent", "is sent and has no sent_ns"),
        (
            "S,3,0,100,@1000,@1001,@1002,1,sent",
            "is sent and has a settled_ns",
        ),
        (
            "S,3,0,100,@1000,0,0,0,unsettled",
            "is unsettled and has no sent_ns",
        ),
        (
            "S,3,0,100,@1000,@1001,@1002,1,unsettled",
            "is unsettled and has a settled_ns",
        ),
        (
            "S,3,0,100,@1000,@1001,0,1,unsent",
            "is unsent and has a sent_ns",
        ),
        (
            "S,3,0,100,@1000,0,@1001,0,unsent",
            "is unsent and has a settled_ns",
        ),
        (
            "S,3,0,100,@1000,@1001,0,1,dropped",
            "is dropped and has a sent_ns",
        ),
        (
            "S,3,0,100,@1000,0,0,1,unsent",
            "attempts is 1, and sent_ns is 0",
        ),
        (
            "S,3,0,100,@1000,@1001,0,0,sent",
            "attempts is 0, and sent_ns is not",
        ),
        ("S,3,0,100,@1000,@1001,0,1,gone", "outcome is not one of"),
        (
            "S,5,0,100,@10000,@10000,0,1,sent",
            "scheduled_ns is after now",
        ),
        (
            "S,7,0,100,@1000,@1001,0,1,sent",
            "not sent by this software",
        ),
        ("R,3,0,me,0,@1005,0", "does not come here; 7 do"),
        ("R,7,0,far,0,@1005,0", "endpoint, me"),
        ("R,7,0,me,2,@1005,0", "leg is neither"),
        ("R,7,0,me,0,@1005,yes", "copy is neither"),
        ("R,7,0,me,0,@999,0", "received_ns is before t0_ns"),
        ("R,7,0,me,0,@5001,0", "received_ns is after now"),
        ("R,3,0,far,1,@1005,0", "requests no reply"),
        ("R,4,0,me,1,@1005,0", "not one of flow 4's receivers: far"),
        ("R,4,1,far,1,@1005,0", "no seq 1"),
        (
            "R,6,2,far,1,@1005,0",
            "received_ns is earlier than when the request was due, 1020000000",
        ),
        ("C,far,connected,@1000,", "not this software's"),
        ("C,me,born,@1000,", "what is not one of"),
        ("C,me,failed,@1000,a,b", "is not quoted"),
        (
            "C,me,connected,1795338,",
            "t_ns is before the program was started, 500000000",
        ),
        ("C,me,connected,@5001,", "t_ns is after now"),
        ("P,me,read,7,0,@1005", "has 6 fields"),
        ("P,far,read,7,0,@1005,1", "not this software's"),
        ("P,me,Read it,7,0,@1005,1", "not a word"),
        ("P,me,read,9,0,@1005,1", "flow 9 is not sent"),
        ("P,me,read,7,,@1005,1", "seq is not a whole number"),
        ("P,me,read,3,3,@1005,1", "no seq 3"),
        (
            "P,me,read,7,0,@1005,-1",
            "duration_ns is not a whole number",
        ),
        (
            "P,me,read,7,0,@400,1",
            "t_ns is before the program was started",
        ),
        (
            "P,me,read,7,0,@4000,@1003",
            "t_ns + duration_ns is after now",
        ),
        (
            "P,me,read,7,0,@4000,9223372036854775807",
            "t_ns + duration_ns is after now",
        ),
    ] {
        let text = line(text);
        let fault = rules().check(&text, NOW).expect_err(&text);
        assert!(fault.contains(rule), "{text}: {fault}");
    }
}

#[test]
fn a_message_has_one_s_record_and_missing_ones_are_listed() {
    let mut rules = rules();
    let good = line("S,3,1,100,@1010,0,0,0,unsent");
    assert_eq!(rules.outstanding(999 * MS), 0);
    assert_eq!(rules.outstanding(1010 * MS), 2 + 1 + 2);
    assert_eq!(rules.check(&good, NOW), Ok(()));
    let fault = rules.check(&good, NOW).expect_err("two");
    assert!(fault.contains("has its S record already"));
    let late = line("S,3,2,100,@1021,@1021,0,1,sent");
    rules.check(&late, NOW).expect_err("not when it was due");
    assert_eq!(rules.outstanding(1010 * MS), 4 - 1); // the refused line was about a later message
    assert_eq!(rules.outstanding(1020 * MS), 1 + 1 + 3);
    assert_eq!(
        rules.missing(1020 * MS),
        "D,3,0,0,missing\nD,3,2,2,refused\nD,4,0,0,missing\nD,6,0,2,missing\n"
    );
    let mended = line("S,3,2,100,@1020,@1021,0,1,sent");
    assert_eq!(rules.check(&mended, NOW), Ok(()));
    assert!(
        rules
            .missing(1020 * MS)
            .starts_with("D,3,0,0,missing\nD,4,")
    );
}

proptest! {
    /// An accepted record has possible times: due by the schedule, then sent, then settled, then written.
    #[test]
    fn accepted_records_are_possible(
        seq in 0u64..5, scheduled in 990i64..1030, sent in 990i64..1030, settled in 990i64..1030,
        never in (any::<bool>(), any::<bool>()), attempts in 0u64..3, outcome in 0usize..5, now in 995i64..1030,
    ) {
        let outcome = OUTCOMES[outcome];
        let sent = if never.0 { 0 } else { sent * MS };
        let settled = if never.1 { 0 } else { settled * MS };
        let text = format!("S,3,{seq},1,{},{sent},{settled},{attempts},{outcome}", scheduled * MS);
        let possible = seq < 3
            && scheduled == 1000 + 10 * seq as i64
            && (sent == 0 || sent >= scheduled * MS)
            && (settled == 0 || settled >= sent.max(1))
            && [scheduled * MS, sent, settled].iter().all(|at| *at <= now * MS)
            && (sent != 0) == ["settled", "sent", "unsettled"].contains(&outcome)
            && (settled != 0) == (outcome == "settled")
            && (sent != 0) == (attempts != 0);
        prop_assert_eq!(rules().check(&text, now * MS).is_ok(), possible, "{}", text);
    }

    /// In any order of records, the ranges of `missing` are the messages without a record.
    #[test]
    fn missing_ranges_are_the_messages_without_a_record(order in Just((0u64..50).collect::<Vec<_>>()).prop_shuffle(), written in 0usize..50) {
        let mut rules = rules();
        for seq in &order[..written] {
            let due = 1000 * MS + *seq as i64 * 10 * MS;
            prop_assert_eq!(rules.check(&format!("S,6,{seq},1,{due},{due},0,1,sent"), NOW), Ok(()));
        }
        let (_, mut flow) = flow(6, "push", true, 9000);
        std::mem::swap(&mut flow, rules.sends.get_mut(&6).unwrap());
        let found: Vec<u64> = flow.missing(490 * MS).iter().flat_map(|range| range.from..=range.to).collect();
        let mut missing = order[written..].to_vec();
        missing.sort_unstable();
        prop_assert_eq!(flow.outstanding(490 * MS), missing.len() as u64);
        prop_assert_eq!(found, missing);
    }
}
