//! Finds the kernel's files below /proc and /sys that only root of the machine may read, and directories of
//! /sys that describe the machine's hardware, and mounts empty files and directories over them in each node.
//!
//! Root of a node has the same user number as root of the machine, who owns these files, so their modes would
//! let a node read them.

use super::{paths, tree};
use crate::os::Res;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Files of /proc that every user may open, but that show root kernel addresses, timers or its keyrings.
const ROOTS: [&str; 5] = ["kallsyms", "keys", "key-users", "sched_debug", "timer_list"];
/// Directories below /sys that are covered as a whole: their files show firmware tables, allocations, serial
/// numbers and the energy that the machine uses (CVE-2020-8694).
const DIRECTORIES: [&str; 4] = [
    "firmware",
    "kernel/slab",
    "devices/virtual/dmi",
    "devices/virtual/powercap",
];
/// Directories below /sys/devices whose names begin so are PCI buses, which are covered as a whole, too: a
/// program can map the registers of a device from its files (Documentation/PCI/sysfs-pci.rst).
const PCI: &str = "pci";
/// Directories of /sys that are searched for further files that only root may read. To read one can change
/// the machine: class/zram-control/hot_add makes a device. Other directories hold thousands of files of
/// processors and devices.
const SEARCHED: [&str; 4] = ["class", "fs", "kernel", "power"];
/// The mode bit by which all users may read a file.
const ALL_READ: u32 = 0o004;
/// The mode bits by which owner and group may read. A file without them cannot be read, and nodes cannot
/// write to /proc and /sys, so it needs no cover.
const ROOT_READ: u32 = 0o440;
/// A file that needs no cover, since the kernel refuses it to nodes, which lack CAP_SYSLOG
/// (kernel/printk/printk.c: check_syslog_permissions).
const REFUSED: &str = "/proc/kmsg";
/// The text in /proc/cpuinfo of User-Mode Linux (arch/um/kernel/um_arch.c), which is the lab kernel.
const LABS_KERNEL: &str = "User Mode Linux";
/// The directory of /sys with a link to the directory of each network device.
const NETWORK: &str = "class/net";

/// The paths to cover. `sys` has whether a path is a directory, which an empty directory covers; empty files
/// cover all others.
#[derive(Default)]
pub struct KernelFiles {
    proc: Vec<PathBuf>,
    sys: Vec<(PathBuf, bool)>,
}

impl KernelFiles {
    /// Searches the /proc and /sys of this process for paths to cover; nodes have the same names there.
    /// Returns no paths in a lab kernel, whose files show nothing of the machine.
    pub fn find() -> Self {
        if fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.contains(LABS_KERNEL)) {
            return Self::default();
        }
        Self::of_machine()
    }

    fn of_machine() -> Self {
        let (top, mut proc) = (Path::new("/proc"), Vec::new());
        if let Ok(about) = fs::metadata(top) {
            search(top, about.dev(), &mut proc);
        }
        Self {
            proc,
            sys: of_sys(Path::new("/sys")),
        }
    }

    /// Covers the files of /proc in the present mount namespace with `empty`, an empty file on a read-only
    /// mount. Skips files that this /proc lacks.
    pub fn cover_proc(&self, empty: &Path) -> Res<()> {
        each(self.proc.iter(), |path| tree::bind(empty, path))
    }

    /// Attaches the detached `sysfs` at /sys in the present mount namespace, and covers the paths of `sys`
    /// there, read only. Of a PCI bus with a network card of the node it covers only the files that only root
    /// may read. `own_root`: the node's root is a container image, which lacks the template's empty file and
    /// directory, so a covered file of /proc and the image's empty /sys serve as covers.
    pub fn mount_sys(&self, sysfs: &OwnedFd, own_root: bool) -> Res<()> {
        let sys = Path::new("/sys");
        let fail = |e: io::Error| format!("/sys: {e}");
        let file = match self.proc.first() {
            Some(covered) if own_root => covered.as_path(),
            _ => Path::new(paths::NO_FILE),
        };
        let directory = if own_root {
            empty(sys)
        } else {
            tree::clone(Path::new(paths::NOTHING))
        };
        let directory = directory.map_err(fail)?;
        tree::attach(sysfs, libc::AT_FDCWD, sys).map_err(fail)?;
        let used = buses_of_cards(sys);
        let mut files = Vec::new();
        let mut directories = Vec::new();
        for (path, is_directory) in &self.sys {
            if used.contains(path) {
                search(path, fs::metadata(path).map_err(fail)?.dev(), &mut files);
            } else if *is_directory {
                directories.push(path);
            } else {
                files.push(path.clone());
            }
        }
        // The clone can be attached only once; the first path takes it and is bound to each other path.
        let mut first: Option<PathBuf> = None;
        each(directories.into_iter(), |path| {
            if let Some(first) = &first {
                return tree::bind(first, path);
            }
            tree::attach(&directory, libc::AT_FDCWD, path)?;
            first = Some(path.to_path_buf());
            Ok(())
        })?;
        each(files.iter(), |path| tree::bind(file, path))
    }
}

/// Returns a detached read-only mount of `directory`, which must be empty.
fn empty(directory: &Path) -> io::Result<OwnedFd> {
    let cover = tree::clone(directory)?;
    tree::change_detached(&cover, tree::RDONLY | tree::NOSUID | tree::NODEV)?;
    Ok(cover)
}

/// Returns the directories of the PCI buses with a network card among the devices that the sysfs at `sys`
/// shows. The card's directory must stay visible, so the caller covers single files there.
fn buses_of_cards(sys: &Path) -> Vec<PathBuf> {
    fs::read_dir(sys.join(NETWORK))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|device| fs::read_link(device.path()).ok())
        .filter_map(|link| {
            let mut parts = link.iter().skip_while(|part| *part != "devices");
            Some(sys.join(parts.next()?).join(parts.next()?))
        })
        .filter(|bus| is_bus(bus))
        .collect()
}

/// Returns whether the name of a directory of /sys/devices is that of a PCI bus.
fn is_bus(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().starts_with(PCI)
}

/// Calls `cover` with each path; ignores paths that do not exist in this node, and stops at any other error.
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

/// Adds to `found` each file below a directory of /proc or /sys that only root may read, and the files of
/// `ROOTS` in /proc. Leaves out symbolic links, processes, other file systems than `device`, `REFUSED`,
/// /sys/kernel/slab, and /proc/sys/net, of which each node has its own.
fn search(directory: &Path, device: u64, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        let process = name.bytes().all(|byte| byte.is_ascii_digit());
        let Ok(about) = entry.metadata() else {
            continue; // the file has vanished
        };
        if about.file_type().is_symlink() || (process && directory == Path::new("/proc")) {
            continue;
        }
        if about.is_dir() {
            // A node has its own /proc/sys/net, and /sys/kernel/slab is covered as a whole.
            let apart = ["/proc/sys/net", "/sys/kernel/slab"].map(Path::new);
            // To read the directory of binfmt_misc would mount another file system, which nodes do not have.
            if !apart.contains(&path.as_path()) && about.dev() == device {
                search(&path, device, found);
            }
        } else if path == Path::new(REFUSED) {
            continue;
        } else if root_only(&about) || (directory == Path::new("/proc") && ROOTS.contains(&&*name))
        {
            found.push(path);
        }
    }
}

/// Returns true for a file that its owner or group may read, but not all users.
fn root_only(about: &fs::Metadata) -> bool {
    about.is_file() && about.mode() & ALL_READ == 0 && about.mode() & ROOT_READ != 0
}

/// Returns the paths below `sys` to cover, and whether each is a directory: first the directories that are
/// covered as a whole, then the files outside them.
fn of_sys(sys: &Path) -> Vec<(PathBuf, bool)> {
    let devices = fs::read_dir(sys.join("devices"))
        .into_iter()
        .flatten()
        .flatten();
    let buses = devices
        .map(|entry| entry.path())
        .filter(|path| is_bus(path));
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
        let found = KernelFiles::of_machine().proc;
        let all = fs::read_dir("/proc").unwrap().flatten();
        for entry in all.filter(|entry| entry.file_type().unwrap().is_file()) {
            let mode = entry.metadata().unwrap().mode();
            let refused = entry.path() == Path::new(REFUSED);
            let secret = mode & ALL_READ == 0 && mode & ROOT_READ != 0 && !refused;
            let named = ROOTS.contains(&entry.file_name().to_str().unwrap());
            assert_eq!(found.contains(&entry.path()), secret || named, "{entry:?}");
        }
        assert!(found.iter().all(|path| !path.starts_with("/proc/sys/net")));
    }

    #[test]
    fn a_file_below_a_directory_is_found_by_its_mode() {
        let top = std::env::temp_dir().join(format!("vnet-kernel-files-{}", std::process::id()));
        fs::create_dir_all(top.join("1")).unwrap();
        for (name, mode) in [
            ("1/secret", 0o400),
            ("1/plain", 0o444),
            ("1/trigger", 0o200),
        ] {
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

    #[test]
    fn the_bus_of_a_network_card_is_found_and_those_of_other_devices_are_not() {
        let top = std::env::temp_dir().join(format!("vnet-cards-{}", std::process::id()));
        let card = top.join("devices/pci0000:00/0000:00:03.0/net/eth1");
        for path in [
            &card,
            &top.join("devices/virtual/net/lo"),
            &top.join(NETWORK),
        ] {
            fs::create_dir_all(path).unwrap();
        }
        fs::create_dir_all(top.join("devices/pci0000:40/0000:40:01.0")).unwrap();
        let link = |to: &str, name: &str| {
            std::os::unix::fs::symlink(to, top.join(NETWORK).join(name)).unwrap();
        };
        link("../../devices/virtual/net/lo", "lo");
        let without = buses_of_cards(&top);
        link("../../devices/pci0000:00/0000:00:03.0/net/eth1", "eth1");
        let found = buses_of_cards(&top);
        fs::remove_dir_all(&top).unwrap();
        assert_eq!(
            (without, found),
            (vec![], vec![top.join("devices/pci0000:00")])
        );
    }
}
