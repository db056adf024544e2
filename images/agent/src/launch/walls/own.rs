//! What a node has by itself: /proc; from its first program on its directory, /tmp, /run and /var/tmp in one bounded file
//! system, and terminals.

use super::mould::{self, Mould};
use super::{Outside, image, tree};
use crate::os::Res;
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Files of a node beside its disk's blocks: one for so many bytes.
const BYTES_PER_FILE: u64 = 4096;
/// Directories of the node's file system: name, mode, where they appear.
const PLACES: [(&str, &str); 3] = [
    ("run", "/run"),
    ("var-tmp", "/var/tmp"),
    ("shm", "/dev/shm"),
];
const SHARED: u32 = 0o1777;

fn place(what: &str) -> impl Fn(std::io::Error) -> String {
    let what = what.to_owned();
    move |e| format!("walls: {what}: {e}")
}

/// Enters a copy of the mould, with the node's processes in it. There is nothing to write to before `furnish`.
pub fn enter(mould: &Mould) -> Res<()> {
    // SAFETY: the descriptors are open; the process is single threaded.
    unsafe {
        libc::umask(0o022); // the node's programs begin with the usual one, whatever the launcher's
        let entered = libc::setns(mould.mounts.as_raw_fd(), libc::CLONE_NEWNS) == 0
            && libc::fchdir(mould.root.as_raw_fd()) == 0
            && libc::chroot(c".".as_ptr()) == 0
            && libc::unshare(libc::CLONE_NEWNS) == 0;
        if !entered {
            return Err(place("the prepared view")(std::io::Error::last_os_error()));
        }
    }
    processes().map_err(place("/proc"))
}

/// Adds what is the node's to write to, what is opened for it there, and terminals.
pub fn furnish(mould: &Mould, outside: &Outside, name: &str, disk_bytes: u64) -> Res<()> {
    let nodes = outside.nodes.as_path();
    let staged = (0..mould.staged.len())
        .map(|i| tree::clone(&mould::waiting(i)))
        .collect::<std::io::Result<Vec<OwnedFd>>>()
        .map_err(place("what is opened"))?;
    let image = mould
        .image
        .then(|| tree::clone(Path::new(mould::IMAGE)))
        .transpose()
        .map_err(place("the image"))?;
    let root = disk(nodes, disk_bytes, image.as_ref()).map_err(place("the node's own files"))?;
    for (path, opened) in mould.staged.iter().zip(&staged) {
        is_directory(opened)
            .and_then(|directory| mould::point(path, directory))
            .and_then(|()| tree::attach(opened, libc::AT_FDCWD, path))
            .map_err(place(&path.to_string_lossy()))?;
    }
    let terminals = "newinstance,ptmxmode=0666,mode=0620,gid=5";
    tree::mount(
        "devpts",
        Path::new("/dev/pts"),
        libc::MS_NOSUID | libc::MS_NOEXEC,
        terminals,
    )
    .map_err(place("/dev/pts"))?;
    fs::create_dir_all(nodes.join(name)).map_err(place("the node's directory"))?;
    let replaced = outside.replaced.keys().map(PathBuf::as_path);
    root.map_or(Ok(()), |root| image::enter(&root, nodes, replaced))
}

fn is_directory(tree: &OwnedFd) -> std::io::Result<bool> {
    Ok(fs::File::from(tree.try_clone()?).metadata()?.is_dir())
}

/// One file system, so that one bound holds for all that the node writes. Answers the root that is made of an image.
fn disk(nodes: &Path, bytes: u64, image: Option<&OwnedFd>) -> std::io::Result<Option<OwnedFd>> {
    let tmp = Path::new("/tmp");
    let options = format!(
        "size={bytes},nr_inodes={},mode=755",
        (bytes / BYTES_PER_FILE).max(1024)
    );
    tree::mount("tmpfs", tmp, libc::MS_NODEV, &options)?;
    for (name, target) in PLACES {
        let (own, target) = (tmp.join(name), Path::new(target));
        if fs::symlink_metadata(target).is_ok_and(|about| about.is_symlink()) {
            continue; // it leads to another of them
        }
        make(&own, if name == "run" { 0o755 } else { SHARED })?;
        tree::bind(&own, target)?;
    }
    make(Path::new("/run/lock"), SHARED)?;
    if !mould::in_own(nodes) {
        make(&tmp.join("own"), 0o755)?;
        tree::bind(&tmp.join("own"), nodes)?;
    }
    let root = image.map(|image| image::root(image, tmp)).transpose()?;
    make(&tmp.join("tmp"), SHARED)?;
    tree::bind(&tmp.join("tmp"), tmp)?;
    Ok(root)
}

pub fn make(path: &Path, mode: u32) -> std::io::Result<()> {
    fs::create_dir(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// The node's processes and nobody else's; of the kernel's settings only those of the network can be written.
fn processes() -> std::io::Result<()> {
    let (proc, net) = (Path::new("/proc"), Path::new("/proc/sys/net"));
    let harmless = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    tree::mount("proc", proc, harmless, "")?;
    tree::change(proc, tree::RDONLY, 0, false)?;
    tree::bind(net, net)?;
    tree::change(net, 0, tree::RDONLY, false)
}
