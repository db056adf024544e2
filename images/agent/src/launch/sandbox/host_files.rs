//! Defines which files of the host the sandbox hides from its nodes or replaces.

use super::kernel_files::KernelFiles;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The files of the host that no node of the lab sees, or that it sees replaced.
pub struct HostFiles {
    /// Paths that the lab hides from its nodes, in addition to those of `hidden::find`.
    pub hidden: Vec<PathBuf>,
    /// The files of the lab that nodes see in place of files of the host, by the path on the host.
    pub replaced: BTreeMap<PathBuf, PathBuf>,
    /// The directory with one directory for each node; its parent directory belongs to the lab and is hidden.
    pub nodes: PathBuf,
    /// The paths of /proc and /sys that each node sees as empty files and directories.
    pub kernel: KernelFiles,
}
