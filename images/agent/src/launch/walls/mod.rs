//! Contained nodes: what a node's programs see of the machine and may ask of its kernel (docs/decisions/contained-nodes.md).

mod devices;
mod filter;
mod image;
mod mould;
mod own;
mod privileges;
mod secrets;
mod tree;
mod visit;

use crate::os::{self, Res};
use crate::proto::{Opened, Walls};
use mould::Mould;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The walls of one lab: a prepared view for each different set of opened paths, and the filter.
pub struct Built {
    moulds: BTreeMap<Opened, Mould>,
    filter: Vec<libc::sock_filter>,
    outside: Outside,
    logs: Option<PathBuf>,
    disk_bytes: u64,
}

/// What of the machine's files no node of the lab sees.
struct Outside {
    hidden: Vec<PathBuf>,
    /// Where a file of the lab's own stands: place -> that file.
    replaced: BTreeMap<PathBuf, PathBuf>,
    /// Where the directories of nodes are; what is above belongs to the lab.
    nodes: PathBuf,
}

/// Opens a place without the right to read or write there.
pub fn path_only(path: &Path) -> io::Result<OwnedFd> {
    std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH)
        .open(path)
        .map(OwnedFd::from)
}

impl Built {
    pub fn new(asked: &Walls, nodes: &Path) -> Res<Self> {
        let mut hidden: Vec<PathBuf> = asked.hides.iter().map(PathBuf::from).collect();
        hidden.extend(nodes.parent().map(Path::to_path_buf));
        Ok(Self {
            moulds: BTreeMap::new(),
            filter: filter::program(),
            outside: Outside {
                hidden,
                replaced: asked
                    .replaces
                    .iter()
                    .map(|(place, file)| (place.into(), file.into()))
                    .collect(),
                nodes: nodes.to_path_buf(),
            },
            logs: asked.logs.as_ref().map(PathBuf::from),
            disk_bytes: asked.disk_bytes,
        })
    }

    /// Prepares the view for nodes with these opened paths, unless it is there.
    pub fn prepare(&mut self, opened: &Opened) -> Res<()> {
        if !self.moulds.contains_key(opened) {
            let made = mould::cast(&self.outside, opened)?;
            self.moulds.insert(opened.clone(), made);
        }
        Ok(())
    }

    /// Descriptors that a node with these opened paths begins with.
    pub fn needs(&self, opened: &Opened) -> Vec<RawFd> {
        let mould = self.moulds.get(opened).into_iter();
        mould
            .flat_map(|mould| [mould.mounts.as_raw_fd(), mould.root.as_raw_fd()])
            .collect()
    }

    /// The node's process goes behind its walls; what it keeps outside is the directory for logs.
    pub fn enter(&self, name: &str, opened: &Opened, disk_bytes: Option<u64>) -> Res<Option<Logs>> {
        let mould = self.moulds.get(opened).ok_or("walls: not prepared")?;
        let logs = self.logs.as_deref().map(Logs::open).transpose()?;
        own::enter(mould)?;
        if mould.image {
            // Its root is in its own file system.
            own::furnish(mould, &self.outside, name, self.disk(disk_bytes))?;
        }
        Ok(logs)
    }

    /// From outside and once, before the node's first program: /sys of its network, and what it writes to.
    pub fn furnish(
        &self,
        pid: i32,
        name: &str,
        opened: &Opened,
        disk_bytes: Option<u64>,
    ) -> Res<()> {
        let mould = self.moulds.get(opened).ok_or("walls: not prepared")?;
        let devices = visit::devices(pid);
        visit::inside(pid, || {
            let shown =
                devices.and_then(|sys| tree::attach(&sys, libc::AT_FDCWD, Path::new("/sys")));
            // Where that is refused only /sys/class/net is missing.
            if let Err(e) = shown {
                eprintln!("node {name}: /sys cannot be mounted: {e}; it stays empty");
            }
            if mould.image {
                return Ok(());
            }
            own::furnish(mould, &self.outside, name, self.disk(disk_bytes))
        })
    }

    fn disk(&self, asked: Option<u64>) -> u64 {
        asked.unwrap_or(self.disk_bytes)
    }

    /// Gives up what a node has no need of; false where the kernel has no filters.
    pub fn give_up(&self, own_users: bool) -> Res<bool> {
        privileges::give_up(own_users, &self.filter).map_err(|e| format!("walls: privileges: {e}"))
    }
}

/// The one directory outside that a contained agent writes to, held open since before it was contained.
pub struct Logs {
    path: PathBuf,
    directory: OwnedFd,
}

impl Logs {
    fn open(path: &Path) -> Res<Self> {
        let directory = path_only(path).map_err(|e| format!("logs: {}: {e}", path.display()))?;
        Ok(Self {
            path: path.to_path_buf(),
            directory,
        })
    }

    pub fn raw(&self) -> RawFd {
        self.directory.as_raw_fd()
    }

    /// The same by another descriptor; the old one is closed already.
    pub fn moved(self, to: OwnedFd) -> Self {
        let Self { path, directory } = self;
        std::mem::forget(directory);
        Self {
            path,
            directory: to,
        }
    }

    /// Opens a log of that directory for appending; None where `path` is elsewhere.
    pub fn append(&self, path: &Path) -> Option<io::Result<std::fs::File>> {
        let name = path
            .strip_prefix(&self.path)
            .ok()
            .filter(|rest| rest.components().count() == 1)?;
        let opened = tree::c(name).and_then(|name| {
            let flags = libc::O_WRONLY
                | libc::O_APPEND
                | libc::O_CREAT
                | libc::O_CLOEXEC
                | libc::O_NOFOLLOW;
            // SAFETY: the descriptor is open, the name a valid C string.
            os::own(unsafe {
                libc::openat(self.directory.as_raw_fd(), name.as_ptr(), flags, 0o644)
            })
        });
        Some(opened.map(std::fs::File::from))
    }
}

/// The users of the machine, each as itself: what a user namespace adds is that being root counts within it only.
pub fn map_users(pid: i32) -> io::Result<()> {
    for map in ["uid_map", "gid_map"] {
        let own = std::fs::read_to_string(format!("/proc/self/{map}"))?;
        let same: String = own
            .lines()
            .filter_map(|line| {
                let mut fields = line.split_whitespace();
                let (inside, _, count) = (fields.next()?, fields.next()?, fields.next()?);
                Some(format!("{inside} {inside} {count}\n"))
            })
            .collect();
        std::fs::write(format!("/proc/{pid}/{map}"), same)?;
    }
    Ok(())
}
