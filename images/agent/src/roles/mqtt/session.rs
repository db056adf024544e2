//! The protocol's state machine for one connection, and what of it the session carries over into the next.

use mqtt_protocol_core::mqtt::role::Client as ClientRole;
use mqtt_protocol_core::mqtt::{Connection, Version};

/// A state machine that has seen nothing yet.
pub fn begin(version: Version, keepalive_s: u16) -> Connection<ClientRole> {
    let mut conn = Connection::new(version);
    conn.set_auto_pub_response(true);
    // A broker that leaves a PINGREQ unanswered for a keepalive is gone.
    conn.set_pingresp_recv_timeout(u64::from(keepalive_s) * 1000);
    conn
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
