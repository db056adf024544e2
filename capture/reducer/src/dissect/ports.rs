//! Maps TCP and UDP ports to application protocols.

use super::{ALL, names, number};

const NOBODY: u8 = u8::MAX;

/// For each TCP and UDP port, the number of the protocol that uses it.
pub struct Ports {
    tcp: Box<[u8]>,
    udp: Box<[u8]>,
}

impl Ports {
    /// Assigns the ports in `named` to the protocols named there; all other protocols keep their usual ports.
    /// Returns an error if a name is not that of a protocol over TCP or UDP.
    pub fn new(named: &[(String, Vec<u16>)]) -> Result<Self, String> {
        let nobody = || vec![NOBODY; 1 << 16].into_boxed_slice();
        let (mut tcp, mut udp) = (nobody(), nobody());
        for (place, dissector) in ALL.iter().enumerate() {
            if named.iter().all(|(name, _)| name != dissector.name) {
                assign(&mut tcp, dissector.tcp_ports, place as u8);
                assign(&mut udp, dissector.udp_ports, place as u8);
            }
        }
        for (name, ports) in named {
            let app = number(name).filter(|_| names().any(|known| known == name));
            let app = app.ok_or_else(|| {
                let known: Vec<_> = names().collect();
                format!(
                    "--app {name}: no dissector of that name has ports; there are {}",
                    known.join(", ")
                )
            })?;
            if ALL[usize::from(app)].streams.is_some() {
                assign(&mut tcp, ports, app);
            }
            if ALL[usize::from(app)].datagram.is_some() {
                assign(&mut udp, ports, app);
            }
        }
        Ok(Self { tcp, udp })
    }

    /// Returns the protocol of a connection between two ports, or None; the lower port, usually the server's,
    /// takes precedence.
    pub fn tcp(&self, one: u16, other: u16) -> Option<u8> {
        let known = |port: u16| Some(self.tcp[usize::from(port)]).filter(|&app| app != NOBODY);
        known(one.min(other)).or_else(|| known(one.max(other)))
    }

    /// Returns the possible protocols of a datagram between two ports: that of the lower port, then that of
    /// the higher.
    pub fn udp(&self, one: u16, other: u16) -> [Option<u8>; 2] {
        [one.min(other), one.max(other)]
            .map(|port| Some(self.udp[usize::from(port)]).filter(|&app| app != NOBODY))
    }
}

fn assign(table: &mut [u8], ports: &[u16], app: u8) {
    for &port in ports {
        table[usize::from(port)] = app;
    }
}
