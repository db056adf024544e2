//! A node whose files are those of a container image: an overlay of them, where what the node writes is its own.

use super::{mould, own, tree};
use crate::os::{self, Res};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

/// What a node has of the lab's, whatever its image holds there: each with all that is mounted below it.
const LENT: [&str; 5] = ["/proc", "/dev", "/run", "/tmp", "/var/tmp"];
/// A place for what is mounted later (`Built::furnish`).
const SYS: &str = "/sys";

/// Takes hold of the directory with an image's files; nothing of it can be written.
pub fn hold(path: &str) -> Res<OwnedFd> {
    let fail = |e: io::Error| format!("image: {path}: {e}");
    let files = tree::clone(Path::new(path)).map_err(fail)?;
    tree::change_detached(&files, tree::RDONLY | tree::NODEV).map_err(fail)?;
    Ok(files)
}

/// Mounts the node's root in its own file system at `place`, and takes hold of it.
pub fn root(files: &OwnedFd, place: &Path) -> io::Result<OwnedFd> {
    let [lower, upper, work, root] =
        ["image", "upper", "work", "root"].map(|name| place.join(name));
    for directory in [&lower, &upper, &work, &root] {
        own::make(directory, 0o755)?;
    }
    tree::attach(files, libc::AT_FDCWD, &lower)?;
    let options = format!(
        "lowerdir={},upperdir={},workdir={}",
        lower.display(),
        upper.display(),
        work.display()
    );
    tree::mount("overlay", &root, libc::MS_NODEV, &options)?;
    super::path_only(&root)
}

/// Makes that the root of the process, with what the node has of the lab's in it; nothing of the machine's is left.
pub fn enter<'a>(
    root: &OwnedFd,
    nodes: &'a Path,
    replaced: impl Iterator<Item = &'a Path>,
) -> Res<()> {
    let fail = |what: &Path| {
        let what = what.display().to_string();
        move |e: io::Error| format!("image: {what}: {e}")
    };
    let lent: Vec<&Path> = LENT
        .iter()
        .map(Path::new)
        .chain((!mould::in_own(nodes)).then_some(nodes))
        .chain(replaced.filter(|file| file.exists()))
        .collect();
    let trees = lent
        .iter()
        .map(|path| tree::clone(path).map_err(fail(path)))
        .collect::<Res<Vec<OwnedFd>>>()?;
    // SAFETY: the descriptor is open, the path a valid C string; the process is single threaded.
    unsafe {
        os::check(libc::fchdir(root.as_raw_fd())).map_err(fail(Path::new("/")))?;
        let here = c".".as_ptr();
        // The old root comes to lie over the new one, and is taken away there (pivot_root(2), NOTES).
        os::check(libc::syscall(libc::SYS_pivot_root, here, here) as libc::c_int).map_err(|e| {
            format!("image: the root cannot be changed: {e}; vnet was started in a chroot: start it outside")
        })?;
        os::check(libc::umount2(here, libc::MNT_DETACH)).map_err(fail(Path::new("/")))?;
        os::check(libc::chdir(c"/".as_ptr())).map_err(fail(Path::new("/")))?;
    }
    directory(Path::new(SYS)).map_err(fail(Path::new(SYS)))?;
    for (path, tree) in lent.iter().zip(&trees) {
        let file = fs::File::from(tree.try_clone().map_err(fail(path))?);
        let about = file.metadata().map_err(fail(path))?;
        put(path, about.is_dir(), tree).map_err(fail(path))?;
    }
    Ok(())
}

/// Links in an image lead within it by now; one in the place of what is lent goes.
fn put(path: &Path, is_directory: bool, tree: &OwnedFd) -> io::Result<()> {
    if is_directory {
        directory(path)?;
    } else {
        if fs::symlink_metadata(path).is_ok_and(|about| !about.is_file()) {
            fs::remove_file(path)?;
        }
        mould::point(path, false)?;
    }
    tree::attach(tree, libc::AT_FDCWD, path)
}

fn directory(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path).is_ok_and(|about| !about.is_dir()) {
        fs::remove_file(path)?;
    }
    fs::create_dir_all(path)
}
