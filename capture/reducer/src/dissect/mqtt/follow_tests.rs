//! Tests MQTT over late, lost and duplicate segments.

use crate::dissect::{self, Notes};
use crate::follow::Follower;

const CHAIN: &[u8] = b"\x30\x05\x00\x01axx\xc0\x00\xe0\x00";

fn follow(pieces: &[(usize, usize)], ack: Option<u32>) -> Vec<Vec<String>> {
    let app = dissect::number(super::DISSECTOR.name).expect("it is registered");
    let [stream, _] = dissect::streams(app).expect("it has streams");
    let mut follower = Follower::new(stream);
    follower.open(u32::MAX - 3); // the numbers wrap within the chain
    let take = |&(from, to): &(usize, usize)| {
        let mut notes = Notes {
            app: Some(app),
            ..Notes::default()
        };
        let place = ((u32::MAX - 2).wrapping_add(from as u32), (to - from) as u32);
        follower.segment(place, &CHAIN[from..to], ack, true, &mut notes);
        notes.types.into_iter().map(dissect::type_name).collect()
    };
    pieces.iter().map(take).collect()
}

#[test]
fn a_type_is_noted_at_its_last_byte() {
    assert_eq!(
        follow(&[(0, 6), (6, 8), (8, 11)], None),
        [vec![], vec!["PUBLISH"], vec!["PINGREQ", "DISCONNECT"]]
    );
}

#[test]
fn early_segments_wait_for_the_gap() {
    assert_eq!(
        follow(&[(0, 1), (7, 11), (1, 7)], None),
        [vec![], vec![], vec!["PUBLISH", "PINGREQ", "DISCONNECT"]]
    );
}

#[test]
fn known_bytes_do_not_count_again() {
    assert_eq!(
        follow(&[(0, 9), (0, 9), (7, 11)], None),
        [vec!["PUBLISH", "PINGREQ"], vec![], vec!["DISCONNECT"]]
    );
}

#[test]
fn an_acknowledged_gap_inside_a_packet_is_skipped() {
    assert_eq!(
        follow(&[(0, 3), (5, 11)], Some(8)),
        [vec![], vec!["PUBLISH", "PINGREQ", "DISCONNECT"]]
    );
}

#[test]
fn a_lost_header_is_unknown_until_one_is_found() {
    assert_eq!(
        follow(&[(0, 7), (8, 9), (9, 11)], Some(20)),
        [vec!["PUBLISH"], vec!["UNKNOWN"], vec!["DISCONNECT"]]
    );
}
