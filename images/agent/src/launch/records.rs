//! Collects the message records of all nodes and appends them to one file; the launcher flushes them at least
//! twice a second. Counts settled and received messages.

use crate::os::Res;
use std::fs::{File, OpenOptions};
use std::io::Write;

#[derive(Default)]
pub struct Records {
    file: Option<(String, File)>,
    buffer: Vec<u8>,
    /// Number of messages with a final record of their sender (`S`).
    pub settled: u64,
    /// Number of arrivals, replies included (`R`).
    pub received: u64,
}

impl Records {
    /// Flushes the records to the present file, then opens the file `path` for all later ones, and creates it
    /// if needed. Sets the counts to zero unless `path` is the present file. Records that came before the
    /// first file are kept for it.
    pub fn open(&mut self, path: &str) -> Res<()> {
        self.flush()?;
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .map_err(|e| {
                format!("messages: {path}: {e}; the directory must exist and be writable")
            })?;
        if self.file.as_ref().is_none_or(|(before, _)| before != path) {
            // Another file of records belongs to another scenario, whose counts start at zero.
            (self.settled, self.received) = (0, 0);
        }
        self.file = Some((path.to_owned(), file));
        Ok(())
    }

    pub fn push(&mut self, line: &str) {
        match line.as_bytes().first() {
            Some(b'S') => self.settled += 1,
            Some(b'R') => self.received += 1,
            _ => {}
        }
        self.buffer.extend_from_slice(line.as_bytes());
        self.buffer.push(b'\n');
    }

    pub fn waiting(&self) -> bool {
        !self.buffer.is_empty() && self.file.is_some()
    }

    pub fn flush(&mut self) -> Res<()> {
        let Some((path, file)) = &mut self.file else {
            return Ok(());
        };
        if self.buffer.is_empty() {
            return Ok(());
        }
        let outcome = file
            .write_all(&self.buffer)
            .map_err(|e| format!("messages: {path}: {e}; records are lost"));
        self.buffer.clear();
        outcome
    }
}
