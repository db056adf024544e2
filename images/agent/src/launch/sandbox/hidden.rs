//! Finds the host's paths that nodes must not see. In / these are the directories that are no system
//! directories (homes, data, mounted disks), and files that not all users may read. In the directories of
//! `SEARCHED` these are each file that not all users may read, each directory that not all users may list
//! and enter, and each socket and FIFO.
//!
//! A node's programs are root for the file system, so modes do not refuse them access. The result is the
//! same whether root or an ordinary user starts the lab, since no directory is searched that some user
//! cannot list.

use std::fs::{self, DirEntry, Metadata};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Directories of / that hold programs and their settings, in contrast to homes, data and mounted disks.
const SYSTEM: [&str; 12] = [
    "bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "etc", "var", "opt", "nix", "gnu",
];
/// System directories that can hold secrets; the search for secret files and directories covers these and
/// the entries of / itself.
const SEARCHED: [&str; 4] = ["/etc", "/var", "/opt", "/usr/local/etc"];
/// Directories with the contents of public packages only, which are not searched.
const PUBLIC: [&str; 3] = ["/var/lib/dpkg/info", "/var/lib/apt", "/var/cache/apt"];
/// Directories that other parts of the sandbox cover or mount anew, so that nothing in them needs hiding.
pub const FRESH: [&str; 6] = ["/proc", "/sys", "/dev", "/run", "/tmp", "/var/tmp"];
/// A directory at `WHOLE_DEPTH` is hidden as a whole if it has at least this many entries, at any depth.
const ENTRIES: usize = 20_000;
/// The depth of directories that can be hidden as a whole; the entries of a directory of `SEARCHED` have
/// depth 0.
const WHOLE_DEPTH: u32 = 2;

const ALL_READ: u32 = 0o004;
const ALL_LIST_AND_ENTER: u32 = 0o005;

/// Returns the paths to hide, sorted, none below another. They include the paths of `also` that exist, except
/// below `FRESH`.
pub fn find(also: &[PathBuf]) -> Vec<PathBuf> {
    let anew = |path: &PathBuf| FRESH.iter().any(|top| path.starts_with(top));
    let mut found: Vec<PathBuf> = also
        .iter()
        .filter(|path| path.exists() && !anew(path))
        .cloned()
        .collect();
    for (path, about) in entries(Path::new("/")) {
        let system = path
            .file_name()
            .is_some_and(|name| SYSTEM.iter().any(|one| name == *one));
        if if about.is_dir() {
            !system
        } else {
            secret(&about)
        } {
            found.push(path);
        }
    }
    for top in SEARCHED {
        survey(Path::new(top), 0, &mut found);
    }
    found.sort();
    found.dedup();
    outermost(found)
}

/// Returns the entries of a directory with their metadata, except symbolic links and the directories of
/// `FRESH` and `PUBLIC`. Empty if the directory has vanished, or if not even root may read it (another user's
/// FUSE mount).
fn entries(directory: &Path) -> impl Iterator<Item = (PathBuf, Metadata)> {
    let readable = fs::read_dir(directory).ok().into_iter().flatten().flatten();
    let about = |entry: DirEntry| entry.metadata().ok().map(|about| (entry.path(), about));
    let anew = |path: &Path| {
        FRESH
            .iter()
            .chain(&PUBLIC)
            .any(|fresh| path == Path::new(fresh))
    };
    readable
        .filter_map(about)
        .filter(move |(path, about)| !about.file_type().is_symlink() && !anew(path))
}

/// Returns true for a file that not all users may read, a directory that not all users may list and enter, a
/// socket, and a FIFO.
fn secret(about: &Metadata) -> bool {
    let kind = about.file_type();
    let needed = if kind.is_dir() {
        ALL_LIST_AND_ENTER
    } else {
        ALL_READ
    };
    about.mode() & needed != needed || kind.is_socket() || kind.is_fifo()
}

/// Adds the secrets below `directory`, whose entries have depth `depth`, to `found`, and does not search
/// secret directories. Adds a directory at `WHOLE_DEPTH` as a whole if it has at least `ENTRIES` entries, at
/// any depth.
fn survey(directory: &Path, depth: u32, found: &mut Vec<PathBuf>) {
    for (path, about) in entries(directory) {
        if secret(&about) {
            found.push(path);
        } else if about.is_dir() && depth < WHOLE_DEPTH {
            survey(&path, depth + 1, found);
        } else if about.is_dir() {
            let (before, mut left) = (found.len(), ENTRIES);
            if !search(&path, &mut left, found) {
                found.truncate(before);
                found.push(path);
            }
        }
    }
}

/// Adds the secrets below `directory` to `found`, at any depth. Subtracts each entry that it sees from
/// `left`, and stops and returns false when that is 0.
fn search(directory: &Path, left: &mut usize, found: &mut Vec<PathBuf>) -> bool {
    entries(directory).all(|(path, about)| {
        *left = left.saturating_sub(1);
        if secret(&about) {
            found.push(path);
            *left > 0
        } else {
            *left > 0 && (!about.is_dir() || search(&path, left, found))
        }
    })
}

/// Returns the sorted paths without those that lie below another one.
pub fn outermost(sorted: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut kept: Vec<PathBuf> = Vec::new();
    for path in sorted {
        if !kept.iter().any(|top| path.starts_with(top)) {
            kept.push(path);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn tree(name: &str) -> PathBuf {
        let top = std::env::temp_dir().join(format!("vnet-secrets-{name}-{}", std::process::id()));
        for (name, mode) in [
            ("open/plain", 0o644),
            ("open/key", 0o600),
            ("shut/plain", 0o644),
            ("unlisted/key", 0o600),
        ] {
            let path = top.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "x").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        for (name, mode) in [("shut", 0o750), ("unlisted", 0o711)] {
            fs::set_permissions(top.join(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        top
    }

    #[test]
    fn hides_exactly_what_not_all_users_may_read_list_or_enter() {
        let top = tree("modes");
        let mut found = Vec::new();
        survey(&top, 0, &mut found);
        found.sort();
        fs::remove_dir_all(&top).unwrap();
        assert_eq!(
            found,
            ["open/key", "shut", "unlisted"].map(|name| top.join(name))
        );
    }

    #[test]
    fn a_search_fails_beyond_its_bound() {
        let top = tree("much");
        let enough = search(&top, &mut 10, &mut Vec::new());
        let short = search(&top, &mut 3, &mut Vec::new());
        fs::remove_dir_all(&top).unwrap();
        assert!(enough && !short);
    }

    #[test]
    fn only_the_systems_directories_of_the_root_stay_visible() {
        let found = find(&[]);
        let seen = |path: &str| {
            !found
                .iter()
                .any(|hidden| Path::new(path).starts_with(hidden))
        };
        assert!(seen("/usr/bin/env") && seen("/etc/passwd") && seen("/var/lib"));
        let users = fs::read_to_string("/etc/passwd").unwrap();
        let root = users.lines().find(|user| user.starts_with("root:"));
        let home = root.and_then(|user| user.split(':').nth(5)).unwrap();
        assert!(!seen(&format!("{home}/x")) && !seen("/home/x") && !seen("/etc/shadow"));
    }

    #[test]
    fn drops_paths_below_a_hidden_one() {
        let paths = ["/etc/x", "/home", "/home/me", "/homes"].map(PathBuf::from);
        let kept = outermost(paths.to_vec());
        assert_eq!(kept, ["/etc/x", "/home", "/homes"].map(PathBuf::from));
    }
}
