//! Reduces a capture to tables: reads the file, decodes and analyses each frame, and writes the rows.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};

use crate::connection::Row;
use crate::connections::Connections;
use crate::decode;
use crate::dissect::{self, Notes};
use crate::flows::{Flows, Found};
use crate::options::Options;
use crate::output::Output;
use crate::packet::{NET, TCP};
use crate::pcap::{Reader, Record};
use crate::summary::Summary;
use crate::table::Table;

/// Reduces the capture file `options.input` ("-": standard input) to the requested tables, which appear under
/// their names only when complete, and returns the summary. Reads a damaged or cut file up to the damage.
pub fn run(options: &Options) -> Result<Summary, String> {
    let source: Box<dyn Read> = if options.input == "-" {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(&options.input).map_err(|error| format!("{}: {error}", options.input))?)
    };
    let reader = Reader::new(source).map_err(|error| format!("{}: {error}", options.input))?;
    let (output, sink) = Output::create(&options.output)?;
    let at_output = |error: &dyn std::fmt::Display| format!("{}: {error}", options.output);
    let mut table = Table::new(sink).map_err(|error| at_output(&error))?;
    let mut connections = ConnectionTable::create(options)?;
    let summary = rows(reader, options, &mut table, &mut connections)?;
    table
        .close(summary.json())
        .map_err(|error| at_output(&error))?;
    connections.close()?;
    output.keep()?;
    Ok(summary)
}

/// Reduces the bytes of a capture file to a table of packets, and discards the table; does nothing if the
/// bytes do not begin as a capture file. The flow table holds three connections, so that it evicts some.
#[cfg(feature = "fuzzing")]
pub fn fuzz(bytes: &[u8]) {
    let Ok(reader) = Reader::new(bytes) else {
        return;
    };
    let words = ["-", "-", "--max-flows", "3"].map(str::to_owned);
    let options = crate::options::parse(words.into_iter())
        .expect("options")
        .expect("no help");
    let mut table = Table::new(io::sink()).expect("a table");
    let mut rows_of_connections = ConnectionTable(None);
    if let Ok(summary) = rows(reader, &options, &mut table, &mut rows_of_connections) {
        table.close(summary.json()).expect("closed");
    }
}

/// The table of connections with its output file; None if it is not requested.
struct ConnectionTable(Option<(Output, Connections<BufWriter<File>>, String)>);

impl ConnectionTable {
    fn create(options: &Options) -> Result<Self, String> {
        let Some(path) = &options.connections else {
            return Ok(Self(None));
        };
        let (output, sink) = Output::create(path)?;
        let table = Connections::new(sink).map_err(|error| format!("{path}: {error}"))?;
        Ok(Self(Some((output, table, path.clone()))))
    }

    fn take(&mut self, ended: impl Iterator<Item = Row>) -> Result<(), String> {
        if let Some((_, table, path)) = &mut self.0 {
            for row in ended {
                table
                    .push(row)
                    .map_err(|error| format!("{path}: {error}"))?;
            }
        }
        Ok(())
    }

    fn close(self) -> Result<(), String> {
        let Some((output, table, path)) = self.0 else {
            return Ok(());
        };
        table.close().map_err(|error| format!("{path}: {error}"))?;
        output.keep()
    }
}

/// Adds every frame of `reader` as a row to `table`, and every TCP connection as a row to `connections`, if
/// that table is requested. Returns the summary.
fn rows<R: Read, W: Write + Send>(
    mut reader: Reader<R>,
    options: &Options,
    table: &mut Table<W>,
    connections: &mut ConnectionTable,
) -> Result<Summary, String> {
    let mut flows = Flows::new(options.max_flows, options.connections.is_some());
    let (mut summary, mut notes) = (Summary::default(), Notes::default());
    while let Some(record) = reader
        .next()
        .map_err(|error| format!("{}: {error}", options.input))?
    {
        let packet = decode::decode(record.link_type, record.data, record.wire_len);
        notes.clear();
        let found = (packet.present & TCP != 0)
            .then(|| flows.see(&packet, record.time_ns, &options.ports, &mut notes));
        if found.is_none() {
            dissect::datagram(&options.ports, &packet, &mut notes);
        }
        summary.count(&record, packet.present, found.as_ref(), &notes);
        let place = (record.time_ns, record.data.len());
        table
            .push(place, &packet, found.as_ref(), &notes)
            .map_err(|error| format!("{}: {error}", options.output))?;
        if !flows.ended.is_empty() {
            connections.take(flows.ended.drain(..))?;
        }
    }
    let header = reader.header();
    summary.link_type = header.link_type;
    summary.snaplen = header.snaplen;
    summary.nanosecond = header.nanosecond;
    summary.cut = reader.cut;
    summary.streams = flows.streams.into();
    summary.evicted = flows.evicted;
    connections.take(flows.finish())?;
    Ok(summary)
}

impl Summary {
    #[inline]
    fn count(&mut self, record: &Record, present: u8, found: Option<&Found>, notes: &Notes) {
        self.packets += 1;
        self.wire_bytes += u64::from(record.wire_len);
        self.captured_bytes += record.data.len() as u64;
        self.snapped += u64::from((record.data.len() as u64) < record.wire_len.into());
        if present & NET == 0 {
            self.unknown += 1;
            if !decode::supports(record.link_type) {
                *self.unknown_links.entry(record.link_type).or_default() += 1;
            }
        }
        self.first_ns = Some(
            self.first_ns
                .map_or(record.time_ns, |first| first.min(record.time_ns)),
        );
        self.last_ns = Some(
            self.last_ns
                .map_or(record.time_ns, |last| last.max(record.time_ns)),
        );
        self.retransmissions +=
            u64::from(found.is_some_and(|found| found.verdict.is_retransmission()));
        let known = notes.types.iter().filter(|&&kind| dissect::is_known(kind));
        let known = known.count();
        self.app_messages += known as u64;
        self.app_unknown += u64::from(known < notes.types.len());
    }
}
