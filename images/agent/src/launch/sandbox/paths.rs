//! Paths that the sandbox's parts share, and how mount points on them are made.

use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Shared paths that lie below a private directory wait here until the node has mounted that directory.
const STAGE: &str = "/tmp/shared";
/// The files of a node's container image wait here.
pub const IMAGE: &str = "/tmp/image";
/// What covers hidden directories and files.
pub const NOTHING: &str = "/tmp/nothing";
pub const NO_FILE: &str = "/tmp/no-file";
/// Directories that each node mounts for itself.
const PRIVATE: [&str; 4] = ["/run", "/tmp", "/var/tmp", "/dev/shm"];
/// Options of a tmpfs that holds only mount points.
pub const SMALL: &str = "size=256k,nr_inodes=4096,mode=755";

/// Whether the path lies in a directory that each node mounts for itself.
pub fn is_private(path: &Path) -> bool {
    PRIVATE.iter().any(|top| path.starts_with(top))
}

/// Where the staged path with this index waits.
pub fn staged(index: usize) -> PathBuf {
    Path::new(STAGE).join(index.to_string())
}

/// Creates a directory or an empty file to mount on, unless the path exists.
pub fn make_mount_point(path: &Path, directory: bool) -> io::Result<()> {
    if directory {
        return fs::create_dir_all(path);
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .map(drop)
}

/// Creates a directory with this mode, whatever the umask.
pub fn make(path: &Path, mode: u32) -> io::Result<()> {
    fs::create_dir(path)?;
    fs::set_permissions(path, Permissions::from_mode(mode))
}
