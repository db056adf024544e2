//! What of the machine a node does not see: homes, and whatever not every user of the machine may read or enter.
//!
//! A node's programs are root to the file system, so modes do not keep them out; hiding those files does.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Hidden whatever their modes are.
const ALWAYS: [&str; 2] = ["/root", "/home"];
/// Searched, so many levels deep.
const SEARCHED: [(&str, u32); 6] = [
    ("/", 1),
    ("/etc", 8),
    ("/var", 3),
    ("/opt", 2),
    ("/srv", 2),
    ("/usr/local", 2),
];
/// Hidden or made anew by other means.
pub const FRESH: [&str; 6] = ["/proc", "/sys", "/dev", "/run", "/tmp", "/var/tmp"];

const ALL_READ: u32 = 0o004;
const ALL_ENTER: u32 = 0o001;

/// Directories and files to hide, in the order of their names; `also` with them, where they are.
pub fn find(also: &[PathBuf]) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = ALWAYS.iter().map(PathBuf::from).collect();
    found.extend(also.iter().cloned());
    let anew = |path: &PathBuf| FRESH.iter().any(|top| path.starts_with(top));
    found.retain(|path| path.exists() && !anew(path));
    for (top, depth) in SEARCHED {
        search(Path::new(top), depth, &mut found);
    }
    found.sort();
    found.dedup();
    outermost(found)
}

fn search(directory: &Path, depth: u32, found: &mut Vec<PathBuf>) {
    // One that vanishes, or that even root may not read (another's mount), shows a node nothing either.
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let Ok(about) = fs::symlink_metadata(&path) else {
            continue;
        };
        let kind = about.file_type();
        if kind.is_symlink() || FRESH.iter().any(|fresh| path == Path::new(fresh)) {
            continue;
        }
        if kind.is_dir() {
            if about.mode() & ALL_ENTER == 0 {
                found.push(path);
            } else if depth > 1 {
                search(&path, depth - 1, found);
            }
        } else if about.mode() & ALL_READ == 0 || kind.is_socket() || kind.is_fifo() {
            found.push(path);
        }
    }
}

/// Without those below another: they are hidden with it.
fn outermost(sorted: Vec<PathBuf>) -> Vec<PathBuf> {
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

    fn tree() -> PathBuf {
        let top = std::env::temp_dir().join(format!("vnet-secrets-{}", std::process::id()));
        for (name, mode) in [
            ("open/plain", 0o644),
            ("open/key", 0o600),
            ("shut/plain", 0o644),
        ] {
            let path = top.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "x").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        fs::set_permissions(top.join("shut"), fs::Permissions::from_mode(0o750)).unwrap();
        top
    }

    #[test]
    fn what_not_everybody_may_read_or_enter_is_hidden_and_nothing_else() {
        let top = tree();
        let mut found = Vec::new();
        search(&top, 3, &mut found);
        found.sort();
        fs::remove_dir_all(&top).unwrap();
        assert_eq!(found, [top.join("open/key"), top.join("shut")]);
    }

    #[test]
    fn a_search_ends_at_its_depth() {
        let dir = std::env::temp_dir().join(format!("vnet-depth-{}", std::process::id()));
        fs::create_dir_all(dir.join("a/b")).unwrap();
        fs::write(dir.join("a/b/key"), "x").unwrap();
        fs::set_permissions(dir.join("a/b/key"), fs::Permissions::from_mode(0o600)).unwrap();
        let (mut near, mut far) = (Vec::new(), Vec::new());
        search(&dir, 2, &mut near);
        search(&dir, 3, &mut far);
        fs::remove_dir_all(&dir).unwrap();
        assert_eq!((near.len(), far.len()), (0, 1));
    }

    #[test]
    fn what_lies_below_another_hidden_one_is_not_hidden_again() {
        let paths = ["/etc/x", "/home", "/home/me", "/homes"].map(PathBuf::from);
        let kept = outermost(paths.to_vec());
        assert_eq!(kept, ["/etc/x", "/home", "/homes"].map(PathBuf::from));
    }
}
