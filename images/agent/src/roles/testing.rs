//! What tests of several roles have in common.

use serde_json::{Value, json};

pub const SECOND: i64 = 1_000_000_000;

/// Twenty messages in a tenth of a second.
pub fn flow(pattern: &str, bytes: usize, reply: Option<usize>) -> Value {
    json!({
        "number": 4, "pattern": pattern, "payload": {"kind": "bytes", "bytes": bytes},
        "reply": reply.map(|bytes| json!({"kind": "bytes", "bytes": bytes})),
        "schedule": {"kind": "own", "rates": [{"from_ns": 0, "per_s": 200}], "seed": 1},
        "start_ns": 0, "stop_ns": SECOND / 10,
    })
}

/// Records of messages sent and received, and of sessions.
pub fn by_kind(records: Vec<u8>) -> (Vec<String>, Vec<String>, Vec<String>) {
    let text = String::from_utf8(records).unwrap();
    let of = |kind: &str| {
        let lines = text.lines().filter(|line| line.starts_with(kind));
        lines.map(str::to_owned).collect()
    };
    (of("S"), of("R"), of("C"))
}
