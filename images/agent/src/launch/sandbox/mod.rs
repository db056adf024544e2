//! Confines light nodes: decides which of the host's files their programs see, and which system calls and
//! capabilities they have (docs/decisions/contained-nodes.md).

mod accounts;
mod copies;
mod devices;
mod hidden;
mod host_files;
mod image;
mod kernel_files;
mod lazy_mounts;
mod paths;
mod private;
mod privileges;
mod root_template;
mod run_directories;
mod seccomp;
mod space;
mod tree;

use crate::os::{self, Res};
use crate::proto::{Mounts, SandboxSpec};
pub use accounts::own_user;
use host_files::HostFiles;
use kernel_files::KernelFiles;
pub use lazy_mounts::in_mount_ns;
use paths::path_only;
use root_template::RootTemplate;
pub use space::Space;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};

/// The sandbox of one lab: a root template for each distinct set of mounts, and the seccomp filter.
pub struct Sandbox {
    templates: BTreeMap<Mounts, RootTemplate>,
    filter: Vec<libc::sock_filter>,
    host: HostFiles,
    logs: Option<PathBuf>,
    disk_bytes: u64,
}

/// The user to whose limits the kernel counts the resources that the node uses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Charged {
    /// The node has a user namespace that a user of its own created.
    OwnUser,
    /// The node has a user namespace that root of the machine created.
    Root,
    /// The node has no user namespace: its root is root of the machine.
    NoUsers,
}

impl Charged {
    /// Makes root the effective user of a node's process that runs as a user of its own; map the users of its
    /// namespace before. Any other node's process is root already, and this lowers the limits that it shares
    /// with root of the machine.
    pub fn become_root(self) -> Res<()> {
        match self {
            Self::OwnUser => accounts::become_root(),
            Self::Root | Self::NoUsers => accounts::share_roots_limits(),
        }
        .map_err(|e| format!("sandbox: the node's user: {e}"))
    }
}

impl Sandbox {
    /// Makes the sandbox of a lab without any root template yet. `nodes` is the directory that holds the
    /// nodes' directories.
    pub fn new(spec: &SandboxSpec, nodes: &Path) -> Res<Self> {
        let mut hidden: Vec<PathBuf> = spec.hidden.iter().map(PathBuf::from).collect();
        hidden.extend(nodes.parent().map(Path::to_path_buf));
        Ok(Self {
            templates: BTreeMap::new(),
            filter: seccomp::program(),
            host: HostFiles {
                hidden,
                replaced: spec
                    .replaced
                    .iter()
                    .map(|(path, file)| (path.into(), file.into()))
                    .collect(),
                nodes: nodes.to_path_buf(),
                kernel: KernelFiles::find(),
            },
            logs: spec.logs.as_ref().map(PathBuf::from),
            disk_bytes: spec.disk_bytes,
        })
    }

    /// Builds the root template for these mounts, unless it exists.
    pub fn prepare(&mut self, mounts: &Mounts) -> Res<()> {
        if !self.templates.contains_key(mounts) {
            let template = root_template::build(&self.host, mounts)?;
            self.templates.insert(mounts.clone(), template);
        }
        Ok(())
    }

    /// Returns the descriptors that a new node with these mounts must keep open until `enter`: the mount
    /// namespace and the root of its template. Empty if no template is prepared.
    pub fn descriptors(&self, mounts: &Mounts) -> Vec<RawFd> {
        let template = self.templates.get(mounts).into_iter();
        template
            .flat_map(|template| [template.mount_ns.as_raw_fd(), template.root.as_raw_fd()])
            .collect()
    }

    /// Moves the calling node process into a copy of its root template. With a container image, also mounts
    /// the node's writable file systems; `disk_bytes` is their size, None for the lab's default. Returns the
    /// open directory for logs, None if the lab has none. Fails if `prepare` was not called with these
    /// mounts.
    pub fn enter(&self, name: &str, mounts: &Mounts, disk_bytes: Option<u64>) -> Res<Option<Logs>> {
        let template = self.templates.get(mounts).ok_or("sandbox: not prepared")?;
        let logs = self.logs.as_deref().map(Logs::open).transpose()?;
        private::enter(template)?;
        if template.image {
            // The root of an image lies in the node's own file system, so it cannot be mounted later, before
            // the first program.
            private::populate(template, &self.host, name, self.disk(disk_bytes))?;
        }
        Ok(logs)
    }

    /// Mounts /sys in the node of process `pid` and, unless `enter` did so, its writable file systems. The
    /// launcher calls this once for each node, before its first program. `disk_bytes`: size of these file
    /// systems, None for the lab's default. If the kernel refuses a sysfs, prints this and leaves /sys empty.
    pub fn populate(
        &self,
        pid: i32,
        name: &str,
        mounts: &Mounts,
        disk_bytes: Option<u64>,
    ) -> Res<()> {
        let template = self.templates.get(mounts).ok_or("sandbox: not prepared")?;
        let sysfs = lazy_mounts::sysfs(pid);
        lazy_mounts::in_mount_ns(pid, || {
            match sysfs {
                Ok(sysfs) => {
                    let kernel = &self.host.kernel;
                    let shown = kernel.mount_sys(&sysfs, template.image, mounts.cards);
                    shown.map_err(|e| format!("sandbox: {e}"))?;
                }
                // Without /sys a node lacks only /sys/class/net.
                Err(e) => eprintln!("node {name}: /sys cannot be mounted: {e}; it stays empty"),
            }
            if template.image {
                return Ok(());
            }
            private::populate(template, &self.host, name, self.disk(disk_bytes))
        })
    }

    fn disk(&self, requested: Option<u64>) -> u64 {
        requested.unwrap_or(self.disk_bytes)
    }

    /// Moves this process into a new user namespace and the new namespaces of `flags`. They are created under
    /// `user`, which no other node has, or under root if that fails. Returns the user who is charged. Returns
    /// `NoUsers`, without any new namespace, if the kernel refuses a user namespace.
    pub fn unshare(user: Option<u32>, flags: libc::c_int) -> Charged {
        match accounts::unshare(user, flags | libc::CLONE_NEWUSER) {
            Ok(true) => Charged::OwnUser,
            Ok(false) => Charged::Root,
            Err(_) => Charged::NoUsers,
        }
    }

    /// Drops the capabilities and system calls that a node does not need, from this process and its future
    /// children. `own_users`: the node has a user namespace. Returns false if the kernel has no seccomp
    /// filters.
    pub fn drop_privileges(&self, own_users: bool) -> Res<bool> {
        privileges::reduce(own_users, &self.filter).map_err(|e| format!("sandbox: privileges: {e}"))
    }
}

/// The directory for logs, which an agent opens before it enters the sandbox. It is the only directory
/// outside the sandbox that the agent writes to.
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

    /// Returns the number of the directory's descriptor.
    pub fn raw(&self) -> RawFd {
        self.directory.as_raw_fd()
    }

    /// Returns the same directory with the descriptor `to`; the caller has closed the old descriptor already.
    pub fn moved(self, to: OwnedFd) -> Self {
        let Self { path, directory } = self;
        std::mem::forget(directory);
        Self {
            path,
            directory: to,
        }
    }

    /// Opens the log `path` for appending, and creates it if needed; None if it is no direct entry of this
    /// directory, an error if it is a symbolic link.
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

/// Maps each user and group of this process's user namespace to itself in that of process `pid`: the new
/// namespace only limits the capabilities of root.
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
