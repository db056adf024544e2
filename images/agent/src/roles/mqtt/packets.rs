//! Builds and parses MQTT packets of both versions, so that the client need not distinguish the versions.

use super::spec::Spec;
use crate::os::Res;
use mqtt_protocol_core::mqtt::Version;
use mqtt_protocol_core::mqtt::packet::{
    Packet, Property, Qos, SessionExpiryInterval, SubEntry, SubOpts, v3_1_1, v5_0,
};
use mqtt_protocol_core::mqtt::result_code::ConnectReasonCode;
use std::fmt::Debug;

/// The meaning of a packet from the broker, independent of the MQTT version.
pub enum Meaning {
    Accepted {
        session: bool,
        /// The broker's limit on open handshakes (MQTT 5, 3.2.2.3.3).
        window: usize,
    },
    Refused(String),
    Subscribed,
    SubscribeRefused(String),
    Message {
        dup: bool,
        payload: Vec<u8>,
    },
    /// The handshake of this packet id has ended; `taken`: the broker has accepted the message, not refused
    /// it.
    Settled {
        id: u16,
        taken: bool,
    },
    Closing(String),
    Nothing,
}

pub fn version(name: &str) -> Res<Version> {
    match name {
        "3.1.1" => Ok(Version::V3_1_1),
        "5" => Ok(Version::V5_0),
        _ => Err(format!(
            "version: \"{name}\" is not spoken; write \"3.1.1\" or \"5\""
        )),
    }
}

pub fn qos(value: u8) -> Res<Qos> {
    Qos::try_from(value).map_err(|_| format!("qos: {value} does not exist; write 0, 1 or 2"))
}

fn bad<E: Debug>(what: &str) -> impl Fn(E) -> String {
    move |e| format!("mqtt {what}: {e:?}")
}

pub fn connect(version: Version, client_id: &str, spec: &Spec) -> Res<Packet> {
    let fail = "connect";
    if version == Version::V3_1_1 {
        let packet = v3_1_1::Connect::builder()
            .client_id(client_id)
            .map_err(bad(fail))?
            .clean_session(spec.clean_session)
            .keep_alive(spec.keepalive_s)
            .build()
            .map_err(bad(fail))?;
        return Ok(packet.into());
    }
    // In v5 a session outlives its connection only with an expiry interval; 0xFFFFFFFF means for ever, as in v3.1.1.
    let expiry = if spec.clean_session { 0 } else { u32::MAX };
    let expiry = SessionExpiryInterval::new(expiry).map_err(bad(fail))?;
    let packet = v5_0::Connect::builder()
        .client_id(client_id)
        .map_err(bad(fail))?
        .clean_start(spec.clean_session)
        .keep_alive(spec.keepalive_s)
        .props(vec![Property::SessionExpiryInterval(expiry)])
        .build()
        .map_err(bad(fail))?;
    Ok(packet.into())
}

pub fn subscribe(version: Version, id: u16, spec: &Spec) -> Res<Packet> {
    let mut entries = Vec::new();
    for s in &spec.subscribe {
        let options = SubOpts::new().set_qos(qos(s.qos)?);
        entries.push(SubEntry::new(s.topic.as_str(), options).map_err(bad("subscribe"))?);
    }
    if version == Version::V3_1_1 {
        let packet = v3_1_1::Subscribe::builder()
            .packet_id(id)
            .entries(entries)
            .build();
        return Ok(packet.map_err(bad("subscribe"))?.into());
    }
    let packet = v5_0::Subscribe::builder()
        .packet_id(id)
        .entries(entries)
        .build();
    Ok(packet.map_err(bad("subscribe"))?.into())
}

/// Builds a PUBLISH packet; `id` is the packet id, which only QoS 1 and 2 have.
pub fn publish(
    version: Version,
    id: Option<u16>,
    level: u8,
    topic: &str,
    payload: Vec<u8>,
) -> Res<Packet> {
    let fail = "publish";
    if version == Version::V3_1_1 {
        let b = v3_1_1::Publish::builder()
            .topic_name(topic)
            .map_err(bad(fail))?
            .qos(qos(level)?)
            .payload(payload);
        let b = if let Some(id) = id {
            b.packet_id(id)
        } else {
            b
        };
        return Ok(b.build().map_err(bad(fail))?.into());
    }
    let b = v5_0::Publish::builder()
        .topic_name(topic)
        .map_err(bad(fail))?
        .qos(qos(level)?)
        .payload(payload);
    let b = if let Some(id) = id {
        b.packet_id(id)
    } else {
        b
    };
    Ok(b.build().map_err(bad(fail))?.into())
}

pub fn disconnect(version: Version) -> Res<Packet> {
    if version == Version::V3_1_1 {
        return Ok(v3_1_1::Disconnect::builder()
            .build()
            .map_err(bad("disconnect"))?
            .into());
    }
    Ok(v5_0::Disconnect::builder()
        .build()
        .map_err(bad("disconnect"))?
        .into())
}

/// Returns the packet id of an outgoing PUBLISH (None inside at QoS 0); None for other packets.
pub fn outgoing_publish(packet: &Packet) -> Option<Option<u16>> {
    match packet {
        Packet::V3_1_1Publish(p) => Some(p.packet_id()),
        Packet::V5_0Publish(p) => Some(p.packet_id()),
        _ => None,
    }
}

pub fn understand(packet: Packet) -> Meaning {
    match packet {
        Packet::V3_1_1Connack(p) => connack(
            p.return_code().is_success(),
            p.session_present(),
            usize::from(u16::MAX),
            p.return_code(),
        ),
        Packet::V5_0Connack(p) => connack(
            p.reason_code() == ConnectReasonCode::Success,
            p.session_present(),
            receive_maximum(p.props()),
            p.reason_code(),
        ),
        Packet::V3_1_1Suback(p) => suback(
            p.return_codes().iter().all(|c| c.is_success()),
            &p.return_codes(),
        ),
        Packet::V5_0Suback(p) => suback(
            p.reason_codes().iter().all(|c| c.is_success()),
            &p.reason_codes(),
        ),
        Packet::V3_1_1Publish(p) => message(p.dup(), p.payload().as_slice()),
        Packet::V5_0Publish(p) => message(p.dup(), p.payload().as_slice()),
        Packet::V3_1_1Puback(p) => Meaning::Settled {
            id: p.packet_id(),
            taken: true,
        },
        Packet::V3_1_1Pubcomp(p) => Meaning::Settled {
            id: p.packet_id(),
            taken: true,
        },
        Packet::V5_0Puback(p) => Meaning::Settled {
            id: p.packet_id(),
            taken: p.reason_code().is_none_or(|c| c.is_success()),
        },
        Packet::V5_0Pubcomp(p) => Meaning::Settled {
            id: p.packet_id(),
            taken: p.reason_code().is_none_or(|c| c.is_success()),
        },
        // A PUBREC with an error ends the handshake; after a successful one PUBCOMP ends it.
        Packet::V5_0Pubrec(p) if p.reason_code().is_some_and(|c| c.is_failure()) => {
            Meaning::Settled {
                id: p.packet_id(),
                taken: false,
            }
        }
        Packet::V5_0Disconnect(p) => {
            Meaning::Closing(format!("the broker disconnects: {:?}", p.reason_code()))
        }
        _ => Meaning::Nothing,
    }
}

fn receive_maximum(properties: &[Property]) -> usize {
    let receive_maximum = properties.iter().find_map(|p| match p {
        Property::ReceiveMaximum(n) => Some(n.val()),
        _ => None,
    });
    usize::from(receive_maximum.unwrap_or(u16::MAX))
}

fn connack(success: bool, session: bool, window: usize, code: impl Debug) -> Meaning {
    if success {
        Meaning::Accepted { session, window }
    } else {
        Meaning::Refused(format!("{code:?}"))
    }
}

fn suback(success: bool, codes: &impl Debug) -> Meaning {
    if success {
        Meaning::Subscribed
    } else {
        Meaning::SubscribeRefused(format!("{codes:?}"))
    }
}

fn message(dup: bool, payload: &[u8]) -> Meaning {
    Meaning::Message {
        dup,
        payload: payload.to_vec(),
    }
}
