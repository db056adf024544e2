//! Makes the files of a container image the root of a node: mounts an overlay whose lower layer is the image
//! and whose upper layer is the node's own file system.

use super::{paths, tree};
use crate::os::{self, Res};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

/// Directories that the node takes from the lab, with all mounts below, instead of those of the image.
const FROM_LAB: [&str; 5] = ["/proc", "/dev", "/run", "/tmp", "/var/tmp"];
/// The empty directory on which `Sandbox::populate` mounts a sysfs.
const SYS: &str = "/sys";

/// Returns a detached read-only mount, without devices, of the directory `path`, which holds an image's
/// files.
pub fn clone(path: &str) -> Res<OwnedFd> {
    let fail = |e: io::Error| format!("image: {path}: {e}");
    let files = tree::clone(Path::new(path)).map_err(fail)?;
    tree::change_detached(&files, tree::RDONLY | tree::NODEV).map_err(fail)?;
    Ok(files)
}

/// Mounts the node's root at `place`/root: an overlay of the image's `files` and directories of the node's
/// own file system, which is mounted at `place`. Returns the opened root.
pub fn mount_root(files: &OwnedFd, place: &Path) -> io::Result<OwnedFd> {
    let [lower, upper, work, root] =
        ["image", "upper", "work", "root"].map(|name| place.join(name));
    for directory in [&lower, &upper, &work, &root] {
        paths::make(directory, 0o755)?;
    }
    tree::attach(files, libc::AT_FDCWD, &lower)?;
    let options = format!(
        "lowerdir={},upperdir={},workdir={}",
        lower.display(),
        upper.display(),
        work.display()
    );
    tree::mount("overlay", &root, libc::MS_NODEV, &options)?;
    paths::path_only(&root)
}

/// Makes `root` the root directory of this process, and unmounts the old root with the host's files. Attaches
/// the lab's directories there (`FROM_LAB`, and `nodes` unless one of these contains it), and those files of
/// `replaced` that exist in the old root.
pub fn enter<'a>(
    root: &OwnedFd,
    nodes: &'a Path,
    replaced: impl Iterator<Item = &'a Path>,
) -> Res<()> {
    let fail = |what: &Path| {
        let what = what.display().to_string();
        move |e: io::Error| format!("image: {what}: {e}")
    };
    let from_lab: Vec<&Path> = FROM_LAB
        .iter()
        .map(Path::new)
        .chain((!paths::is_private(nodes)).then_some(nodes))
        .chain(replaced.filter(|file| file.exists()))
        .collect();
    let trees = from_lab
        .iter()
        .map(|path| tree::clone(path).map_err(fail(path)))
        .collect::<Res<Vec<OwnedFd>>>()?;
    // SAFETY: the descriptor is open, the path a valid C string; the process is single threaded.
    unsafe {
        os::check(libc::fchdir(root.as_raw_fd())).map_err(fail(Path::new("/")))?;
        let here = c".".as_ptr();
        // This stacks the old root on the new one and unmounts it there (pivot_root(2), NOTES).
        os::check(libc::syscall(libc::SYS_pivot_root, here, here) as libc::c_int).map_err(|e| {
            format!("image: the root cannot be changed: {e}; vnet was started in a chroot: start it outside")
        })?;
        os::check(libc::umount2(here, libc::MNT_DETACH)).map_err(fail(Path::new("/")))?;
        os::check(libc::chdir(c"/".as_ptr())).map_err(fail(Path::new("/")))?;
    }
    directory(Path::new(SYS)).map_err(fail(Path::new(SYS)))?;
    for (path, tree) in from_lab.iter().zip(&trees) {
        let file = fs::File::from(tree.try_clone().map_err(fail(path))?);
        let about = file.metadata().map_err(fail(path))?;
        attach(path, about.is_dir(), tree).map_err(fail(path))?;
    }
    Ok(())
}

/// Attaches a mount tree at `path`, and makes the directory or file to mount on, if it is missing. First
/// removes what the image has there if it is of another kind; an error if that is a directory where a file
/// must be.
fn attach(path: &Path, is_directory: bool, tree: &OwnedFd) -> io::Result<()> {
    if is_directory {
        directory(path)?;
    } else {
        if fs::symlink_metadata(path).is_ok_and(|about| !about.is_file()) {
            fs::remove_file(path)?;
        }
        paths::make_mount_point(path, false)?;
    }
    tree::attach(tree, libc::AT_FDCWD, path)
}

/// Makes the directory `path` with its parents; first removes what exists at `path` and is no directory.
fn directory(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path).is_ok_and(|about| !about.is_dir()) {
        fs::remove_file(path)?;
    }
    fs::create_dir_all(path)
}
