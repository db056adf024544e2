//! The columns of a row group while it fills, and their encoding in the order of the schema.

use crate::analysis::Verdict;
use crate::chunk::Chunk;
use crate::encode::{self, Pages};
use crate::flows::{FoldMap, Found};
use crate::network;
use crate::packet::{ANALYSIS, ARP, ETHERTYPE, MQTT, NET, PAYLOAD, PORTS, Packet, TCP, VLAN};

/// About 16 MB of columns.
const ROWS: usize = 1 << 18;
/// A single packet can end thousands of MQTT packets; this bounds the row group then.
const TYPES: usize = 1 << 21;

/// A row's time, length on the wire, and captured length.
pub type Sizes = (i64, u32, usize);

/// Indexed by `Verdict`.
const VERDICTS: [&str; 6] = [
    "",
    "retransmission",
    "fast-retransmission",
    "spurious-retransmission",
    "out-of-order",
    "keep-alive",
];

/// Indexed by MQTT packet type; 0 is not one.
const MQTT_TYPES: [&str; 16] = [
    "UNKNOWN",
    "CONNECT",
    "CONNACK",
    "PUBLISH",
    "PUBACK",
    "PUBREC",
    "PUBREL",
    "PUBCOMP",
    "SUBSCRIBE",
    "SUBACK",
    "UNSUBSCRIBE",
    "UNSUBACK",
    "PINGREQ",
    "PINGRESP",
    "DISCONNECT",
    "AUTH",
];

fn protocol_name(number: u16) -> String {
    match number {
        1 => "icmp".into(),
        2 => "igmp".into(),
        6 => "tcp".into(),
        17 => "udp".into(),
        58 => "icmpv6".into(),
        132 => "sctp".into(),
        ARP => "arp".into(),
        other => format!("ip-{other}"),
    }
}

/// Columns; those of one presence bit hold one value per row that has the bit.
#[derive(Default)]
pub struct Columns {
    places: FoldMap<u128, u32>,
    addresses: Vec<u128>,
    present: Vec<u8>,
    t_ns: Vec<i64>,
    wire: Vec<u32>,
    captured: Vec<u32>,
    vlan: Vec<u32>,
    ethertype: Vec<u32>,
    src: Vec<u32>,
    dst: Vec<u32>,
    protocol: Vec<u32>,
    src_port: Vec<u32>,
    dst_port: Vec<u32>,
    flags: Vec<u32>,
    seq: Vec<u32>,
    ack: Vec<u32>,
    window: Vec<u32>,
    payload: Vec<u32>,
    stream: Vec<u32>,
    retransmission: Vec<u8>,
    analysis: Vec<u32>,
    type_counts: Vec<u32>,
    types: Vec<u32>,
}

impl Columns {
    pub fn rows(&self) -> usize {
        self.present.len()
    }

    pub fn full(&self) -> bool {
        self.present.len() >= ROWS || self.types.len() >= TYPES
    }

    /// Adds a row; `types` are the MQTT types that end in it.
    #[inline]
    pub fn push(&mut self, sizes: Sizes, packet: &Packet, found: Option<&Found>, types: &[u8]) {
        let verdict = found.map_or(Verdict::Plain, |found| found.verdict);
        let mut present = packet.present;
        if verdict != Verdict::Plain {
            present |= ANALYSIS;
            self.analysis.push(verdict as u32);
        }
        if !types.is_empty() {
            present |= MQTT;
            self.type_counts.push(types.len() as u32);
            self.types.extend(types.iter().map(|&kind| u32::from(kind)));
        }
        self.present.push(present);
        self.t_ns.push(sizes.0);
        self.wire.push(sizes.1);
        self.captured.push(sizes.2 as u32);
        self.retransmission
            .push(u8::from(verdict.is_retransmission()));
        self.push_network(present, packet);
        self.push_transport(present, packet, found);
    }

    fn place(&mut self, address: u128) -> u32 {
        let next = self.addresses.len() as u32;
        let place = *self.places.entry(address).or_insert(next);
        if place == next {
            self.addresses.push(address);
        }
        place
    }

    /// The texts of the addresses, by the numbers that `src` and `dst` hold.
    pub fn address_names(&self) -> Vec<String> {
        self.addresses
            .iter()
            .map(|&address| network::text(address))
            .collect()
    }

    #[inline]
    fn push_network(&mut self, present: u8, packet: &Packet) {
        if present & VLAN != 0 {
            self.vlan.push(packet.vlan.into());
        }
        if present & ETHERTYPE != 0 {
            self.ethertype.push(packet.ethertype.into());
        }
        if present & NET != 0 {
            self.protocol.push(packet.protocol.into());
            let (src, dst) = (self.place(packet.src), self.place(packet.dst));
            self.src.push(src);
            self.dst.push(dst);
        }
    }

    #[inline]
    fn push_transport(&mut self, present: u8, packet: &Packet, found: Option<&Found>) {
        if present & PORTS != 0 {
            self.src_port.push(packet.src_port.into());
            self.dst_port.push(packet.dst_port.into());
        }
        if present & PAYLOAD != 0 {
            self.payload.push(packet.payload_len);
        }
        if present & TCP != 0 {
            self.flags.push(packet.flags.into());
            self.seq.push(packet.seq);
            self.ack.push(packet.ack);
            self.window.push(packet.window.into());
            self.stream.push(found.map_or(0, |found| found.stream));
        }
    }

    /// The chunk of the schema's column `index`.
    pub fn chunk(&self, index: usize, addresses: &[String]) -> Chunk {
        let nullable = |bit: u8, pages: Pages| Chunk {
            levels: encode::levels(&self.present, bit),
            entries: self.present.len(),
            pages,
        };
        let required = |pages: Pages| Chunk {
            levels: Vec::new(),
            entries: self.present.len(),
            pages,
        };
        match index {
            0 => required(encode::times(&self.t_ns)),
            1 => required(encode::numbers(&self.wire)),
            2 => required(encode::numbers(&self.captured)),
            3 => nullable(VLAN, encode::numbers(&self.vlan)),
            4 => nullable(ETHERTYPE, encode::numbers(&self.ethertype)),
            5 => nullable(NET, encode::texts(&self.src, addresses)),
            6 => nullable(NET, encode::texts(&self.dst, addresses)),
            7 => nullable(NET, self.protocols()),
            8 => nullable(PORTS, encode::numbers(&self.src_port)),
            9 => nullable(PORTS, encode::numbers(&self.dst_port)),
            10 => nullable(TCP, encode::numbers(&self.flags)),
            11 => nullable(TCP, encode::numbers(&self.seq)),
            12 => nullable(TCP, encode::numbers(&self.ack)),
            13 => nullable(TCP, encode::numbers(&self.window)),
            14 => nullable(PAYLOAD, encode::numbers(&self.payload)),
            15 => nullable(TCP, encode::numbers(&self.stream)),
            16 => required(encode::truths(&self.retransmission)),
            17 => nullable(ANALYSIS, encode::texts(&self.analysis, &VERDICTS)),
            _ => self.mqtt_chunk(),
        }
    }

    fn protocols(&self) -> Pages {
        let mut names: Vec<String> = Vec::new();
        let mut places = [u32::MAX; ARP as usize + 1];
        let place = |&number: &u32| {
            if places[number as usize] == u32::MAX {
                places[number as usize] = names.len() as u32;
                names.push(protocol_name(number as u16));
            }
            places[number as usize]
        };
        let numbers: Vec<u32> = self.protocol.iter().map(place).collect();
        encode::texts(&numbers, &names)
    }

    /// Lists: a row without types is one entry of definition level 0, a row with n is n entries of level 2.
    fn mqtt_chunk(&self) -> Chunk {
        let (mut repetition, mut definition) = (Vec::new(), Vec::new());
        let mut counts = self.type_counts.iter();
        for present in &self.present {
            let count = if present & MQTT == 0 {
                0
            } else {
                counts.next().map_or(0, |&count| count as usize)
            };
            repetition.push(0);
            repetition.resize(repetition.len() + count.saturating_sub(1), 1);
            definition.resize(repetition.len(), if count == 0 { 0 } else { 2 });
        }
        let mut levels = encode::level_list(&repetition, 1);
        levels.extend_from_slice(&encode::level_list(&definition, 2));
        Chunk {
            levels,
            entries: repetition.len(),
            pages: encode::texts(&self.types, &MQTT_TYPES),
        }
    }

    /// Empties the columns, keeping their memory.
    pub fn clear(&mut self) {
        self.places.clear();
        self.addresses.clear();
        self.t_ns.clear();
        self.present.clear();
        self.retransmission.clear();
        for column in [
            &mut self.wire,
            &mut self.captured,
            &mut self.vlan,
            &mut self.ethertype,
            &mut self.src,
            &mut self.dst,
            &mut self.protocol,
            &mut self.src_port,
            &mut self.dst_port,
            &mut self.flags,
            &mut self.seq,
            &mut self.ack,
            &mut self.window,
            &mut self.payload,
            &mut self.stream,
            &mut self.analysis,
            &mut self.type_counts,
            &mut self.types,
        ] {
            column.clear();
        }
    }
}
