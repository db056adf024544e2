//! Builds the CONNECT packet of both versions, with login and will.

use crate::os::Res;
use crate::roles::mqtt::spec::{Spec, bad, qos};
use mqtt_protocol_core::mqtt::Version;
use mqtt_protocol_core::mqtt::packet::{
    Packet, Property, Qos, ReceiveMaximum, SessionExpiryInterval, WillDelayInterval, v3_1_1, v5_0,
};
use std::borrow::Cow;

/// Builds a CONNECT packet with the will, the login and the session expiry of the settings; `clean`: the
/// broker discards the state of an earlier connection; `death`: topic and payload of a will that replaces the
/// settings' will. An error if a setting is not possible in MQTT.
pub fn connect(
    version: Version,
    client_id: &str,
    clean: bool,
    death: Option<(String, Vec<u8>)>,
    spec: &Spec,
) -> Res<Packet> {
    let fail = "connect";
    let will = will(death, spec)?;
    if version == Version::V3_1_1 {
        let mut b = v3_1_1::Connect::builder()
            .client_id(client_id)
            .map_err(bad(fail))?
            .clean_session(clean)
            .keep_alive(spec.keepalive_s);
        if let Some(w) = will {
            b = b
                .will_message(&*w.topic, w.payload, w.qos, w.retain)
                .map_err(bad("will"))?;
        }
        if let Some(user) = &spec.user {
            b = b.user_name(user.as_str()).map_err(bad("user"))?;
        }
        if let Some(password) = &spec.password {
            b = b.password(password.as_str()).map_err(bad("password"))?;
        }
        return Ok(b.build().map_err(bad(fail))?.into());
    }
    let expiry = SessionExpiryInterval::new(spec.expiry_s()).map_err(bad(fail))?;
    let mut properties = vec![Property::SessionExpiryInterval(expiry)];
    if let Some(most) = spec.receive_maximum {
        let most = ReceiveMaximum::new(most).map_err(bad("receive_maximum"))?;
        properties.push(Property::ReceiveMaximum(most));
    }
    let mut b = v5_0::Connect::builder()
        .client_id(client_id)
        .map_err(bad(fail))?
        .clean_start(clean)
        .keep_alive(spec.keepalive_s)
        .props(properties);
    if let Some(w) = will {
        let delay = WillDelayInterval::new(w.delay_s).map_err(bad("will"))?;
        b = b
            .will_message(&*w.topic, w.payload, w.qos, w.retain)
            .map_err(bad("will"))?
            .will_props(vec![Property::WillDelayInterval(delay)]);
    }
    if let Some(user) = &spec.user {
        b = b.user_name(user.as_str()).map_err(bad("user"))?;
    }
    if let Some(password) = &spec.password {
        b = b.password(password.as_str()).map_err(bad("password"))?;
    }
    Ok(b.build().map_err(bad(fail))?.into())
}

/// A will in the form that packets need.
struct Will<'a> {
    topic: Cow<'a, str>,
    payload: Vec<u8>,
    qos: Qos,
    retain: bool,
    delay_s: u32,
}

/// Returns the will: `death` at QoS 1 and not retained, or without it the will of the settings.
fn will(death: Option<(String, Vec<u8>)>, spec: &Spec) -> Res<Option<Will<'_>>> {
    if let Some((topic, payload)) = death {
        return Ok(Some(Will {
            topic: topic.into(),
            payload,
            qos: Qos::AtLeastOnce,
            retain: false,
            delay_s: 0,
        }));
    }
    let Some(w) = &spec.will else {
        return Ok(None);
    };
    Ok(Some(Will {
        topic: w.topic.as_str().into(),
        payload: w.payload.as_bytes().to_vec(),
        qos: qos(w.qos)?,
        retain: w.retain,
        delay_s: w.delay_s,
    }))
}
