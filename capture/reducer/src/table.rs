//! Writes Parquet files row group by row group, among them the table of packets.

use std::io::Write;
use std::sync::Arc;

use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::chunk::{Chunk, append};
use crate::columns::{Columns, Place};
use crate::dissect::Notes;
use crate::flows::Found;
use crate::packet::Packet;

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
    OPTIONAL BINARY app (UTF8);
    OPTIONAL group app_types (LIST) { REPEATED group list { REQUIRED BINARY element (UTF8); } }
    REQUIRED INT32 eth_bytes (INTEGER(32, false));
    REQUIRED INT32 vlan_bytes (INTEGER(32, false));
    REQUIRED INT32 ip_bytes (INTEGER(32, false));
    REQUIRED INT32 transport_bytes (INTEGER(32, false));
    REQUIRED INT32 app_bytes (INTEGER(32, false));
    REQUIRED INT32 data_bytes (INTEGER(32, false));
    REQUIRED INT32 pad_bytes (INTEGER(32, false));
    OPTIONAL group app_ids (LIST) { REPEATED group list { REQUIRED INT32 element (INTEGER(32, false)); } }
}";

/// A Parquet file whose columns the caller encodes.
pub struct File<W: Write + Send> {
    writer: SerializedFileWriter<W>,
}

impl<W: Write + Send> File<W> {
    pub fn new(sink: W, schema: &str) -> Result<Self> {
        let program = concat!("vnet-reduce ", env!("CARGO_PKG_VERSION")).to_string();
        let properties = WriterProperties::builder().set_created_by(program).build();
        let schema = Arc::new(parse_message_type(schema)?);
        let writer = SerializedFileWriter::new(sink, schema, Arc::new(properties))?;
        Ok(Self { writer })
    }

    /// Appends a row group of `rows` rows; `chunk` encodes the leaf column of the schema with the given
    /// index. Does nothing for 0 rows.
    pub fn group(&mut self, rows: usize, chunk: impl Fn(usize) -> Chunk) -> Result<()> {
        if rows == 0 {
            return Ok(());
        }
        let descriptors = self.writer.schema_descr().columns().to_vec();
        let mut group = self.writer.next_row_group()?;
        for (index, descriptor) in descriptors.into_iter().enumerate() {
            append(&mut group, descriptor, rows, chunk(index))?;
        }
        group.close().map(drop)
    }

    /// Stores `note` in the file's metadata under the key `vnet`.
    pub fn note(&mut self, note: String) {
        let note = KeyValue::new("vnet".to_string(), note);
        self.writer.append_key_value_metadata(note);
    }

    pub fn close(self) -> Result<()> {
        self.writer.close().map(drop)
    }
}

/// Writes the table of packets to `W`.
pub struct Table<W: Write + Send> {
    file: File<W>,
    columns: Columns,
}

impl<W: Write + Send> Table<W> {
    pub fn new(sink: W) -> Result<Self> {
        Ok(Self {
            file: File::new(sink, SCHEMA)?,
            columns: Columns::default(),
        })
    }

    #[inline]
    pub fn push(
        &mut self,
        place: Place,
        packet: &Packet,
        found: Option<&Found>,
        notes: &Notes,
    ) -> Result<()> {
        self.columns.push(place, packet, found, notes);
        if self.columns.full() {
            self.flush()
        } else {
            Ok(())
        }
    }

    /// Writes the last rows and the file's footer, with `note` in its metadata.
    pub fn close(mut self, note: String) -> Result<()> {
        self.flush()?;
        self.file.note(note);
        self.file.close()
    }

    fn flush(&mut self) -> Result<()> {
        let names = self.columns.address_names();
        let columns = &self.columns;
        let chunk = |index| columns.chunk(index, &names);
        self.file.group(columns.rows(), chunk)?;
        self.columns.clear();
        Ok(())
    }
}
