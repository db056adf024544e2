//! Creates and removes a lab's directories: one per node beside the control socket, and one for the programs'
//! logs.

use super::Options;
use crate::os::Res;
use std::fs;
use std::path::{Path, PathBuf};

/// The directory in which a launcher in a VM makes these directories, since a VM does not see the host's
/// state directory.
const IN_A_VM: &str = "/run/vnet";

#[derive(Clone)]
pub struct Directories {
    nodes: PathBuf,
    logs: Option<PathBuf>,
}

impl Directories {
    pub fn new(options: &Options) -> Res<Self> {
        if !options.port.is_empty() {
            return Self::in_a_vm(options);
        }
        let socket = std::path::absolute(&options.socket)
            .map_err(|e| format!("--socket {}: {e}", options.socket))?;
        let logs = options
            .logs
            .as_ref()
            .map(std::path::absolute)
            .transpose()
            .map_err(|e| format!("--logs: {e}"))?;
        Ok(Self {
            nodes: socket.parent().unwrap_or(Path::new("/")).join("nodes"),
            logs,
        })
    }

    fn in_a_vm(options: &Options) -> Res<Self> {
        let root = Path::new(IN_A_VM);
        let logs = options
            .logs
            .as_ref()
            .map_or(root.join("logs"), PathBuf::from);
        fs::create_dir_all(&logs).map_err(|e| format!("{}: {e}", logs.display()))?;
        Ok(Self {
            nodes: root.join("nodes"),
            logs: Some(logs),
        })
    }

    /// Returns the log file of a program; None if there is no directory for logs.
    pub fn log(&self, node: &str, software: &str) -> Option<String> {
        let name = format!("{node}.{software}.log");
        self.logs
            .as_ref()
            .map(|dir| dir.join(name).to_string_lossy().into_owned())
    }

    /// Returns the directory that holds the nodes' directories.
    pub fn nodes(&self) -> &Path {
        &self.nodes
    }

    pub fn directory(&self, node: &str) -> PathBuf {
        self.nodes.join(node)
    }

    /// Creates the node's directory unless it exists; returns its path.
    pub fn make(&self, node: &str) -> Res<String> {
        let dir = self.directory(node);
        fs::create_dir_all(&dir).map_err(|e| {
            format!(
                "{}: {e}; the state directory must be writable",
                dir.display()
            )
        })?;
        Ok(dir.to_string_lossy().into_owned())
    }

    /// Removes the node's directory with its files, if it exists; prints errors.
    pub fn remove(&self, node: &str) {
        let dir = self.directory(node);
        if let Err(e) = fs::remove_dir_all(&dir)
            && e.kind() != std::io::ErrorKind::NotFound
        {
            eprintln!("{}: cannot be removed: {e}", dir.display());
        }
    }

    /// Removes the directory that held the nodes' directories, if it exists and is empty; prints an error
    /// otherwise.
    pub fn remove_root(&self) {
        if let Err(e) = fs::remove_dir(&self.nodes)
            && e.kind() != std::io::ErrorKind::NotFound
        {
            eprintln!("{}: cannot be removed: {e}", self.nodes.display());
        }
    }
}
