//! The protocol's state machine for one connection, and what of it the session carries over into the next.

use crate::os::Res;
use mqtt_protocol_core::mqtt::common::Cursor;
use mqtt_protocol_core::mqtt::connection::Event;
use mqtt_protocol_core::mqtt::role::Client as ClientRole;
use mqtt_protocol_core::mqtt::{Connection, Version};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A state machine that has seen nothing yet.
pub fn begin(version: Version, keepalive_s: u16) -> Connection<ClientRole> {
    let mut conn = Connection::new(version);
    conn.set_auto_pub_response(true);
    // A broker that leaves a PINGREQ unanswered for a keepalive is gone.
    conn.set_pingresp_recv_timeout(u64::from(keepalive_s) * 1000);
    conn
}

/// What the bytes bring. Error: they are nothing that a broker may send; the state machine is of no more use. The library
/// panics at some of them (0.7.9: a PUBLISH at QoS 1 or 2 whose packet id is 0).
pub fn receive(conn: &mut Connection<ClientRole>, bytes: &mut Cursor<&[u8]>) -> Res<Vec<Event>> {
    catch_unwind(AssertUnwindSafe(|| conn.recv(bytes)))
        .map_err(|_| "the broker sent what is no packet of MQTT".to_owned())
}

/// A fresh state machine with the open handshakes of the old one, if the session `keeps` them. Anew and not
/// `notify_closed`: mqtt-protocol-core 0.7 keeps the half of a packet that the lost connection had brought, and would
/// take the next CONNACK for its other half.
pub fn carry_over(
    old: &Connection<ClientRole>,
    version: Version,
    keepalive_s: u16,
    keeps: bool,
) -> Connection<ClientRole> {
    let mut conn = begin(version, keepalive_s);
    if keeps {
        conn.restore_packets(old.get_stored_packets());
        conn.restore_qos2_publish_handled(old.get_qos2_publish_handled());
    }
    conn
}

#[cfg(test)]
mod tests;
