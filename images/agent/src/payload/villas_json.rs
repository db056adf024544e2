//! Encodes and decodes the payload `villas-json`: a sample in VILLASnode's JSON format (its
//! `lib/formats/json.cpp`), plus the member `flow`.
//!
//! Spaces pad numbers to a fixed width, which JSON allows between tokens, so that the length depends only
//! on the number of signals. VILLASnode's reader ignores `flow`.

use super::signals::{self, DIGITS};
use super::{Identity, Payload, Purpose};
use std::io::Write;
use std::ops::Range;

const HEAD: &str = "[{\"ts\": {\"origin\": [";
const NEXT: &str = ", ";
const SEQ: &str = "]}, \"sequence\": ";
const FLOW: &str = ", \"flow\": ";
const DATA: &str = ", \"data\": [";
const END: &str = "]}]";
const WIDTH: usize = 10; // digits of seconds, sequence and flow
const NSEC_WIDTH: usize = 9;
const VALUE_WIDTH: usize = 2 + DIGITS; // with "0."

const SEC_AT: usize = HEAD.len();
const NSEC_AT: usize = SEC_AT + WIDTH + NEXT.len();
const SEQ_AT: usize = NSEC_AT + NSEC_WIDTH + SEQ.len();
const FLOW_AT: usize = SEQ_AT + WIDTH + FLOW.len();
const DATA_AT: usize = FLOW_AT + WIDTH + DATA.len();
/// The literal texts between the numbers, with their positions.
const LITERALS: [(usize, &str); 5] = [
    (0, HEAD),
    (SEC_AT + WIDTH, NEXT),
    (NSEC_AT + NSEC_WIDTH, SEQ),
    (SEQ_AT + WIDTH, FLOW),
    (FLOW_AT + WIDTH, DATA),
];

pub struct VillasJson;

impl Payload for VillasJson {
    fn smallest(&self) -> usize {
        DATA_AT + VALUE_WIDTH + END.len()
    }

    fn step(&self) -> usize {
        NEXT.len() + VALUE_WIDTH
    }

    fn largest(&self) -> usize {
        self.smallest() + (signals::MOST - 1) * self.step()
    }

    fn write(&self, identity: &Identity, bytes: usize, out: &mut Vec<u8>) {
        let Identity { flow, seq, .. } = identity;
        let (sec, nsec) = identity.due();
        out.reserve(bytes);
        // Writing to memory cannot fail.
        write!(
            out,
            "{HEAD}{sec:WIDTH$}{NEXT}{nsec:NSEC_WIDTH$}{SEQ}{seq:WIDTH$}{FLOW}{flow:WIDTH$}{DATA}"
        )
        .expect("memory");
        for index in 0..self.count(bytes) {
            let between = if index == 0 { "" } else { NEXT };
            let fraction = signals::fraction(*seq, index);
            write!(out, "{between}0.{fraction:0DIGITS$}").expect("memory");
        }
        out.extend_from_slice(END.as_bytes());
    }

    fn read(&self, payload: &[u8]) -> Option<Identity> {
        let stands = |(at, text): (usize, &str)| payload.get(at..)?.strip_prefix(text.as_bytes());
        if !(LITERALS
            .into_iter()
            .all(|literal| stands(literal).is_some()))
        {
            return None;
        }
        let number = |at: Range<usize>| {
            let text = std::str::from_utf8(payload.get(at)?).ok()?;
            text.trim_start().parse::<u64>().ok()
        };
        let sec = number(SEC_AT..SEC_AT + WIDTH)?;
        let nsec = number(NSEC_AT..NSEC_AT + NSEC_WIDTH)?;
        Some(Identity {
            purpose: Purpose::Other,
            flow: number(FLOW_AT..FLOW_AT + WIDTH)?.try_into().ok()?,
            seq: number(SEQ_AT..SEQ_AT + WIDTH)?,
            scheduled_ns: super::joined(sec, nsec)?,
            reply_bytes: 0,
        })
    }
}
