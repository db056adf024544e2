//! Starts a root shell on the serial console when somebody presses Enter there; before that the console
//! uses no memory.

use crate::os::Res;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;

const LINE: &str = "/dev/ttyS0";
const SHELL: &str = "/bin/sh";

/// The serial line, and the pid of the shell that runs on it.
pub struct Console {
    line: File,
    shell: Option<i32>,
}

impl Console {
    /// Opens the serial line; None if the VM has none.
    pub fn open() -> Option<Self> {
        let flags = libc::O_NOCTTY | libc::O_NONBLOCK;
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(flags)
            .open(LINE);
        opened.ok().map(|line| Self { line, shell: None })
    }

    /// Returns the descriptor to poll; -1 while a shell reads the line.
    pub fn descriptor(&self) -> i32 {
        match self.shell {
            None => self.line.as_raw_fd(),
            Some(_) => -1,
        }
    }

    /// Discards the line that was typed and starts the shell. After an error the console has no shell.
    pub fn typed(&mut self) -> Res<()> {
        let mut dropped = [0; 256];
        let failed = |e| format!("{LINE}: {e}; the console has no shell");
        if self.line.read(&mut dropped).map_err(failed)? == 0 {
            return Err(format!("{LINE}: closed; the console has no shell"));
        }
        let line = OpenOptions::new().read(true).write(true).open(LINE);
        let input = OwnedFd::from(line.map_err(failed)?);
        let (output, errors) = (
            input.try_clone().map_err(failed)?,
            input.try_clone().map_err(failed)?,
        );
        let mut command = Command::new(SHELL);
        command
            .arg("-i")
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("HOME", "/root")
            .env("TERM", "linux");
        let shell = crate::node::spawn_on_terminal(&command, [input, output, errors]);
        self.shell = Some(shell.map_err(failed)?);
        Ok(())
    }

    /// Handles the end of process `pid`: if the process was the shell, the console waits for Enter again.
    pub fn ended(&mut self, pid: i32) {
        if self.shell == Some(pid) {
            self.shell = None;
        }
    }
}
