//! Finds the kernel's files below /proc and /sys that only root of the machine may read, and covers them in a node.
//!
//! The kernel compares the reader with the owner of such a file, and a node's root has the number of the machine's. So the
//! modes do not keep a node out; only a cover does.

use super::{paths, tree};
use crate::os::Res;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Files that every user may open, but that show kernel addresses or the keyrings of whoever reads them.
const ROOTS: [&str; 5] = ["kallsyms", "keys", "key-users", "sched_debug", "timer_list"];
/// Directories below /sys with files that only root may read: firmware tables, serial numbers, the energy that the machine
/// uses (CVE-2020-8694), allocations. `pci`: a device's registers can be mapped from its files (Documentation/PCI/sysfs-pci.rst).
const DIRECTORIES: [&str; 4] = [
    "firmware",
    "kernel/slab",
    "devices/virtual/dmi",
    "devices/virtual/powercap",
];
const PCI: &str = "pci";
/// Directories of /sys that are searched for other files of root. Reading one can change the machine: class/zram-control/hot_add
/// makes a device. The others hold thousands of files of processors and devices.
const SEARCHED: [&str; 4] = ["class", "fs", "kernel", "power"];
const ALL_READ: u32 = 0o004;

/// Paths that nodes see as empty files, in `sys` also as empty directories (true).
pub struct KernelFiles {
    proc: Vec<PathBuf>,
    sys: Vec<(PathBuf, bool)>,
}

impl KernelFiles {
    /// Searches the machine's /proc and /sys; a node's have the same names.
    pub fn find() -> Self {
        let (top, mut proc) = (Path::new("/proc"), Vec::new());
        if let Ok(about) = fs::metadata(top) {
            search(top, about.dev(), &mut proc);
        }
        Self {
            proc,
            sys: of_sys(Path::new("/sys")),
        }
    }

    /// Covers the files of /proc with `empty`, an empty file on a read-only mount.
    pub fn cover_proc(&self, empty: &Path) -> Res<()> {
        each(self.proc.iter(), |path| tree::bind(empty, path))
    }

    /// Attaches `sysfs` at /sys and covers what nodes may not read in it, read only. `own_root`: the node has the root of an
    /// image, where only its empty /sys and the covers in /proc are at hand.
    pub fn mount_sys(&self, sysfs: &OwnedFd, own_root: bool) -> Res<()> {
        let sys = Path::new("/sys");
        let (directory, file) = match self.proc.first() {
            Some(covered) if own_root => (sys, covered.as_path()),
            _ => (Path::new(paths::NOTHING), Path::new(paths::NO_FILE)),
        };
        let covers: Vec<_> = self
            .sys
            .iter()
            .map(|(_, is_directory)| tree::clone(if *is_directory { directory } else { file }))
            .collect();
        tree::attach(sysfs, libc::AT_FDCWD, sys).map_err(|e| format!("/sys: {e}"))?;
        let mut covers = covers.into_iter();
        each(self.sys.iter().map(|(path, _)| path), |path| {
            let cover = covers.next().ok_or(io::ErrorKind::NotFound)??;
            tree::change_detached(&cover, tree::RDONLY | tree::NOSUID | tree::NODEV)?;
            tree::attach(&cover, libc::AT_FDCWD, path)
        })
    }
}

/// Covers each path; one that this node lacks needs no cover.
fn each<'a>(
    paths: impl Iterator<Item = &'a PathBuf>,
    mut cover: impl FnMut(&Path) -> io::Result<()>,
) -> Res<()> {
    for path in paths {
        match cover(path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                return Err(format!("{} cannot be covered: {e}", path.display()));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Collects files below a directory of /proc or /sys; leaves out processes, and the network's settings, which are the
/// node's own.
fn search(directory: &Path, device: u64, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        let process = name.bytes().all(|byte| byte.is_ascii_digit());
        let Ok(about) = entry.metadata() else {
            continue; // it has vanished
        };
        if about.file_type().is_symlink() || (process && directory == Path::new("/proc")) {
            continue;
        }
        if about.is_dir() {
            // The latter is covered as a whole.
            let apart = ["/proc/sys/net", "/sys/kernel/slab"].map(Path::new);
            // Another file system is mounted by whoever reads its directory (binfmt_misc), and a node does not have it.
            if !apart.contains(&path.as_path()) && about.dev() == device {
                search(&path, device, found);
            }
        } else if root_only(&about) || (directory == Path::new("/proc") && ROOTS.contains(&&*name))
        {
            found.push(path);
        }
    }
}

fn root_only(about: &fs::Metadata) -> bool {
    about.is_file() && about.mode() & ALL_READ == 0
}

fn of_sys(sys: &Path) -> Vec<(PathBuf, bool)> {
    let devices = fs::read_dir(sys.join("devices"))
        .into_iter()
        .flatten()
        .flatten();
    let buses = devices
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(PCI))
        .map(|entry| entry.path());
    let named = DIRECTORIES.iter().map(|name| sys.join(name));
    let covered: Vec<PathBuf> = named.filter(|path| path.is_dir()).chain(buses).collect();
    let mut files = Vec::new();
    for place in SEARCHED.map(|name| sys.join(name)) {
        if let Ok(about) = fs::metadata(&place) {
            search(&place, about.dev(), &mut files);
        }
    }
    files.retain(|file| !covered.iter().any(|top| file.starts_with(top)));
    let files = files.into_iter().map(|path| (path, false));
    covered
        .into_iter()
        .map(|path| (path, true))
        .chain(files)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn finds_files_that_not_all_users_may_read_and_keys() {
        let found = KernelFiles::find().proc;
        let all = fs::read_dir("/proc").unwrap().flatten();
        for entry in all.filter(|entry| entry.file_type().unwrap().is_file()) {
            let secret = entry.metadata().unwrap().mode() & ALL_READ == 0;
            let named = ROOTS.contains(&entry.file_name().to_str().unwrap());
            assert_eq!(found.contains(&entry.path()), secret || named, "{entry:?}");
        }
        assert!(found.iter().all(|path| !path.starts_with("/proc/sys/net")));
    }

    #[test]
    fn a_file_below_a_directory_is_found_by_its_mode() {
        let top = std::env::temp_dir().join(format!("vnet-kernel-files-{}", std::process::id()));
        fs::create_dir_all(top.join("1")).unwrap();
        for (name, mode) in [("1/secret", 0o400), ("1/plain", 0o444)] {
            fs::write(top.join(name), "x").unwrap();
            fs::set_permissions(top.join(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        let (mut found, device) = (Vec::new(), fs::metadata(&top).unwrap().dev());
        search(&top, device, &mut found);
        fs::remove_dir_all(&top).unwrap();
        assert_eq!(found, [top.join("1/secret")]);
    }

    #[test]
    fn buses_and_named_directories_and_files_of_root_are_found() {
        let top = std::env::temp_dir().join(format!("vnet-sys-{}", std::process::id()));
        for name in [
            "devices/pci0000:00",
            "devices/virtual/net",
            "firmware/acpi",
            "class/zram-control",
        ] {
            fs::create_dir_all(top.join(name)).unwrap();
        }
        let file = top.join("class/zram-control/hot_add");
        fs::write(&file, "x").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o400)).unwrap();
        let found = of_sys(&top);
        fs::remove_dir_all(&top).unwrap();
        let (firmware, bus) = (top.join("firmware"), top.join("devices/pci0000:00"));
        assert_eq!(found, [(firmware, true), (bus, true), (file, false)]);
    }
}
