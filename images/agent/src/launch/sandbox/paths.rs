//! Defines the paths that several parts of the sandbox use, and makes mount points.

use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The directory of the root template that holds shared paths until the node has mounted the private
/// directory in which they belong.
const STAGE: &str = "/tmp/shared";
/// The directory of the root template that holds the files of a container image until the node makes them its
/// root.
pub const IMAGE: &str = "/tmp/image";
/// The directory of the root template that holds the directories of which nodes get copies, without the
/// mounts below them.
const COPIES: &str = "/tmp/copies";
/// The empty directory of the root template that covers hidden directories.
pub const NOTHING: &str = "/tmp/nothing";
/// The empty file of the root template that covers hidden files.
pub const NO_FILE: &str = "/tmp/no-file";
/// Directories that each node mounts for itself.
const PRIVATE: [&str; 4] = ["/run", "/tmp", "/var/tmp", "/dev/shm"];
/// Options of a tmpfs that holds only mount points.
pub const SMALL: &str = "size=256k,nr_inodes=4096,mode=755";

/// Returns whether the path is or lies in a directory that each node mounts for itself (`PRIVATE`).
pub fn is_private(path: &Path) -> bool {
    PRIVATE.iter().any(|top| path.starts_with(top))
}

/// Returns the place below `STAGE` of the staged shared path with this index.
pub fn staged(index: usize) -> PathBuf {
    Path::new(STAGE).join(index.to_string())
}

/// Returns the place below `COPIES` of the copied directory with this index.
pub fn copied(index: usize) -> PathBuf {
    Path::new(COPIES).join(index.to_string())
}

/// Creates a directory or, if `directory` is false, an empty file to mount on, with all parent directories.
/// Keeps what exists.
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

/// Creates a directory with exactly this mode, independent of the umask; an error if the path exists.
pub fn make(path: &Path, mode: u32) -> io::Result<()> {
    fs::create_dir(path)?;
    fs::set_permissions(path, Permissions::from_mode(mode))
}

/// Opens a path with O_PATH: the descriptor names the file, but cannot read or write it.
pub fn path_only(path: &Path) -> io::Result<OwnedFd> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH)
        .open(path)
        .map(OwnedFd::from)
}
