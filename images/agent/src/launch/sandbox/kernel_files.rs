//! Finds the kernel's files below /proc and /sys that only root of the machine may read, and directories of
//! /sys that describe the machine's hardware. Mounts empty files and directories over them in each node.
//!
//! A directory without other files is covered as a whole, because each mount costs each node 20 microseconds.
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
/// Directories below /sys that are covered as a whole: their files show firmware tables, the monitor of memory
/// accesses, allocations, serial numbers and the energy that the machine uses (CVE-2020-8694).
const DIRECTORIES: [&str; 5] = [
    "firmware",
    "kernel/mm/damon",
    "kernel/slab",
    "devices/virtual/dmi",
    "devices/virtual/powercap",
];
/// Directories below /sys/devices whose names begin with this text are PCI buses. They are also covered as a
/// whole, since a program can map the registers of a device from its files (Documentation/PCI/sysfs-pci.rst).
const PCI: &str = "pci";
/// Directories of /sys that are searched for further files that only root may read. To read one can change
/// the machine: class/zram-control/hot_add makes a device. Other directories hold thousands of files of
/// processors and devices.
const SEARCHED: [&str; 4] = ["class", "fs", "kernel", "power"];
/// The mode bit by which all users may read a file.
const ALL_READ: u32 = 0o004;
/// The mode bits by which all users may list a directory and open the files in it.
const ALL_LIST_AND_ENTER: u32 = 0o005;
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

/// A path to cover: an empty directory covers a directory, an empty file covers a file.
#[derive(Debug, PartialEq, Eq)]
struct Cover {
    path: PathBuf,
    directory: bool,
}

impl Cover {
    fn file(path: PathBuf) -> Self {
        let directory = false;
        Self { path, directory }
    }

    fn directory(path: PathBuf) -> Self {
        let directory = true;
        Self { path, directory }
    }
}

/// The paths to cover below /proc and /sys.
#[derive(Default)]
pub struct KernelFiles {
    proc: Vec<Cover>,
    sys: Vec<Cover>,
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

    /// Covers the paths of /proc in the present mount namespace with an empty file and an empty directory of a
    /// read-only mount. Skips paths that this /proc lacks.
    pub fn cover_proc(&self, file: &Path, directory: &Path) -> Res<()> {
        each(&self.proc, |cover| {
            let empty = if cover.directory { directory } else { file };
            tree::bind(empty, &cover.path)
        })
    }

    /// Attaches the detached `sysfs` at /sys in the present mount namespace, and covers the paths of `sys`
    /// there, read only. With `cards`, it covers of a PCI bus with a network card of the node only what only
    /// root may read.
    /// `own_root`: the node's root is a container image, which lacks the template's empty file and
    /// directory, so a covered file of /proc and the image's empty /sys serve as covers.
    pub fn mount_sys(&self, sysfs: &OwnedFd, own_root: bool, cards: bool) -> Res<()> {
        let sys = Path::new("/sys");
        let fail = |e: io::Error| format!("/sys: {e}");
        let file = match self.proc.iter().find(|cover| !cover.directory) {
            Some(covered) if own_root => covered.path.as_path(),
            _ => Path::new(paths::NO_FILE),
        };
        let directory = if own_root {
            empty(sys)
        } else {
            tree::clone(Path::new(paths::NOTHING))
        };
        let directory = directory.map_err(fail)?;
        tree::attach(sysfs, libc::AT_FDCWD, sys).map_err(fail)?;
        let used = if cards {
            buses_of_cards(sys)
        } else {
            Vec::new()
        };
        let (whole, parts): (Vec<&Cover>, Vec<&Cover>) = self
            .sys
            .iter()
            .partition(|cover| !used.contains(&cover.path));
        let mut secrets = Vec::new();
        for bus in parts {
            let device = fs::metadata(&bus.path).map_err(fail)?.dev();
            search(&bus.path, device, &mut secrets);
        }
        // The clone can be attached only once, so it is attached at the first path, which is then
        // bind-mounted at each other path.
        let mut first: Option<PathBuf> = None;
        each(whole.into_iter().chain(&secrets), |cover| {
            if !cover.directory {
                return tree::bind(file, &cover.path);
            }
            if let Some(first) = &first {
                return tree::bind(first, &cover.path);
            }
            tree::attach(&directory, libc::AT_FDCWD, &cover.path)?;
            first = Some(cover.path.clone());
            Ok(())
        })
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

/// Calls `mount` with each cover; ignores paths that do not exist in this node, and stops at any other error.
fn each<'a>(
    covers: impl IntoIterator<Item = &'a Cover>,
    mut mount: impl FnMut(&Cover) -> io::Result<()>,
) -> Res<()> {
    for cover in covers {
        match mount(cover) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                return Err(format!("{} cannot be covered: {e}", cover.path.display()));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Adds to `found` each file below a directory of /proc or /sys that only root may read, the files of
/// `ROOTS` in /proc, and, as a whole, each directory that is `closed`. Leaves out symbolic links, processes,
/// other file systems than `device`, `REFUSED`, two of `DIRECTORIES`, and /proc/sys/net, of which each node
/// has its own.
fn search(directory: &Path, device: u64, found: &mut Vec<Cover>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        let process = name.bytes().all(|byte| byte.is_ascii_digit());
        // The type comes with the name, the rest costs a call for each entry.
        let link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        if link || (process && directory == Path::new("/proc")) {
            continue;
        }
        let Ok(about) = entry.metadata() else {
            continue; // the file has vanished
        };
        if about.is_dir() {
            // A node has its own /proc/sys/net; the others, of many files, are among `DIRECTORIES`.
            let apart =
                ["/proc/sys/net", "/sys/kernel/slab", "/sys/kernel/mm/damon"].map(Path::new);
            // To read the directory of binfmt_misc would mount another file system, which nodes do not have.
            if apart.contains(&path.as_path()) || about.dev() != device {
                continue;
            }
            if closed(&path, &about, device) {
                found.push(Cover::directory(path));
            } else {
                search(&path, device, found);
            }
        } else if path == Path::new(REFUSED) {
            continue;
        } else if root_only(&about) || (directory == Path::new("/proc") && ROOTS.contains(&&*name))
        {
            found.push(Cover::file(path));
        }
    }
}

/// Returns true for a directory that not all users may list and enter, and for one with files that only root
/// may read and nothing else, at any depth.
fn closed(directory: &Path, about: &fs::Metadata, device: u64) -> bool {
    about.mode() & ALL_LIST_AND_ENTER != ALL_LIST_AND_ENTER
        || secrets_alone(directory, device).is_some_and(|count| count > 0)
}

/// Returns the number of files below a directory that only root may read. Returns None if the directory has a
/// file that other users may read, a symbolic link, or another file system than `device`. It does not enter
/// such a file system: reading the directory of binfmt_misc would mount it on the machine.
fn secrets_alone(directory: &Path, device: u64) -> Option<usize> {
    let mut count = 0;
    for entry in fs::read_dir(directory).ok()?.flatten() {
        if entry.file_type().ok()?.is_symlink() {
            return None;
        }
        let about = entry.metadata().ok()?;
        if about.is_dir() && about.dev() == device {
            count += secrets_alone(&entry.path(), device)?;
        } else if !about.is_file() || about.mode() & ALL_READ != 0 {
            return None;
        } else {
            count += usize::from(root_only(&about));
        }
    }
    Some(count)
}

/// Returns true for a file that its owner or group may read, but not all users.
fn root_only(about: &fs::Metadata) -> bool {
    about.is_file() && about.mode() & ALL_READ == 0 && about.mode() & ROOT_READ != 0
}

/// Returns the covers below `sys`: first the directories that are covered whatever their files' modes are,
/// then what `search` finds outside them.
fn of_sys(sys: &Path) -> Vec<Cover> {
    let devices = fs::read_dir(sys.join("devices"))
        .into_iter()
        .flatten()
        .flatten();
    let buses = devices
        .map(|entry| entry.path())
        .filter(|path| is_bus(path));
    let named = DIRECTORIES.iter().map(|name| sys.join(name));
    let covered: Vec<PathBuf> = named.filter(|path| path.is_dir()).chain(buses).collect();
    let mut secrets = Vec::new();
    for place in SEARCHED.map(|name| sys.join(name)) {
        if let Ok(about) = fs::metadata(&place) {
            search(&place, about.dev(), &mut secrets);
        }
    }
    secrets.retain(|cover| !covered.iter().any(|top| cover.path.starts_with(top)));
    let covered = covered.into_iter().map(Cover::directory);
    covered.chain(secrets).collect()
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
            let covered = found.contains(&Cover::file(entry.path()));
            assert_eq!(covered, secret || named, "{entry:?}");
        }
        let net = Path::new("/proc/sys/net");
        assert!(found.iter().all(|cover| !cover.path.starts_with(net)));
        let drivers = Path::new("/proc/tty/driver"); // mode 0500; its files have 0444
        assert_eq!(
            drivers.is_dir(),
            found.contains(&Cover::directory(drivers.into()))
        );
    }

    fn files(top: &Path, modes: &[(&str, u32)]) {
        for (name, mode) in modes {
            let path = top.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "x").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(*mode)).unwrap();
        }
    }

    #[test]
    fn a_file_is_found_by_its_mode_and_a_directory_of_such_files_as_a_whole() {
        let top = std::env::temp_dir().join(format!("vnet-kernel-files-{}", std::process::id()));
        let modes = [
            ("1/secret", 0o400),
            ("1/plain", 0o444),
            ("1/trigger", 0o200),
            ("2/secrets/deep/secret", 0o600),
            ("2/secrets/trigger", 0o200),
            ("2/plain", 0o444),
            ("3/trigger", 0o200),
            ("4/plain", 0o444),
        ];
        files(&top, &modes);
        fs::set_permissions(top.join("4"), fs::Permissions::from_mode(0o500)).unwrap();
        let (mut found, device) = (Vec::new(), fs::metadata(&top).unwrap().dev());
        search(&top, device, &mut found);
        fs::remove_dir_all(&top).unwrap();
        found.sort_by(|a, b| a.path.cmp(&b.path));
        let expected = [
            Cover::file(top.join("1/secret")),
            Cover::directory(top.join("2/secrets")),
            Cover::directory(top.join("4")),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_directory_with_another_file_system_is_not_closed() {
        let top = std::env::temp_dir().join(format!("vnet-other-device-{}", std::process::id()));
        files(&top, &[("secret", 0o600), ("below/secret", 0o600)]);
        let device = fs::metadata(&top).unwrap().dev();
        let (here, elsewhere) = (secrets_alone(&top, device), secrets_alone(&top, device + 1));
        fs::remove_dir_all(&top).unwrap();
        assert_eq!((here, elsewhere), (Some(2), None));
    }

    #[test]
    fn buses_and_named_directories_and_files_of_root_are_found() {
        let top = std::env::temp_dir().join(format!("vnet-sys-{}", std::process::id()));
        for name in ["devices/pci0000:00", "devices/virtual/net", "firmware/acpi"] {
            fs::create_dir_all(top.join(name)).unwrap();
        }
        files(&top, &[("power/level", 0o444), ("power/trace", 0o400)]);
        let found = of_sys(&top);
        fs::remove_dir_all(&top).unwrap();
        let expected = [
            Cover::directory(top.join("firmware")),
            Cover::directory(top.join("devices/pci0000:00")),
            Cover::file(top.join("power/trace")),
        ];
        assert_eq!(found, expected);
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
