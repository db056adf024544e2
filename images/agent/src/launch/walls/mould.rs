//! The view of the machine's files that a lab's nodes share, prepared once in a mount namespace that each node copies.

use super::secrets::{self, FRESH};
use super::{Outside, devices, image, tree};
use crate::os::{self, Res};
use crate::proto::Opened;
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Where what lies below /run, /tmp or /var/tmp waits for the node that puts it into its own.
const STAGE: &str = "/tmp/opened";
pub const IMAGE: &str = "/tmp/image";
/// Directories that each node has by itself.
const OWN: [&str; 4] = ["/run", "/tmp", "/var/tmp", "/dev/shm"];
/// Those of them that would be the machine's until the node has its own: /dev is new, too.
const COVERED: [&str; 2] = ["/run", "/var/tmp"];
/// Of a file system that holds next to nothing.
pub const SMALL: &str = "size=256k,nr_inodes=4096,mode=755";

/// A prepared mount namespace, and the root directory in it (a launcher may be in a chroot).
pub struct Mould {
    pub mounts: OwnedFd,
    pub root: OwnedFd,
    /// What waits below STAGE, in order: where it belongs, and whether it may be written.
    pub staged: Vec<PathBuf>,
    /// Whether the files of a container image wait at IMAGE, for the node that has them in place of the machine's.
    pub image: bool,
}

/// What of the machine's is opened: where it is, and whether it may be written.
struct Open {
    path: PathBuf,
    tree: OwnedFd,
    directory: bool,
}

/// Prepares the view in a process of its own, which ends once the namespace is held.
pub fn cast(outside: &Outside, opened: &Opened) -> Res<Mould> {
    let fail = |e: std::io::Error| format!("walls: {e}");
    let staged: Vec<PathBuf> = found(opened)?
        .into_iter()
        .map(|(path, _)| path)
        .filter(|path| in_own(path))
        .collect();
    let (mut mine, mut theirs) = UnixStream::pair().map_err(fail)?;
    // SAFETY: the launcher is single threaded; the child leaves by _exit.
    let pid = os::check(unsafe { libc::fork() }).map_err(fail)?;
    if pid == 0 {
        drop(mine);
        let said = match prepare(outside, opened) {
            Ok(()) => "\n".to_owned(),
            Err(text) => format!("{}\n", text.replace('\n', " ")),
        };
        let told = theirs.write_all(said.as_bytes());
        // Until the launcher has taken hold of the namespace, or has ended.
        let waited = theirs.read(&mut [0]);
        // SAFETY: leaves without dropping the launcher's state.
        unsafe { libc::_exit(i32::from(told.is_err() || waited.is_err())) }
    }
    drop(theirs);
    let outcome = hold(pid, &mut mine);
    drop(mine);
    let mut status = 0;
    // SAFETY: status is a valid int; the child ends when its socket closes.
    unsafe { libc::waitpid(pid, &mut status, 0) };
    let (mounts, root) = outcome?;
    Ok(Mould {
        mounts,
        root,
        staged,
        image: opened.root.is_some(),
    })
}

fn hold(pid: i32, socket: &mut UnixStream) -> Res<(OwnedFd, OwnedFd)> {
    let mut said = Vec::new();
    let mut byte = [0];
    while socket.read(&mut byte).is_ok_and(|n| n == 1) && byte[0] != b'\n' {
        said.push(byte[0]);
    }
    if byte[0] != b'\n' || !said.is_empty() {
        let said = String::from_utf8_lossy(&said);
        return Err(format!(
            "walls: the view of the machine's files cannot be made: {said}"
        ));
    }
    let fail = |e: std::io::Error| format!("walls: {e}");
    let mounts = fs::File::open(format!("/proc/{pid}/ns/mnt")).map_err(fail)?;
    let root = super::path_only(Path::new(&format!("/proc/{pid}/root"))).map_err(fail)?;
    Ok((mounts.into(), root))
}

/// Paths that are opened and exist, and whether for writing. What `sees` or `writes` name must exist.
fn found(opened: &Opened) -> Res<Vec<(PathBuf, bool)>> {
    let mut all = Vec::new();
    for (key, paths, write) in [
        ("sees", &opened.sees, false),
        ("writes", &opened.writes, true),
    ] {
        for path in paths {
            let path = PathBuf::from(path);
            if !path.exists() {
                return Err(format!(
                    "{key}: {} is not on this machine; make it, or correct the path",
                    path.display()
                ));
            }
            all.push((path, write));
        }
    }
    // What is named and lies in what is opened is there with it.
    let inside = |path: &PathBuf| all.iter().any(|(top, _)| path.starts_with(top));
    let named = opened.names.iter().map(PathBuf::from);
    let named: Vec<PathBuf> = named
        .filter(|path| by_name(path) && !inside(path))
        .collect();
    all.extend(named.into_iter().map(|path| (path, false)));
    // A directory before what lies in it; for writing before for reading.
    all.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
    all.dedup_by(|later, first| later.0 == first.0);
    Ok(all)
}

/// Whether naming a file is enough to see it: one that all may read, and that nobody hides by a dot.
fn by_name(path: &Path) -> bool {
    let dotted = path
        .iter()
        .any(|part| part.to_string_lossy().starts_with('.'));
    !dotted && fs::metadata(path).is_ok_and(|about| about.is_file() && about.mode() & 0o004 != 0)
}

pub fn in_own(path: &Path) -> bool {
    OWN.iter().any(|top| path.starts_with(top))
}

fn prepare(outside: &Outside, opened: &Opened) -> Res<()> {
    // SAFETY: plain number; modes are the usual ones, whatever the launcher's umask.
    unsafe { libc::umask(0o022) };
    os::unshare(libc::CLONE_NEWNS).map_err(|e| format!("a mount namespace: {e}"))?;
    os::mount("", "/", "none", libc::MS_REC | libc::MS_PRIVATE).map_err(|e| format!("/: {e}"))?;
    let secret = secrets::find(&outside.hidden);
    let open = clones(opened, &secret)?;
    let replaced = stand_ins(&outside.replaced)?;
    let image = opened.root.as_deref().map(image::hold).transpose()?;
    for path in unseen(&secret)? {
        tree::clear(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    tree::change(Path::new("/"), tree::RDONLY | tree::NODEV, 0, true)
        .map_err(|e| format!("/ read only: {e}; Linux 5.12 or newer is needed"))?;
    let opened = open.iter().map(|one| (one.path.as_path(), one.directory));
    devices::mount(opened).map_err(|e| format!("/dev: {e}"))?;
    tree::mount("tmpfs", Path::new("/tmp"), 0, SMALL).map_err(|e| format!("/tmp: {e}"))?;
    if let Some(image) = image {
        point(Path::new(IMAGE), true)
            .and_then(|()| tree::attach(&image, libc::AT_FDCWD, Path::new(IMAGE)))
            .map_err(|e| format!("image: {e}"))?;
    }
    hide(&secret, &open, &outside.nodes)?;
    for (place, tree) in replaced {
        tree::attach(&tree, libc::AT_FDCWD, place)
            .map_err(|e| format!("{}: {e}", place.display()))?;
    }
    show(&open)
}

/// The lab's own files for the places that the machine has, be these links or not.
fn stand_ins(replaced: &BTreeMap<PathBuf, PathBuf>) -> Res<Vec<(&Path, OwnedFd)>> {
    replaced
        .iter()
        .filter(|(place, _)| fs::symlink_metadata(place).is_ok())
        .map(|(place, file)| {
            let tree = tree::clone(file).and_then(|tree| {
                tree::change_detached(&tree, tree::RDONLY | tree::NODEV | tree::NOSUID)?;
                Ok(tree)
            });
            tree.map(|tree| (place.as_path(), tree))
                .map_err(|e| format!("{}: {e}", file.display()))
        })
        .collect()
}

/// Mounts below what is hidden or made anew, innermost first: no node needs a copy of them.
fn unseen(secret: &[PathBuf]) -> Res<Vec<PathBuf>> {
    let text = fs::read_to_string("/proc/self/mountinfo").map_err(|e| format!("mountinfo: {e}"))?;
    let points = text
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        .map(unescaped);
    let hidden = |path: &PathBuf| {
        FRESH.iter().any(|top| path.starts_with(top))
            || secret.iter().any(|top| path.starts_with(top))
    };
    let mut found: Vec<PathBuf> = points.filter(hidden).collect();
    found.reverse();
    Ok(found)
}

/// Undoes the kernel's octal escapes (fs/proc_namespace.c: space, tab, newline, backslash).
fn unescaped(point: &str) -> PathBuf {
    let escapes = [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ];
    escapes
        .iter()
        .fold(point.to_owned(), |text, (from, to)| text.replace(from, to))
        .into()
}

fn clones(opened: &Opened, secret: &[PathBuf]) -> Res<Vec<Open>> {
    let mut open = Vec::new();
    for (path, write) in found(opened)? {
        let hidden = in_own(&path) || secret.iter().any(|top| path.starts_with(top));
        if !hidden && !write && !opened.sees.iter().any(|seen| path == Path::new(seen)) {
            continue; // named, and seen anyway
        }
        let fail = |e: std::io::Error| format!("{}: {e}", path.display());
        let device = fs::metadata(&path).map_err(fail)?;
        let tree = tree::clone(&path).map_err(fail)?;
        let own_device = path.starts_with("/dev") && !device.is_dir();
        let attributes =
            if write { 0 } else { tree::RDONLY } | if own_device { 0 } else { tree::NODEV };
        tree::change_detached(&tree, attributes).map_err(fail)?;
        open.push(Open {
            directory: device.is_dir(),
            path,
            tree,
        });
    }
    Ok(open)
}

/// An empty directory or file over each hidden one; where something in it is opened, with the place for that.
fn hide(secret: &[PathBuf], open: &[Open], nodes: &Path) -> Res<()> {
    let (directory, file) = (Path::new("/tmp/nothing"), Path::new("/tmp/no-file"));
    let staged = open.iter().filter(|one| in_own(&one.path)).enumerate();
    let made = fs::create_dir(directory)
        .and_then(|()| fs::write(file, ""))
        .and_then(|()| {
            staged
                .into_iter()
                .try_for_each(|(i, one)| point(&waiting(i), one.directory))
        })
        // What covers the hidden is the same in all nodes: none may leave anything there for another.
        .and_then(|()| tree::change(Path::new("/tmp"), tree::RDONLY, 0, false));
    made.map_err(|e| format!("/tmp: {e}"))?;
    for path in COVERED.map(Path::new) {
        if fs::symlink_metadata(path).is_ok_and(|about| about.is_dir()) {
            tree::bind(directory, path).map_err(|e| format!("{}: {e}", path.display()))?;
        }
    }
    for path in secret
        .iter()
        .filter(|path| !open.iter().any(|one| path.starts_with(&one.path)))
    {
        let inside: Vec<&Open> = open
            .iter()
            .filter(|one| one.path.starts_with(path))
            .collect();
        let done = match fs::metadata(path) {
            Ok(about) if about.is_dir() && (!inside.is_empty() || nodes.starts_with(path)) => {
                tree::mount("tmpfs", path, libc::MS_NODEV, SMALL)
                    .and_then(|()| {
                        inside
                            .iter()
                            .try_for_each(|one| point(&one.path, one.directory))
                    })
                    .and_then(|()| {
                        if nodes.starts_with(path) {
                            point(nodes, true)
                        } else {
                            Ok(())
                        }
                    })
                    .and_then(|()| tree::change(path, tree::RDONLY, 0, false))
            }
            Ok(about) => tree::bind(if about.is_dir() { directory } else { file }, path),
            // Gone since it was found.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
            Err(e) => Err(e),
        };
        done.map_err(|e| format!("{} cannot be hidden: {e}", path.display()))?;
    }
    Ok(())
}

/// A place to attach something to; one that is there is fine.
pub fn point(path: &Path, directory: bool) -> std::io::Result<()> {
    if directory {
        return fs::create_dir_all(path);
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .map(drop)
}

/// Where a staged one waits.
pub fn waiting(index: usize) -> PathBuf {
    Path::new(STAGE).join(index.to_string())
}

fn show(open: &[Open]) -> Res<()> {
    let mut staged = (0..).map(waiting);
    for one in open {
        let stage = if in_own(&one.path) {
            staged.next()
        } else {
            None
        };
        let target = stage.as_ref().unwrap_or(&one.path);
        tree::attach(&one.tree, libc::AT_FDCWD, target)
            .map_err(|e| format!("{}: {e}", one.path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn escapes_of_mount_points_are_undone() {
        assert_eq!(unescaped(r"/a\040b\134c"), PathBuf::from(r"/a b\c"));
    }

    #[test]
    fn a_name_opens_no_secret() {
        let file = std::env::temp_dir().join(format!("vnet-named-{}", std::process::id()));
        fs::write(&file, "x").unwrap();
        let mode = |bits| fs::set_permissions(&file, fs::Permissions::from_mode(bits)).unwrap();
        mode(0o644);
        assert!(by_name(&file));
        mode(0o600);
        assert!(!by_name(&file));
        fs::remove_file(&file).unwrap();
        assert!(!by_name(&file));
    }
}
