//! Compares packets with the bytes that the standards prescribe.

use super::*;
use serde_json::json;

fn spec(version: &str, more: serde_json::Value) -> Spec {
    let mut spec = json!({
        "broker": "127.0.0.1", "port": 1, "version": version, "keepalive_s": 30, "clean_session": true,
        "reconnect_ns": 1, "user": "u", "password": "p",
        "will": {"topic": "w", "payload": "x", "qos": 1, "retain": true, "delay_s": 5},
        "publish": {"topic": "t", "qos": 0, "retain": true},
    });
    let more = more.as_object().unwrap().clone();
    spec.as_object_mut().unwrap().extend(more);
    serde_json::from_value(spec).unwrap()
}

#[test]
fn a_login_of_3_1_1_has_will_user_and_password_in_this_order() {
    let packet = connect(Version::V3_1_1, "c", true, &spec("3.1.1", json!({}))).unwrap();
    // Section 3.1: flags are user, password, will retain, will QoS 1, will, clean session.
    let mut expected = b"\x10\x19\x00\x04MQTT\x04\xee\x00\x1e".to_vec();
    expected.extend_from_slice(b"\x00\x01c\x00\x01w\x00\x01x\x00\x01u\x00\x01p");
    assert_eq!(packet_bytes(&packet), expected);
}

#[test]
fn a_login_of_5_has_session_expiry_and_will_delay() {
    let spec = spec("5", json!({"session_expiry_s": 60}));
    let packet = connect(Version::V5_0, "c", false, &spec).unwrap();
    let mut expected = b"\x10\x25\x00\x04MQTT\x05\xec\x00\x1e\x05\x11\x00\x00\x00\x3c".to_vec();
    expected.extend_from_slice(b"\x00\x01c\x05\x18\x00\x00\x00\x05\x00\x01w\x00\x01x\x00\x01u\x00\x01p");
    assert_eq!(packet_bytes(&packet), expected);
}

#[test]
fn a_session_ends_with_its_connection_lives_for_a_time_or_for_ever() {
    let expiry = |more| spec("5", more).expiry_s();
    assert_eq!(expiry(json!({})), 0);
    assert_eq!(expiry(json!({"clean_session": false})), u32::MAX);
    assert_eq!(expiry(json!({"session_expiry_s": 7})), 7);
    assert_eq!(expiry(json!({"clean_session": false, "session_expiry_s": 0})), 0);
}

#[test]
fn a_retained_publication_has_the_flag_in_both_versions() {
    let spec = spec("5", json!({}));
    let settings = spec.publish.as_ref().unwrap();
    let of = |version| publish(version, None, settings, b"m".to_vec()).unwrap();
    assert_eq!(packet_bytes(&of(Version::V3_1_1)), b"\x31\x04\x00\x01tm");
    assert_eq!(packet_bytes(&of(Version::V5_0)), b"\x31\x05\x00\x01t\x00m");
}

fn packet_bytes(packet: &Packet) -> Vec<u8> {
    use mqtt_protocol_core::mqtt::packet::GenericPacketTrait;
    packet.to_continuous_buffer()
}
