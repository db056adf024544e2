//! Collects rows by column and writes them as row groups of a Parquet file.

use std::io::Write;
use std::sync::Arc;

use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::analysis::Verdict;
use crate::chunk::{Chunk, append};
use crate::decode::{ANALYSIS, ARP, ETHERTYPE, MQTT, NET, PAYLOAD, PORTS, Packet, TCP, VLAN};
use crate::encode::{self, Pages};
use crate::flows::{FoldMap, Found};
use crate::network;

/// About 16 MB of columns.
const ROWS: usize = 1 << 18;
/// A single packet can end thousands of MQTT packets; this bounds the row group then.
const TYPES: usize = 1 << 21;

const SCHEMA: &str = "message packets {
    REQUIRED INT64 t_ns;
    REQUIRED INT32 wire_bytes (INTEGER(32, false));
    REQUIRED INT32 captured_bytes (INTEGER(32, false));
    OPTIONAL INT32 vlan (INTEGER(16, false));
    OPTIONAL INT32 ethertype (INTEGER(16, false));
    OPTIONAL BINARY src (UTF8);
    OPTIONAL BINARY dst (UTF8);
    OPTIONAL BINARY protocol (UTF8);
    OPTIONAL INT32 src_port (INTEGER(16, false));
    OPTIONAL INT32 dst_port (INTEGER(16, false));
    OPTIONAL INT32 tcp_flags (INTEGER(16, false));
    OPTIONAL INT32 seq (INTEGER(32, false));
    OPTIONAL INT32 ack (INTEGER(32, false));
    OPTIONAL INT32 window (INTEGER(16, false));
    OPTIONAL INT32 payload_bytes (INTEGER(32, false));
    OPTIONAL INT32 stream (INTEGER(32, false));
    REQUIRED BOOLEAN retransmission;
    OPTIONAL BINARY analysis (UTF8);
    OPTIONAL group mqtt_types (LIST) { REPEATED group list { REQUIRED BINARY element (UTF8); } }
}";

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
struct Columns {
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

/// Writes rows to `W`.
pub struct Table<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Columns,
    places: FoldMap<u128, u32>,
    addresses: Vec<u128>,
}

impl<W: Write + Send> Table<W> {
    pub fn new(sink: W) -> Result<Self> {
        let program = concat!("vnet-reduce ", env!("CARGO_PKG_VERSION")).to_string();
        let properties = WriterProperties::builder().set_created_by(program).build();
        let schema = Arc::new(parse_message_type(SCHEMA)?);
        let writer = SerializedFileWriter::new(sink, schema, Arc::new(properties))?;
        Ok(Self {
            writer,
            columns: Columns::default(),
            places: FoldMap::default(),
            addresses: Vec::new(),
        })
    }

    /// Adds a row; `types` are the MQTT types that end in it.
    #[inline]
    pub fn push(
        &mut self,
        (t_ns, wire, captured): (i64, u32, usize),
        packet: &Packet,
        found: Option<&Found>,
        types: &[u8],
    ) -> Result<()> {
        let verdict = found.map_or(Verdict::Plain, |found| found.verdict);
        let judged = if verdict == Verdict::Plain {
            0
        } else {
            ANALYSIS
        };
        let present = packet.present | judged | if types.is_empty() { 0 } else { MQTT };
        let columns = &mut self.columns;
        columns.present.push(present);
        columns.t_ns.push(t_ns);
        columns.wire.push(wire);
        columns.captured.push(captured as u32);
        columns
            .retransmission
            .push(u8::from(verdict.is_retransmission()));
        columns.push_link(present, packet);
        columns.push_tcp(present, packet, found);
        if present & ANALYSIS != 0 {
            columns.analysis.push(verdict as u32);
        }
        if present & MQTT != 0 {
            columns.type_counts.push(types.len() as u32);
            columns
                .types
                .extend(types.iter().map(|&kind| u32::from(kind)));
        }
        if present & NET != 0 {
            let (src, dst) = (self.place(packet.src), self.place(packet.dst));
            self.columns.src.push(src);
            self.columns.dst.push(dst);
        }
        if self.columns.present.len() >= ROWS || self.columns.types.len() >= TYPES {
            self.flush()?;
        }
        Ok(())
    }

    fn place(&mut self, address: u128) -> u32 {
        let next = self.addresses.len() as u32;
        let place = *self.places.entry(address).or_insert(next);
        if place == next {
            self.addresses.push(address);
        }
        place
    }

    /// Writes the last rows and the file's footer, with `note` in its metadata under the key `vnet`.
    pub fn close(mut self, note: String) -> Result<()> {
        self.flush()?;
        self.writer
            .append_key_value_metadata(KeyValue::new("vnet".to_string(), note));
        self.writer.close().map(drop)
    }

    fn flush(&mut self) -> Result<()> {
        if self.columns.present.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = self
            .addresses
            .iter()
            .map(|&address| network::text(address))
            .collect();
        let descriptors = self.writer.schema_descr().columns().to_vec();
        let mut group = self.writer.next_row_group()?;
        let rows = self.columns.present.len();
        for (index, descriptor) in descriptors.into_iter().enumerate() {
            append(
                &mut group,
                descriptor,
                rows,
                self.columns.chunk(index, &names),
            )?;
        }
        group.close()?;
        self.columns.clear();
        self.places.clear();
        self.addresses.clear();
        Ok(())
    }
}

impl Columns {
    #[inline]
    fn push_link(&mut self, present: u8, packet: &Packet) {
        if present & VLAN != 0 {
            self.vlan.push(packet.vlan.into());
        }
        if present & ETHERTYPE != 0 {
            self.ethertype.push(packet.ethertype.into());
        }
        if present & NET != 0 {
            self.protocol.push(packet.protocol.into());
        }
    }

    #[inline]
    fn push_tcp(&mut self, present: u8, packet: &Packet, found: Option<&Found>) {
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
    fn chunk(&self, index: usize, addresses: &[String]) -> Chunk {
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
    fn clear(&mut self) {
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
