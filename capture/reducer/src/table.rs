//! Collects rows by column and writes them as row groups of a Parquet file.

use std::io::Write;
use std::sync::Arc;

use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::chunk::append;
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
}";

/// Writes rows to `W`.
pub struct Table<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Columns,
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

    /// Writes the last rows and the file's footer, with `note` in its metadata under the key `vnet`.
    pub fn close(mut self, note: String) -> Result<()> {
        self.flush()?;
        self.writer
            .append_key_value_metadata(KeyValue::new("vnet".to_string(), note));
        self.writer.close().map(drop)
    }

    fn flush(&mut self) -> Result<()> {
        let rows = self.columns.rows();
        if rows == 0 {
            return Ok(());
        }
        let names = self.columns.address_names();
        let descriptors = self.writer.schema_descr().columns().to_vec();
        let mut group = self.writer.next_row_group()?;
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
        Ok(())
    }
}
