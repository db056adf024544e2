//! Encodes and decodes GOOSE frames (IEC 61850-8-1).

use crate::roles::iec61850::{self, Destination, ber};
use serde::Deserialize;

pub const ETHERTYPE: u16 = 0x88b8;

/// The fields that identify a stream, the same on both sides.
#[derive(Debug, Clone, Deserialize)]
pub struct Stream {
    pub to: Destination,
    pub gocb_ref: String,
    pub conf_rev: u32,
}

/// The further constant fields that the publisher sets.
#[derive(Debug, Clone, Deserialize)]
pub struct Content {
    pub dat_set: String,
    pub go_id: String,
    /// Number of pairs of a state and its quality.
    pub entries: u32,
}

/// The fields that differ in each message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    pub st_num: u32,
    pub sq_num: u32,
    /// The time, in milliseconds, within which the next message must arrive.
    pub time_allowed_to_live: u32,
    /// The time of the last change of the state, in Unix nanoseconds.
    pub changed_ns: i64,
}

/// Encodes a frame from MAC address `own`. The states of all entries toggle with each stNum.
pub fn encode(own: [u8; 6], stream: &Stream, content: &Content, now: &Moment) -> Vec<u8> {
    let mut pdu = Vec::new();
    ber::push(&mut pdu, 0x80, stream.gocb_ref.as_bytes());
    ber::push_unsigned(&mut pdu, 0x81, now.time_allowed_to_live);
    ber::push(&mut pdu, 0x82, content.dat_set.as_bytes());
    ber::push(&mut pdu, 0x83, content.go_id.as_bytes());
    ber::push(&mut pdu, 0x84, &utc_time(now.changed_ns));
    ber::push_unsigned(&mut pdu, 0x85, now.st_num);
    ber::push_unsigned(&mut pdu, 0x86, now.sq_num);
    ber::push(&mut pdu, 0x87, &[0]); // simulation
    ber::push_unsigned(&mut pdu, 0x88, stream.conf_rev);
    ber::push(&mut pdu, 0x89, &[0]); // ndsCom
    ber::push_unsigned(&mut pdu, 0x8a, 2 * content.entries);
    let state = u8::from(now.st_num.is_multiple_of(2));
    let mut data = Vec::new();
    for _ in 0..content.entries {
        ber::push(&mut data, 0x83, &[state]);
        ber::push(&mut data, 0x84, &[3, 0, 0]); // quality: 13 bits, so 3 of the last byte do not count
    }
    ber::push(&mut pdu, 0xab, &data);
    let mut apdu = Vec::new();
    ber::push(&mut apdu, 0x61, &pdu);
    iec61850::frame(own, &stream.to, ETHERTYPE, &apdu)
}

/// Encodes a UtcTime: seconds, a 24-bit fraction, and the accuracy, 10 bits of the fraction (1 ms).
fn utc_time(ns: i64) -> [u8; 8] {
    let (seconds, rest) = (ns.div_euclid(1_000_000_000), ns.rem_euclid(1_000_000_000));
    let fraction = ((rest << 24) / 1_000_000_000) as u32;
    let mut out = [0; 8];
    out[..4].copy_from_slice(&(seconds as u32).to_be_bytes());
    out[4..7].copy_from_slice(&fraction.to_be_bytes()[1..]);
    out[7] = 10;
    out
}

/// The fields of a received message.
#[derive(Debug, PartialEq, Eq)]
pub struct Seen<'a> {
    pub appid: u16,
    pub gocb_ref: &'a [u8],
    pub conf_rev: u64,
    pub st_num: u64,
    pub sq_num: u64,
    /// The time, in milliseconds, within which the next message must arrive.
    pub time_allowed_to_live: u64,
}

/// Decodes a frame; None if it is no GOOSE frame or lacks a field.
pub fn read(frame: &[u8]) -> Option<Seen<'_>> {
    let (appid, mut apdu) = iec61850::apdu(frame, ETHERTYPE)?;
    let (0x61, mut pdu) = ber::take(&mut apdu)? else {
        return None;
    };
    let (mut gocb_ref, mut numbers, mut data) = (None, [None; 4], false);
    while !pdu.is_empty() {
        let (tag, value) = ber::take(&mut pdu)?;
        match tag {
            0x80 => gocb_ref = Some(value),
            0x81 => numbers[0] = ber::unsigned(value),
            0x85 => numbers[1] = ber::unsigned(value),
            0x86 => numbers[2] = ber::unsigned(value),
            0x88 => numbers[3] = ber::unsigned(value),
            0xab => data = true,
            _ => {}
        }
    }
    let [time_allowed_to_live, st_num, sq_num, conf_rev] = numbers;
    data.then_some(())?;
    Some(Seen {
        appid,
        gocb_ref: gocb_ref?,
        conf_rev: conf_rev?,
        st_num: st_num?,
        sq_num: sq_num?,
        time_allowed_to_live: time_allowed_to_live?,
    })
}
