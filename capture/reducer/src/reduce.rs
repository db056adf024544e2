//! From the pcap to the table: reads, decodes, analyses, writes.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use crate::decode;
use crate::dissect::{self, Notes};
use crate::flows::{Flows, Found};
use crate::options::Options;
use crate::packet::{NET, TCP};
use crate::pcap::{Reader, Record};
use crate::summary::Summary;
use crate::table::Table;

/// Reduces `options.input`. The table appears under its name only when it is complete.
pub fn run(options: &Options) -> Result<Summary, String> {
    let source: Box<dyn Read> = if options.input == "-" {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(&options.input).map_err(|error| format!("{}: {error}", options.input))?)
    };
    let reader = Reader::new(source).map_err(|error| format!("{}: {error}", options.input))?;
    // The rename at the end would put a file in the place of a device.
    if fs::metadata(&options.output).is_ok_and(|found| !found.is_file()) {
        return Err(format!(
            "{}: is there and is no regular file; name another",
            options.output
        ));
    }
    let part = format!("{}.part-{}", options.output, std::process::id());
    let outcome = write(reader, options, Path::new(&part)).and_then(|summary| {
        fs::rename(&part, &options.output)
            .map_err(|error| format!("{}: {error}", options.output))?;
        Ok(summary)
    });
    if outcome.is_err() && Path::new(&part).exists() {
        fs::remove_file(&part).map_err(|error| format!("{part}: cannot be removed: {error}"))?;
    }
    outcome
}

fn write(reader: Reader<impl Read>, options: &Options, part: &Path) -> Result<Summary, String> {
    let at_output = |error: &dyn std::fmt::Display| format!("{}: {error}", options.output);
    let file = File::create(part).map_err(|error| at_output(&error))?;
    let sink = BufWriter::with_capacity(1 << 20, file);
    let mut table = Table::new(sink).map_err(|error| at_output(&error))?;
    let summary = rows(reader, options, &mut table)?;
    table
        .close(summary.json())
        .map_err(|error| at_output(&error))?;
    Ok(summary)
}

/// Every record of `reader` into `table`.
fn rows<R: Read, W: Write + Send>(
    mut reader: Reader<R>,
    options: &Options,
    table: &mut Table<W>,
) -> Result<Summary, String> {
    let mut flows = Flows::new(options.max_flows);
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
    }
    let header = reader.header();
    summary.link_type = header.link_type;
    summary.snaplen = header.snaplen;
    summary.nanosecond = header.nanosecond;
    summary.cut = reader.cut;
    summary.streams = flows.streams.into();
    summary.evicted = flows.evicted;
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
            if !decode::knows(record.link_type) {
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
