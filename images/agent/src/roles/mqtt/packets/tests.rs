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
    let packet = connect(Version::V3_1_1, "c", true, None, &spec("3.1.1", json!({}))).unwrap();
    // Section 3.1: the flags are user, password, will retain, will QoS 1, will, clean session.
    let mut expected = b"\x10\x19\x00\x04MQTT\x04\xee\x00\x1e".to_vec();
    expected.extend_from_slice(b"\x00\x01c\x00\x01w\x00\x01x\x00\x01u\x00\x01p");
    assert_eq!(packet_bytes(&packet), expected);
}

#[test]
fn a_login_of_5_has_session_expiry_and_will_delay() {
    let spec = spec("5", json!({"session_expiry_s": 60}));
    let packet = connect(Version::V5_0, "c", false, None, &spec).unwrap();
    let mut expected = b"\x10\x25\x00\x04MQTT\x05\xec\x00\x1e\x05\x11\x00\x00\x00\x3c".to_vec();
    expected.extend_from_slice(
        b"\x00\x01c\x05\x18\x00\x00\x00\x05\x00\x01w\x00\x01x\x00\x01u\x00\x01p",
    );
    assert_eq!(packet_bytes(&packet), expected);
}

#[test]
fn a_session_ends_with_its_connection_lives_for_a_time_or_for_ever() {
    let expiry = |more| spec("5", more).expiry_s();
    assert_eq!(expiry(json!({})), 0);
    assert_eq!(expiry(json!({"clean_session": false})), u32::MAX);
    assert_eq!(expiry(json!({"session_expiry_s": 7})), 7);
    assert_eq!(
        expiry(json!({"clean_session": false, "session_expiry_s": 0})),
        0
    );
}

#[test]
fn a_retained_publication_has_the_flag_in_both_versions() {
    let spec = spec("5", json!({}));
    let settings = spec.publish.as_ref().unwrap();
    let of = |version| publish(version, None, settings, &WHO, b"m".to_vec()).unwrap();
    assert_eq!(packet_bytes(&of(Version::V3_1_1)), b"\x31\x04\x00\x01tm");
    assert_eq!(packet_bytes(&of(Version::V5_0)), b"\x31\x05\x00\x01t\x00m");
}

#[test]
fn a_publication_of_5_has_expiry_and_user_properties() {
    let publication =
        json!({"topic": "t", "qos": 1, "message_expiry_s": 9, "user_properties": [["k", "v"]]});
    let spec = spec("5", json!({"publish": publication}));
    let settings = spec.publish.as_ref().unwrap();
    let packet = publish(Version::V5_0, Some(3), settings, &WHO, b"m".to_vec()).unwrap();
    let expected = b"\x32\x13\x00\x01t\x00\x03\x0c\x02\x00\x00\x00\x09\x26\x00\x01k\x00\x01vm";
    assert_eq!(packet_bytes(&packet), expected);
}

#[test]
fn the_identity_of_a_payload_of_any_content_is_a_user_property() {
    let spec = spec(
        "5",
        json!({"publish": {"topic": "t", "qos": 0, "content": "zeros"}}),
    );
    let settings = spec.publish.as_ref().unwrap();
    let packet = publish(Version::V5_0, None, settings, &WHO, Vec::new()).unwrap();
    let Meaning::Message {
        identity, payload, ..
    } = understand(packet)
    else {
        panic!("no message");
    };
    assert_eq!((identity, payload), (Some(WHO), Vec::new()));
}

#[test]
fn a_subscription_of_5_has_its_options() {
    let options = json!([{"topic": "a", "qos": 1, "no_local": true, "retain_handling": 2}]);
    let spec = spec("5", json!({"subscribe": options, "receive_maximum": 5}));
    let packet = subscribe(Version::V5_0, 7, &[&spec.subscribe[0]]).unwrap();
    assert_eq!(packet_bytes(&packet), b"\x82\x07\x00\x07\x00\x00\x01a\x25");
    let login = connect(Version::V5_0, "c", true, None, &spec).unwrap();
    let bytes = packet_bytes(&login);
    assert!(bytes.windows(3).any(|w| w == [0x21, 0, 5]), "{bytes:?}");
}

#[test]
fn subscriptions_with_different_identifiers_are_different_packets() {
    let wanted = json!([
        {"topic": "a", "qos": 0, "identifier": 300},
        {"topic": "b", "qos": 0},
        {"topic": "c", "qos": 0, "identifier": 300},
    ]);
    let spec = spec("5", json!({"subscribe": wanted}));
    let packets: Vec<Vec<u8>> = spec
        .packets_of_subscriptions()
        .iter()
        .map(|one| packet_bytes(&subscribe(Version::V5_0, 7, one).unwrap()))
        .collect();
    // 300 is the variable byte integer ac 02.
    assert_eq!(packets.len(), 2);
    assert_eq!(
        packets[0],
        b"\x82\x0e\x00\x07\x03\x0b\xac\x02\x00\x01a\x00\x00\x01c\x00"
    );
    assert_eq!(packets[1], b"\x82\x07\x00\x07\x00\x00\x01b\x00");
}

#[test]
fn a_request_names_its_response_topic_and_a_reply_returns_its_correlation_data() {
    let request = json!({"response_topic": "r", "receivers": 1});
    let publication = json!({"topic": "t", "qos": 1, "request": request});
    let spec = spec("5", json!({"publish": publication}));
    let settings = spec.publish.as_ref().unwrap();
    let packet = publish(Version::V5_0, Some(3), settings, &WHO, b"m".to_vec()).unwrap();
    let bytes = packet_bytes(&packet);
    assert!(bytes.windows(4).any(|w| w == b"\x08\x00\x01r"), "{bytes:?}");
    assert!(
        bytes.windows(7).any(|w| w == b"\x09\x00\x1cvNET"),
        "{bytes:?}"
    );
    let Meaning::Message { exchange, .. } = understand(packet) else {
        panic!("no message");
    };
    assert_eq!(exchange.qos, 1);
    assert!(
        requests::replied(&exchange).is_none(),
        "it names nobody who replies"
    );
}

#[test]
fn an_authentication_that_the_client_does_not_have_ends_the_connection_in_words() {
    use mqtt_protocol_core::mqtt::result_code::AuthReasonCode;
    let packet = v5_0::Auth::builder()
        .reason_code(AuthReasonCode::ContinueAuthentication)
        .props(vec![Property::AuthenticationMethod(
            mqtt_protocol_core::mqtt::packet::AuthenticationMethod::new("GS2").unwrap(),
        )])
        .build()
        .unwrap();
    let Meaning::Closing(why) = understand(packet.into()) else {
        panic!("the connection goes on");
    };
    assert!(why.contains("enhanced authentication"), "{why}");
}

const WHO: Identity = Identity {
    purpose: crate::payload::Purpose::Other,
    flow: 1,
    seq: 2,
    scheduled_ns: 3,
    reply_bytes: 0,
};

fn packet_bytes(packet: &Packet) -> Vec<u8> {
    use mqtt_protocol_core::mqtt::packet::GenericPacketTrait;
    packet.to_continuous_buffer()
}
