//! Writes the table of TCP connections: one row per connection, in the order in which the flow table evicts
//! them.

use std::io::Write;

use parquet::errors::Result;

use crate::chunk::Chunk;
use crate::connection::{Direction, End, Row};
use crate::encode::{self, Pages};
use crate::fold::FoldMap;
use crate::network;
use crate::table::File;
use crate::{columns, dissect};

/// Rows of a row group of connections; its columns take about 6 MB.
const ROWS: usize = 1 << 14;

const SCHEMA: &str = "message connections {
    REQUIRED INT32 stream (INTEGER(32, false));
    REQUIRED BINARY src (UTF8);
    REQUIRED INT32 src_port (INTEGER(16, false));
    REQUIRED BINARY dst (UTF8);
    REQUIRED INT32 dst_port (INTEGER(16, false));
    OPTIONAL BINARY app (UTF8);
    REQUIRED INT64 first_ns;
    REQUIRED INT64 last_ns;
    OPTIONAL INT64 syn_synack_ns;
    OPTIONAL INT64 synack_ack_ns;
    REQUIRED BINARY end (UTF8);
    REQUIRED INT64 forward_packets;
    REQUIRED INT64 forward_wire_bytes;
    REQUIRED INT64 forward_payload_bytes;
    REQUIRED INT64 forward_retransmissions;
    OPTIONAL INT64 forward_srtt_ns;
    REQUIRED INT64 forward_rtt_samples;
    REQUIRED INT64 reverse_packets;
    REQUIRED INT64 reverse_wire_bytes;
    REQUIRED INT64 reverse_payload_bytes;
    REQUIRED INT64 reverse_retransmissions;
    OPTIONAL INT64 reverse_srtt_ns;
    REQUIRED INT64 reverse_rtt_samples;
}";

/// The index of the first column of the first direction.
const DIRECTIONS: usize = 11;
/// The number of columns of each direction.
const PER_DIRECTION: usize = 6;

/// Writes the table of connections to `W` as Parquet.
pub struct Connections<W: Write + Send> {
    file: File<W>,
    rows: Vec<Row>,
}

impl<W: Write + Send> Connections<W> {
    pub fn new(sink: W) -> Result<Self> {
        Ok(Self {
            file: File::new(sink, SCHEMA)?,
            rows: Vec::new(),
        })
    }

    pub fn push(&mut self, row: Row) -> Result<()> {
        self.rows.push(row);
        if self.rows.len() < ROWS {
            return Ok(());
        }
        self.flush()
    }

    /// Writes the last rows and the file's footer.
    pub fn close(mut self) -> Result<()> {
        self.flush()?;
        self.file.close()
    }

    fn flush(&mut self) -> Result<()> {
        let rows = &self.rows;
        self.file.group(rows.len(), |index| chunk(rows, index))?;
        self.rows.clear();
        Ok(())
    }
}

fn chunk(rows: &[Row], index: usize) -> Chunk {
    match index {
        0 => numbers(rows, |row| row.stream),
        1 => addresses(rows, |row| row.src().0),
        2 => numbers(rows, |row| row.src().1.into()),
        3 => addresses(rows, |row| row.dst().0),
        4 => numbers(rows, |row| row.dst().1.into()),
        5 => apps(rows),
        6 => wide(rows, |row| row.connection.first_ns),
        7 => wide(rows, |row| row.connection.last_ns),
        8 => optional(rows, |row| row.connection.syn_synack_ns),
        9 => optional(rows, |row| row.connection.synack_ack_ns),
        10 => ends(rows),
        _ => of_direction(
            rows,
            (index - DIRECTIONS) / PER_DIRECTION,
            (index - DIRECTIONS) % PER_DIRECTION,
        ),
    }
}

fn of_direction(rows: &[Row], direction: usize, column: usize) -> Chunk {
    let count =
        |value: fn(&Direction) -> u64| wide(rows, |row| value(row.direction(direction)) as i64);
    match column {
        0 => count(|direction| direction.packets),
        1 => count(|direction| direction.wire_bytes),
        2 => count(|direction| direction.payload_bytes),
        3 => count(|direction| direction.retransmissions),
        4 => optional(rows, |row| row.direction(direction).srtt_ns),
        _ => count(|direction| direction.rtt_samples),
    }
}

fn required(rows: &[Row], pages: Pages) -> Chunk {
    Chunk {
        levels: Vec::new(),
        entries: rows.len(),
        pages,
    }
}

/// Encodes a nullable column; `present` holds 1 for each row with a value, 0 for each null.
fn nullable(present: &[u8], pages: Pages) -> Chunk {
    Chunk {
        levels: encode::levels(present, 1),
        entries: present.len(),
        pages,
    }
}

fn numbers(rows: &[Row], value: impl Fn(&Row) -> u32) -> Chunk {
    let values: Vec<u32> = rows.iter().map(value).collect();
    required(rows, encode::numbers(&values))
}

fn wide(rows: &[Row], value: impl Fn(&Row) -> i64) -> Chunk {
    let values: Vec<i64> = rows.iter().map(value).collect();
    required(rows, encode::times(&values))
}

fn optional(rows: &[Row], value: impl Fn(&Row) -> Option<i64>) -> Chunk {
    let found: Vec<Option<i64>> = rows.iter().map(value).collect();
    let present: Vec<u8> = found
        .iter()
        .map(|value| u8::from(value.is_some()))
        .collect();
    let values: Vec<i64> = found.into_iter().flatten().collect();
    nullable(&present, encode::times(&values))
}

fn addresses(rows: &[Row], value: impl Fn(&Row) -> u128) -> Chunk {
    let (mut places, mut names) = (FoldMap::<u128, u32>::default(), Vec::new());
    let mut place = |address: u128| {
        *places.entry(address).or_insert_with(|| {
            names.push(network::text(address));
            names.len() as u32 - 1
        })
    };
    let numbers: Vec<u32> = rows.iter().map(|row| place(value(row))).collect();
    required(rows, encode::texts(&numbers, &names))
}

fn apps(rows: &[Row]) -> Chunk {
    let present: Vec<u8> = rows.iter().map(|row| u8::from(row.app.is_some())).collect();
    let apps: Vec<u32> = rows
        .iter()
        .filter_map(|row| row.app.map(u32::from))
        .collect();
    let pages = columns::named(&apps, |app| dissect::name(app as u8).into());
    nullable(&present, pages)
}

fn ends(rows: &[Row]) -> Chunk {
    let numbers: Vec<u32> = rows.iter().map(|row| row.connection.end as u32).collect();
    let name = |end: u32| match end {
        _ if end == End::Fin as u32 => "fin".into(),
        _ if end == End::Rst as u32 => "rst".into(),
        _ => "open".into(),
    };
    required(rows, columns::named(&numbers, name))
}
