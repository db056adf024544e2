//! Handles a program's output: writes it to the log, keeps the last lines for error reports, and searches it
//! for the readiness text.

use super::Supervised;
use crate::clock;
use crate::os;
use serde_json::json;
use std::io::Write;

const KEPT_LINES: usize = 20;
const LONGEST_LINE: usize = 4096;
/// The most bytes of output that one program's log keeps, so that endless output does not fill the host's
/// disk.
const LOG_BYTES: u64 = 64 << 20;

impl Supervised {
    /// Reads available output of the program, at most 8 KiB; closes the pipe at its end or after an error.
    pub fn on_output(&mut self) {
        let Some(fd) = self.output_fd() else {
            return;
        };
        let mut chunk = [0u8; 8192];
        match os::read(fd, &mut chunk) {
            Ok(0) => self.output = None,
            Ok(n) => self.take_output(&chunk[..n]),
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => self.output = None,
        }
    }

    fn take_output(&mut self, bytes: &[u8]) {
        self.keep(bytes);
        for byte in bytes {
            if *byte == b'\n' || self.line.len() >= LONGEST_LINE {
                self.end_line();
            }
            if *byte != b'\n' {
                self.line.push(*byte);
            }
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let Some(log) = &mut self.log else {
            return;
        };
        let room = LOG_BYTES
            .saturating_sub(self.logged)
            .min(bytes.len() as u64) as usize;
        self.times.note(self.logged);
        self.logged += room as u64;
        let written = log.write_all(&bytes[..room]);
        if written.is_ok() && room == bytes.len() {
            return;
        }
        let lost = "further output is discarded";
        self.messages.push(match written {
            Ok(()) => json!({
                "event": "warning", "code": "log", "suspect": false,
                "text": format!("software {}: its log is longer than {} MiB; {lost}", self.name, LOG_BYTES >> 20),
                "remedy": "let the program write less"}),
            Err(e) => json!({"event": "error", "text": format!("software {}: log: {e}; {lost}", self.name)}),
        });
        self.log = None;
    }

    fn end_line(&mut self) {
        let text = String::from_utf8_lossy(&std::mem::take(&mut self.line)).into_owned();
        if self
            .spec
            .ready
            .log
            .as_ref()
            .is_some_and(|wanted| text.contains(wanted.as_str()))
        {
            self.seen_text = true;
            self.probe_at = clock::mono_ns();
        }
        if self.last.len() == KEPT_LINES {
            self.last.pop_front();
        }
        self.last.push_back(printable(&text));
    }

    pub(super) fn tail(&self) -> Vec<String> {
        let rest = (!self.line.is_empty()).then(|| printable(&String::from_utf8_lossy(&self.line)));
        self.last.iter().cloned().chain(rest).collect()
    }
}

/// Escapes control characters except tabs, and bidirectional marks, since the text may reach a terminal.
fn printable(text: &str) -> String {
    let order = |c: char| {
        (c.is_control() && c != '\t')
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match order(c) {
            true => out.extend(c.escape_default()),
            false => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_control_sequences() {
        let escaped = printable("\u{1b}]0;owned\u{7}a\tb \u{202e}txt é\r");
        assert_eq!(
            escaped,
            r"\u{1b}]0;owned\u{7}a\tb \u{202e}txt é\r".replace(r"\tb", "\tb")
        );
        assert!(escaped.chars().all(|c| !c.is_control() || c == '\t'));
    }
}
