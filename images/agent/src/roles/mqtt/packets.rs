//! Builds and parses MQTT packets of both versions, so that the client need not distinguish the versions.

mod login;

use super::content;
use super::requests::{self, Exchange};
use super::spec::{Publish, Spec, Subscribe, bad, qos};
use crate::os::Res;
use crate::payload::Identity;
pub use login::connect;
use mqtt_protocol_core::mqtt::Version;
use mqtt_protocol_core::mqtt::packet::{
    MessageExpiryInterval, Packet, Property, Qos, RetainHandling, SubEntry, SubOpts,
    SubscriptionIdentifier, UserProperty, v3_1_1, v5_0,
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
    Unsubscribed,
    UnsubscribeRefused(String),
    Message {
        dup: bool,
        /// True if the broker stored the message before the subscription (RETAIN, 3.3.1.3).
        retained: bool,
        topic: String,
        /// The identity that a user property carries; None without such a property, and in MQTT 3.1.1.
        identity: Option<Identity>,
        /// The subscription identifiers (MQTT 5, 3.3.2.3.8).
        identifiers: Vec<u32>,
        /// Response topic and correlation data of a request or of its reply (MQTT 5, 4.10).
        exchange: Exchange,
        payload: Vec<u8>,
    },
    /// The handshake of this packet id has ended; `taken`: true if the broker has accepted the message, false
    /// if it has refused it.
    Settled {
        id: u16,
        taken: bool,
        /// The broker's reason code.
        why: String,
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

fn retain_handling(value: u8) -> Res<RetainHandling> {
    match value {
        0 => Ok(RetainHandling::SendRetained),
        1 => Ok(RetainHandling::SendRetainedIfNotExists),
        2 => Ok(RetainHandling::DoNotSendRetained),
        _ => Err(format!(
            "retain_handling: {value} does not exist; write 0, 1 or 2"
        )),
    }
}

/// Builds a SUBSCRIBE packet for subscriptions that have the same identifier, or none.
pub fn subscribe(version: Version, id: u16, wanted: &[&Subscribe]) -> Res<Packet> {
    let mut entries = Vec::new();
    for s in wanted {
        let options = SubOpts::new()
            .set_qos(qos(s.qos)?)
            .set_nl(s.no_local)
            .set_rh(retain_handling(s.retain_handling)?);
        entries.push(SubEntry::new(s.topic.as_str(), options).map_err(bad("subscribe"))?);
    }
    if version == Version::V3_1_1 {
        let packet = v3_1_1::Subscribe::builder()
            .packet_id(id)
            .entries(entries)
            .build();
        return Ok(packet.map_err(bad("subscribe"))?.into());
    }
    let mut b = v5_0::Subscribe::builder().packet_id(id).entries(entries);
    if let Some(number) = wanted.first().and_then(|s| s.identifier) {
        let number = SubscriptionIdentifier::new(number).map_err(bad("identifier"))?;
        b = b.props(vec![Property::SubscriptionIdentifier(number)]);
    }
    let packet = b.build();
    Ok(packet.map_err(bad("subscribe"))?.into())
}

/// Builds an UNSUBSCRIBE packet of all subscriptions.
pub fn unsubscribe(version: Version, id: u16, spec: &Spec) -> Res<Packet> {
    let fail = "unsubscribe";
    let filters: Vec<&str> = spec.subscribe.iter().map(|s| s.topic.as_str()).collect();
    if version == Version::V3_1_1 {
        let b = v3_1_1::Unsubscribe::builder()
            .packet_id(id)
            .entries(filters);
        return Ok(b.map_err(bad(fail))?.build().map_err(bad(fail))?.into());
    }
    let b = v5_0::Unsubscribe::builder().packet_id(id).entries(filters);
    Ok(b.map_err(bad(fail))?.build().map_err(bad(fail))?.into())
}

/// Builds a PUBLISH packet; `id` is the packet id, which only QoS 1 and 2 have. An error if a setting or `id`
/// is not possible in MQTT.
pub fn publish(
    version: Version,
    id: Option<u16>,
    settings: &Publish,
    who: &Identity,
    payload: Vec<u8>,
) -> Res<Packet> {
    let fail = "publish";
    let Publish {
        topic,
        qos: level,
        retain,
        ..
    } = settings;
    if version == Version::V3_1_1 {
        let b = v3_1_1::Publish::builder()
            .topic_name(topic.as_str())
            .map_err(bad(fail))?
            .qos(qos(*level)?)
            .retain(*retain)
            .payload(payload);
        let b = if let Some(id) = id {
            b.packet_id(id)
        } else {
            b
        };
        return Ok(b.build().map_err(bad(fail))?.into());
    }
    let b = v5_0::Publish::builder()
        .topic_name(topic.as_str())
        .map_err(bad(fail))?
        .qos(qos(*level)?)
        .retain(*retain)
        .props(properties(settings, who)?)
        .payload(payload);
    let b = if let Some(id) = id {
        b.packet_id(id)
    } else {
        b
    };
    Ok(b.build().map_err(bad(fail))?.into())
}

/// Builds a PUBLISH packet of QoS 0 with a certificate of Sparkplug B.
pub fn certificate(version: Version, topic: &str, payload: Vec<u8>) -> Res<Packet> {
    let fail = "certificate";
    if version == Version::V3_1_1 {
        let b = v3_1_1::Publish::builder()
            .topic_name(topic)
            .map_err(bad(fail))?
            .qos(Qos::AtMostOnce)
            .payload(payload);
        return Ok(b.build().map_err(bad(fail))?.into());
    }
    let b = v5_0::Publish::builder()
        .topic_name(topic)
        .map_err(bad(fail))?
        .qos(Qos::AtMostOnce)
        .payload(payload);
    Ok(b.build().map_err(bad(fail))?.into())
}

fn properties(settings: &Publish, who: &Identity) -> Res<Vec<Property>> {
    let mut found = Vec::new();
    if let Some(seconds) = settings.message_expiry_s {
        let expiry = MessageExpiryInterval::new(seconds).map_err(bad("message_expiry"))?;
        found.push(Property::MessageExpiryInterval(expiry));
    }
    let own = settings.content.as_ref().map(|_| content::property(who));
    let users = settings
        .user_properties
        .iter()
        .map(|(k, v)| (k.as_str(), v.clone()));
    for (name, value) in users.chain(own) {
        let property = UserProperty::new(name, value).map_err(bad("user_properties"))?;
        found.push(Property::UserProperty(property));
    }
    if let Some(request) = &settings.request {
        found.extend(requests::properties(request, who)?);
    }
    Ok(found)
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

/// Returns the packet id of an outgoing PUBLISH, which is None at QoS 0; returns None for any other packet.
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
        Packet::V3_1_1Unsuback(_) => Meaning::Unsubscribed,
        Packet::V5_0Unsuback(p) => {
            let codes = p.reason_codes();
            if codes.iter().all(|c| c.is_success()) {
                Meaning::Unsubscribed
            } else {
                Meaning::UnsubscribeRefused(format!("{codes:?}"))
            }
        }
        Packet::V3_1_1Publish(p) => Meaning::Message {
            dup: p.dup(),
            retained: p.retain(),
            topic: p.topic_name().to_owned(),
            identity: None,
            identifiers: Vec::new(),
            exchange: Exchange::default(),
            payload: p.payload().as_slice().to_vec(),
        },
        Packet::V5_0Publish(p) => Meaning::Message {
            dup: p.dup(),
            retained: p.retain(),
            topic: p.topic_name().to_owned(),
            identity: identity(p.props()),
            identifiers: identifiers(p.props()),
            exchange: requests::exchange(p.props(), p.qos() as u8),
            payload: p.payload().as_slice().to_vec(),
        },
        Packet::V3_1_1Puback(p) => settled(p.packet_id(), true, None::<u8>),
        Packet::V3_1_1Pubcomp(p) => settled(p.packet_id(), true, None::<u8>),
        Packet::V5_0Puback(p) => {
            let code = p.reason_code();
            settled(p.packet_id(), code.is_none_or(|c| c.is_success()), code)
        }
        Packet::V5_0Pubcomp(p) => {
            let code = p.reason_code();
            settled(p.packet_id(), code.is_none_or(|c| c.is_success()), code)
        }
        // A PUBREC with an error ends the handshake; after a successful one PUBCOMP ends it.
        Packet::V5_0Pubrec(p) if p.reason_code().is_some_and(|c| c.is_failure()) => {
            settled(p.packet_id(), false, p.reason_code())
        }
        Packet::V5_0Auth(_) => Meaning::Closing(
            "the broker requires enhanced authentication, which this client does not have"
                .to_owned(),
        ),
        Packet::V5_0Disconnect(p) => {
            Meaning::Closing(format!("the broker disconnects: {:?}", p.reason_code()))
        }
        _ => Meaning::Nothing,
    }
}

/// Returns the first identity in a message's user properties; None without one.
fn identity(properties: &[Property]) -> Option<Identity> {
    properties.iter().find_map(|p| match p {
        Property::UserProperty(p) => content::identity(p.key(), p.val()),
        _ => None,
    })
}

fn identifiers(properties: &[Property]) -> Vec<u32> {
    let numbers = properties.iter().filter_map(|p| match p {
        Property::SubscriptionIdentifier(n) => Some(n.val()),
        _ => None,
    });
    numbers.collect()
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

fn settled<C: Debug>(id: u16, taken: bool, code: Option<C>) -> Meaning {
    let why = code.map_or(String::new(), |code| format!("{code:?}"));
    Meaning::Settled { id, taken, why }
}

fn suback(success: bool, codes: &impl Debug) -> Meaning {
    if success {
        Meaning::Subscribed
    } else {
        Meaning::SubscribeRefused(format!("{codes:?}"))
    }
}

#[cfg(test)]
mod tests;
