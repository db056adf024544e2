//! Builds root templates: mount namespaces with the host's files as nodes may see them, of which each node
//! makes a copy.

use super::copies::{self, Copied};
use super::hidden::{self, FRESH};
use super::host_files::HostFiles;
use super::paths::{self, IMAGE, SMALL, make_mount_point};
use super::run_directories::RUN;
use super::{devices, image, tree};
use crate::os::{self, Res};
use crate::proto::Mounts;
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Private directories that are covered in the template, since they would show the host's files until the
/// node mounts its own.
const COVERED: [&str; 2] = ["/run", "/var/tmp"];

/// A mount namespace, and the root directory in it, which differs from `/` if the launcher runs in a chroot.
pub struct RootTemplate {
    pub mount_ns: OwnedFd,
    pub root: OwnedFd,
    /// Shared paths below private directories. Their mounts are at `paths::staged`, in the same order.
    pub staged: Vec<PathBuf>,
    /// Whether `paths::IMAGE` has the files of a container image, which replace the host's in the node.
    pub image: bool,
    /// Directories of which each node has a writable copy, in the order of `paths::copied`.
    pub copies: Vec<Copied>,
    /// Whether a node's /run has the directories that packages declare there.
    pub run: bool,
}

/// A path of the host that the nodes share, a detached mount of it, and whether it is a directory.
struct SharedPath {
    path: PathBuf,
    tree: OwnedFd,
    directory: bool,
}

/// Builds the root template for these mounts in a child process, which ends after the launcher has opened its
/// mount namespace.
pub fn build(host: &HostFiles, mounts: &Mounts) -> Res<RootTemplate> {
    let fail = |e: std::io::Error| format!("sandbox: {e}");
    let staged: Vec<PathBuf> = existing(mounts)?
        .into_iter()
        .map(|(path, _)| path)
        .filter(|path| paths::is_private(path))
        .collect();
    copies::check(mounts)?;
    let (mut mine, mut theirs) = UnixStream::pair().map_err(fail)?;
    // SAFETY: the launcher is single threaded; the child ends by _exit.
    let pid = os::check(unsafe { libc::fork() }).map_err(fail)?;
    if pid == 0 {
        drop(mine);
        let result = match prepare(host, mounts) {
            Ok(()) => "\n".to_owned(),
            Err(text) => format!("{}\n", text.replace('\n', " ")),
        };
        let written = theirs.write_all(result.as_bytes());
        // The namespace must exist until the launcher has opened it, or has ended.
        let waited = theirs.read(&mut [0]);
        // SAFETY: the child ends here, and does not drop the launcher's state.
        unsafe { libc::_exit(i32::from(written.is_err() || waited.is_err())) }
    }
    drop(theirs);
    let outcome = open_namespace(pid, &mut mine);
    drop(mine);
    let mut status = 0;
    // SAFETY: status is a valid int; the child ends when its socket closes.
    unsafe { libc::waitpid(pid, &mut status, 0) };
    let (mount_ns, root, points) = outcome?;
    Ok(RootTemplate {
        mount_ns,
        root,
        copies: copies::with_mounts(mounts, &points),
        staged,
        image: mounts.root.is_some(),
        run: mounts.copy.iter().any(|path| path == RUN),
    })
}

/// Waits for the child's report on `socket`; returns its mount namespace, its root and its mount points, or
/// the child's error.
fn open_namespace(pid: i32, socket: &mut UnixStream) -> Res<(OwnedFd, OwnedFd, Vec<PathBuf>)> {
    let mut error = Vec::new();
    let mut byte = [0];
    while socket.read(&mut byte).is_ok_and(|n| n == 1) && byte[0] != b'\n' {
        error.push(byte[0]);
    }
    if byte[0] != b'\n' || !error.is_empty() {
        let error = String::from_utf8_lossy(&error);
        return Err(format!(
            "sandbox: the root template cannot be built: {error}"
        ));
    }
    let fail = |e: std::io::Error| format!("sandbox: {e}");
    let mount_ns = fs::File::open(format!("/proc/{pid}/ns/mnt")).map_err(fail)?;
    let root = paths::path_only(Path::new(&format!("/proc/{pid}/root"))).map_err(fail)?;
    Ok((mount_ns.into(), root, mount_points(&pid.to_string())?))
}

/// Returns the mount points of the process `pid` ("self": this one), in the order of mountinfo.
fn mount_points(pid: &str) -> Res<Vec<PathBuf>> {
    let text = fs::read_to_string(format!("/proc/{pid}/mountinfo"));
    let text = text.map_err(|e| format!("sandbox: mountinfo: {e}"))?;
    let points = text.lines().filter_map(|line| line.split(' ').nth(4));
    Ok(points.map(unescaped).collect())
}

/// Returns the paths to share, sorted, each with whether nodes may write there. An error if a path of `read`
/// or `write` does not exist. Leaves out a path of `named` that lies in one of these or that `shared_by_name`
/// refuses.
fn existing(mounts: &Mounts) -> Res<Vec<(PathBuf, bool)>> {
    let mut all = Vec::new();
    for (key, paths, write) in [
        ("read", &mounts.read, false),
        ("write", &mounts.write, true),
    ] {
        for path in paths {
            let path = PathBuf::from(path);
            if !path.exists() {
                return Err(format!(
                    "mounts.{key}: {} is not on this machine; make it, or correct the path",
                    path.display()
                ));
            }
            all.push((path, write));
        }
    }
    // A named path inside a shared one needs no mount of its own.
    let inside = |path: &PathBuf| all.iter().any(|(top, _)| path.starts_with(top));
    let named = mounts.named.iter().map(PathBuf::from);
    let named: Vec<PathBuf> = named
        .filter(|path| shared_by_name(path) && !inside(path))
        .collect();
    all.extend(named.into_iter().map(|path| (path, false)));
    // A directory precedes the paths in it; of two entries for one path the writable one precedes and stays.
    all.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
    all.dedup_by(|later, first| later.0 == first.0);
    Ok(all)
}

/// Returns whether nodes may see this path because a command names it: it is a file that all users may read,
/// and no part of the path begins with a dot.
fn shared_by_name(path: &Path) -> bool {
    let dotted = path
        .iter()
        .any(|part| part.to_string_lossy().starts_with('.'));
    !dotted && fs::metadata(path).is_ok_and(|about| about.is_file() && about.mode() & 0o004 != 0)
}

/// Moves this process into a new mount namespace and turns it into a root template. It unmounts what nodes do
/// not need, makes the rest read-only, mounts /dev and /tmp, stages the directories that nodes copy, and
/// hides the host's secret paths. Then it attaches the container image, replaced files and shared paths.
fn prepare(host: &HostFiles, mounts: &Mounts) -> Res<()> {
    // SAFETY: the argument is a plain number. The umask is set because modes must not depend on the
    // launcher's.
    unsafe { libc::umask(0o022) };
    os::unshare(libc::CLONE_NEWNS).map_err(|e| format!("a mount namespace: {e}"))?;
    os::mount("", "/", "none", libc::MS_REC | libc::MS_PRIVATE).map_err(|e| format!("/: {e}"))?;
    let hidden = hidden::find(&host.hidden);
    let shared = clone_shared(mounts, &hidden)?;
    let replaced = clone_replacements(&host.replaced)?;
    let image = mounts.root.as_deref().map(image::clone).transpose()?;
    for path in unneeded_mounts(&hidden)? {
        tree::clear(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    tree::change(Path::new("/"), tree::RDONLY | tree::NODEV, 0, true)
        .map_err(|e| format!("/ read only: {e}; Linux 5.12 or newer is needed"))?;
    let points = shared.iter().map(|one| (one.path.as_path(), one.directory));
    devices::mount(points).map_err(|e| format!("/dev: {e}"))?;
    tree::mount("tmpfs", Path::new("/tmp"), 0, SMALL).map_err(|e| format!("/tmp: {e}"))?;
    if let Some(image) = image {
        make_mount_point(Path::new(IMAGE), true)
            .and_then(|()| tree::attach(&image, libc::AT_FDCWD, Path::new(IMAGE)))
            .map_err(|e| format!("image: {e}"))?;
    }
    copies::stage(mounts, &hidden)?;
    hide(&hidden, &shared, &host.nodes)?;
    for (place, tree) in replaced {
        tree::attach(&tree, libc::AT_FDCWD, place)
            .map_err(|e| format!("{}: {e}", place.display()))?;
    }
    attach_shared(&shared)
}

/// Returns each path of the host that a file of the lab replaces, with a detached read-only mount of that
/// file. Skips paths that the host lacks.
fn clone_replacements(replaced: &BTreeMap<PathBuf, PathBuf>) -> Res<Vec<(&Path, OwnedFd)>> {
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

/// Returns the mount points at or below hidden directories and those of `FRESH`, the last mounted first: no
/// node needs a copy of these mounts.
fn unneeded_mounts(hidden: &[PathBuf]) -> Res<Vec<PathBuf>> {
    let unneeded = |path: &PathBuf| {
        FRESH.iter().any(|top| path.starts_with(top))
            || hidden.iter().any(|top| path.starts_with(top))
    };
    let mut found: Vec<PathBuf> = mount_points("self")?.into_iter().filter(unneeded).collect();
    found.reverse();
    Ok(found)
}

/// Replaces the octal escapes of space, tab, newline and backslash in a path of mountinfo
/// (fs/proc_namespace.c).
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

/// Returns a detached mount of each shared path: read only unless nodes may write there, and without devices
/// unless the path itself is a device below /dev. Leaves out named files that the template shows anyway.
fn clone_shared(mounts: &Mounts, hidden: &[PathBuf]) -> Res<Vec<SharedPath>> {
    let mut shared = Vec::new();
    for (path, write) in existing(mounts)? {
        let hidden = paths::is_private(&path) || hidden.iter().any(|top| path.starts_with(top));
        if !hidden && !write && !mounts.read.iter().any(|read| path == Path::new(read)) {
            continue; // nodes see this named file already
        }
        let fail = |e: std::io::Error| format!("{}: {e}", path.display());
        let device = fs::metadata(&path).map_err(fail)?;
        let tree = tree::clone(&path).map_err(fail)?;
        let own_device = path.starts_with("/dev") && !device.is_dir();
        let attributes =
            if write { 0 } else { tree::RDONLY } | if own_device { 0 } else { tree::NODEV };
        tree::change_detached(&tree, attributes).map_err(fail)?;
        shared.push(SharedPath {
            directory: device.is_dir(),
            path,
            tree,
        });
    }
    Ok(shared)
}

/// Covers each hidden path with an empty directory or file, except paths inside a shared one and paths that
/// have vanished, and `COVERED` with an empty directory. A cover has mount points for the shared paths below
/// it and for `nodes`. Also makes the mount points of the staged paths, then makes /tmp read only.
fn hide(hidden: &[PathBuf], shared: &[SharedPath], nodes: &Path) -> Res<()> {
    let (directory, file) = (Path::new(paths::NOTHING), Path::new(paths::NO_FILE));
    let staged = shared
        .iter()
        .filter(|one| paths::is_private(&one.path))
        .enumerate();
    let made = fs::create_dir(directory)
        .and_then(|()| fs::write(file, ""))
        .and_then(|()| {
            staged
                .into_iter()
                .try_for_each(|(i, one)| make_mount_point(&paths::staged(i), one.directory))
        })
        // All nodes share the covers; as they are read only, no node can pass data to another by them.
        .and_then(|()| tree::change(Path::new("/tmp"), tree::RDONLY, 0, false));
    made.map_err(|e| format!("/tmp: {e}"))?;
    for path in COVERED.map(Path::new) {
        if fs::symlink_metadata(path).is_ok_and(|about| about.is_dir()) {
            tree::bind(directory, path).map_err(|e| format!("{}: {e}", path.display()))?;
        }
    }
    for path in hidden
        .iter()
        .filter(|path| !shared.iter().any(|one| path.starts_with(&one.path)))
    {
        let inside: Vec<&SharedPath> = shared
            .iter()
            .filter(|one| one.path.starts_with(path))
            .collect();
        let done = match fs::metadata(path) {
            Ok(about) if about.is_dir() && (!inside.is_empty() || nodes.starts_with(path)) => {
                tree::mount("tmpfs", path, libc::MS_NODEV, SMALL)
                    .and_then(|()| {
                        inside
                            .iter()
                            .try_for_each(|one| make_mount_point(&one.path, one.directory))
                    })
                    .and_then(|()| {
                        if nodes.starts_with(path) {
                            make_mount_point(nodes, true)
                        } else {
                            Ok(())
                        }
                    })
                    .and_then(|()| tree::change(path, tree::RDONLY, 0, false))
            }
            Ok(about) => tree::bind(if about.is_dir() { directory } else { file }, path),
            // The path was removed after the search.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
            Err(e) => Err(e),
        };
        done.map_err(|e| format!("{} cannot be hidden: {e}", path.display()))?;
    }
    Ok(())
}

/// Attaches each shared path at its own path, or in the stage (`paths::staged`) if it lies in a private
/// directory.
fn attach_shared(shared: &[SharedPath]) -> Res<()> {
    let mut staged = (0..).map(paths::staged);
    for one in shared {
        let stage = if paths::is_private(&one.path) {
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
    fn unescapes_mount_points() {
        assert_eq!(unescaped(r"/a\040b\134c"), PathBuf::from(r"/a b\c"));
    }

    #[test]
    fn naming_a_file_does_not_share_one_that_only_root_may_read() {
        let file = std::env::temp_dir().join(format!("vnet-named-{}", std::process::id()));
        fs::write(&file, "x").unwrap();
        let mode = |bits| fs::set_permissions(&file, fs::Permissions::from_mode(bits)).unwrap();
        mode(0o644);
        assert!(shared_by_name(&file));
        mode(0o600);
        assert!(!shared_by_name(&file));
        fs::remove_file(&file).unwrap();
        assert!(!shared_by_name(&file));
    }
}
