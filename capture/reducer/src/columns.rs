//! Collects the columns of a row group, and encodes them in the order of the schema.

use crate::analysis::Verdict;
use crate::chunk::Chunk;
use crate::dissect::{self, Notes};
use crate::encode::{self, Pages};
use crate::flows::Found;
use crate::fold::FoldMap;
use crate::network;
use crate::packet::{
    ANALYSIS, APP, ARP, ETHERTYPE, IDS, Layers, NET, PAYLOAD, PORTS, Packet, TCP, TYPES, VLAN,
};

/// Rows of a row group of packets; its columns take about 16 MB.
const ROWS: usize = 1 << 18;
/// A row group also ends at this many message types, since a single packet can end thousands of messages.
const MOST_TYPES: usize = 1 << 21;

/// Time and captured length of a packet, the values of a row that the decoded headers do not hold.
pub type Place = (i64, usize);

/// The names of the verdicts, indexed by `Verdict`.
const VERDICTS: [&str; 6] = [
    "",
    "retransmission",
    "fast-retransmission",
    "spurious-retransmission",
    "out-of-order",
    "keep-alive",
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

/// Encodes a column of small numbers as a column of texts: `name` gives the text of each distinct number.
pub fn named(numbers: &[u32], name: impl Fn(u32) -> String) -> Pages {
    let (entries, indexed) = encode::distinct(numbers);
    let names: Vec<String> = entries.into_iter().map(name).collect();
    encode::texts(&indexed, &names)
}

/// The values of a row group, column by column. A column with a presence bit holds values only for the rows
/// whose bit is set.
#[derive(Default)]
pub struct Columns {
    places: FoldMap<u128, u32>,
    addresses: Vec<u128>,
    present: Vec<u8>,
    /// For each row: presence bits of the results of TCP analysis and dissection.
    found: Vec<u8>,
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
    app: Vec<u32>,
    type_counts: Vec<u32>,
    types: Vec<u32>,
    id_counts: Vec<u32>,
    ids: Vec<u32>,
    /// For each layer (link, VLAN, network, transport, application, data, padding) the bytes of each row.
    layers: [Vec<u32>; 7],
}

impl Columns {
    pub fn rows(&self) -> usize {
        self.present.len()
    }

    pub fn full(&self) -> bool {
        self.present.len() >= ROWS || self.types.len() >= MOST_TYPES
    }

    #[inline]
    pub fn push(&mut self, place: Place, packet: &Packet, found: Option<&Found>, notes: &Notes) {
        let present = packet.present;
        self.present.push(present);
        self.t_ns.push(place.0);
        self.wire.push(packet.wire_len);
        self.captured.push(place.1 as u32);
        self.push_network(present, packet);
        self.push_transport(present, packet, found);
        self.push_found(found.map_or(Verdict::Plain, |found| found.verdict), notes);
        self.push_layers(packet.layers(notes.header));
    }

    #[inline]
    fn push_found(&mut self, verdict: Verdict, notes: &Notes) {
        let mut present = 0;
        if verdict != Verdict::Plain {
            present |= ANALYSIS;
            self.analysis.push(verdict as u32);
        }
        if let Some(app) = notes.app {
            present |= APP;
            self.app.push(app.into());
        }
        if !notes.types.is_empty() {
            present |= TYPES;
            self.type_counts.push(notes.types.len() as u32);
            self.types
                .extend(notes.types.iter().map(|&kind| u32::from(kind)));
        }
        if notes.numbered {
            present |= IDS;
            self.id_counts.push(notes.ids.len() as u32);
            self.ids.extend_from_slice(&notes.ids);
        }
        self.found.push(present);
        let again = verdict.is_retransmission();
        self.retransmission.push(u8::from(again));
    }

    #[inline]
    fn push_layers(&mut self, layers: Layers) {
        let Layers {
            link,
            vlan,
            net,
            transport,
            app,
            data,
            pad,
        } = layers;
        let sizes = [link, vlan, net, transport, app, data, pad];
        for (column, size) in self.layers.iter_mut().zip(sizes) {
            column.push(size);
        }
    }

    fn place(&mut self, address: u128) -> u32 {
        let next = self.addresses.len() as u32;
        let place = *self.places.entry(address).or_insert(next);
        if place == next {
            self.addresses.push(address);
        }
        place
    }

    /// Returns the addresses as texts; the columns `src` and `dst` hold indices into this list.
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

    /// Encodes the column with number `index` in the schema; `addresses` are the texts from `address_names`.
    pub fn chunk(&self, index: usize, addresses: &[String]) -> Chunk {
        let marked = |marks: &[u8], bit: u8, pages: Pages| Chunk {
            levels: encode::levels(marks, bit),
            entries: marks.len(),
            pages,
        };
        let nullable = |bit: u8, pages: Pages| marked(&self.present, bit, pages);
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
            7 => nullable(
                NET,
                named(&self.protocol, |number| protocol_name(number as u16)),
            ),
            8 => nullable(PORTS, encode::numbers(&self.src_port)),
            9 => nullable(PORTS, encode::numbers(&self.dst_port)),
            10 => nullable(TCP, encode::numbers(&self.flags)),
            11 => nullable(TCP, encode::numbers(&self.seq)),
            12 => nullable(TCP, encode::numbers(&self.ack)),
            13 => nullable(TCP, encode::numbers(&self.window)),
            14 => nullable(PAYLOAD, encode::numbers(&self.payload)),
            15 => nullable(TCP, encode::numbers(&self.stream)),
            16 => required(encode::truths(&self.retransmission)),
            17 => marked(
                &self.found,
                ANALYSIS,
                encode::texts(&self.analysis, &VERDICTS),
            ),
            18 => marked(
                &self.found,
                APP,
                named(&self.app, |app| dissect::name(app as u8).into()),
            ),
            19 => self.lists(
                TYPES,
                &self.type_counts,
                named(&self.types, |kind| dissect::type_name(kind as u16)),
            ),
            layer @ 20..27 => required(encode::numbers(&self.layers[layer - 20])),
            _ => self.lists(IDS, &self.id_counts, encode::numbers(&self.ids)),
        }
    }

    /// Encodes a column of lists: a row without a list is one entry of definition level 0, a row with n values
    /// is n entries of level 2. `bit` marks the rows with a list, of which `counts` are the lengths.
    fn lists(&self, bit: u8, counts: &[u32], pages: Pages) -> Chunk {
        let (mut repetition, mut definition) = (Vec::new(), Vec::new());
        let mut counts = counts.iter();
        for found in &self.found {
            let count = if found & bit == 0 {
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
            pages,
        }
    }

    /// Empties the columns, keeping their memory.
    pub fn clear(&mut self) {
        self.places.clear();
        self.addresses.clear();
        self.t_ns.clear();
        self.present.clear();
        self.found.clear();
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
            &mut self.app,
            &mut self.type_counts,
            &mut self.types,
            &mut self.id_counts,
            &mut self.ids,
        ]
        .into_iter()
        .chain(&mut self.layers)
        {
            column.clear();
        }
    }
}
