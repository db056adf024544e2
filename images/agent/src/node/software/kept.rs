//! Writes the times of a program's output and the keys of its TLS connections beside its log, when the
//! program has ended.

use super::{Supervised, files};
use crate::launch::sandbox::Logs;
use crate::os::Res;
use std::fs::{self, File};
use std::io::{Read, Write};

/// The environment variable that names the file of keys (OpenSSL, NSS, curl, Python and others).
pub const VARIABLE: &str = "SSLKEYLOGFILE";
/// The largest number of times that are kept for one program; above it, every second time is dropped.
const MOST_TIMES: usize = 1 << 16;
const FIRST_GAP_NS: i64 = 1_000_000;
/// The most bytes of keys of one program.
const MOST_KEYS: u64 = 16 << 20;

/// The times at which parts of the output were read. Each time holds for the bytes of the log from one offset
/// on.
pub struct Times {
    kept: Vec<(i64, u64)>,
    /// The offset of output that was read and has no time yet.
    pending: Option<u64>,
    last_ns: i64,
    /// Output that arrives less than this time after the last noted time gets the same time.
    gap_ns: i64,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            kept: Vec::new(),
            pending: None,
            last_ns: i64::MIN,
            gap_ns: FIRST_GAP_NS,
        }
    }
}

impl Times {
    /// Notes that output was read, which begins at this offset of the log.
    pub fn note(&mut self, offset: u64) {
        self.pending.get_or_insert(offset);
    }

    /// Gives the output that was read since the last call the time `now`.
    pub fn stamp(&mut self, now: i64) {
        let Some(offset) = self.pending.take() else {
            return;
        };
        if now < self.last_ns.saturating_add(self.gap_ns) {
            return;
        }
        if self.kept.len() == MOST_TIMES {
            let mut number = 0;
            self.kept.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.gap_ns *= 2;
        }
        self.kept.push((now, offset));
        self.last_ns = now;
    }

    /// Returns the times as lines `t_ns,offset`, and drops them.
    fn take(&mut self) -> String {
        let lines = std::mem::take(&mut self.kept).into_iter();
        lines
            .map(|(time, offset)| format!("{time},{offset}\n"))
            .collect()
    }
}

impl Supervised {
    /// Returns the path of the file to which the program writes its keys; None if it keeps none.
    pub(super) fn keys_file(&self) -> Option<String> {
        let wanted = self.spec.tls_keys;
        wanted.then(|| format!("{}/{}.keys", self.dir, self.name))
    }

    /// Appends the times of the output, and the keys, to files beside the log, if there is a log. Call it
    /// when the program has ended.
    pub fn keep_beside(&mut self, logs: Option<&Logs>) -> Res<()> {
        let Some(path) = self.log_path.clone() else {
            return Ok(());
        };
        let base = path.strip_suffix(".log").unwrap_or(&path);
        self.times.stamp(crate::clock::lab_ns());
        let times = self.times.take();
        if !times.is_empty() {
            self.append(&format!("{base}.times"), times.as_bytes(), logs)?;
        }
        let Some(from) = self.keys_file() else {
            return Ok(());
        };
        let mut keys = Vec::new();
        let read = File::open(&from).and_then(|file| file.take(MOST_KEYS).read_to_end(&mut keys));
        match read {
            // If the program made no TLS connection, the file does not exist.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(format!("software {}: {from}: {e}", self.name)),
            Ok(_) => {}
        }
        self.append(&format!("{base}.keys"), &keys, logs)?;
        fs::remove_file(&from).map_err(|e| format!("software {}: {from}: {e}", self.name))
    }

    fn append(&self, path: &str, bytes: &[u8], logs: Option<&Logs>) -> Res<()> {
        let mut file = files::open_log(&self.name, path, logs)?;
        let written = file.write_all(bytes);
        written.map_err(|e| format!("software {}: {path}: {e}", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_close_together_has_one_time_and_very_many_times_are_thinned_out() {
        let mut times = Times::default();
        times.stamp(5);
        for (now, offset) in [(10, 0), (20, 7), (FIRST_GAP_NS + 10, 9)] {
            times.note(offset);
            times.note(offset + 1); // read in the same round
            times.stamp(now);
        }
        assert_eq!(times.take(), format!("10,0\n{},9\n", FIRST_GAP_NS + 10));
        for number in 0..=MOST_TIMES as i64 {
            times.note(number as u64);
            times.stamp((number + 2) * FIRST_GAP_NS * 2);
        }
        assert_eq!(times.kept.len(), MOST_TIMES / 2 + 1);
        assert_eq!(times.kept[1].1, 2);
    }
}
