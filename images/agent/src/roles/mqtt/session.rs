//! Creates the protocol's state machine for a connection, and transfers the session's state to that of the
//! next connection.

use crate::os::Res;
use mqtt_protocol_core::mqtt::common::Cursor;
use mqtt_protocol_core::mqtt::connection::Event;
use mqtt_protocol_core::mqtt::role::Client as ClientRole;
use mqtt_protocol_core::mqtt::{Connection, Version};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Creates a state machine for a new session. It acknowledges received messages itself, and waits for a
/// PINGRESP for `keepalive_s`.
pub fn begin(version: Version, keepalive_s: u16) -> Connection<ClientRole> {
    let mut conn = Connection::new(version);
    conn.set_auto_pub_response(true);
    // The connection counts as lost if the broker does not answer a PINGREQ within the keep-alive time.
    conn.set_pingresp_recv_timeout(u64::from(keepalive_s) * 1000);
    conn
}

/// Passes the bytes from the cursor's position on to the state machine and returns its events, which also
/// report most violations of the protocol. Returns an error if the library panics at a violation (0.7.9: a
/// PUBLISH at QoS 1 or 2 with packet id 0); the state machine is then unusable.
pub fn receive(conn: &mut Connection<ClientRole>, bytes: &mut Cursor<&[u8]>) -> Res<Vec<Event>> {
    catch_unwind(AssertUnwindSafe(|| conn.recv(bytes)))
        .map_err(|_| "the broker sent an invalid MQTT packet".to_owned())
}

/// Creates a state machine with the open handshakes of the old one, if the session `keeps` them. The
/// library's `notify_closed` does not suffice: mqtt-protocol-core 0.7 keeps a half-received packet of the
/// lost connection, and would read the next CONNACK as its other half.
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
