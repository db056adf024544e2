//! Mounts a node's private file systems: `enter` mounts /proc; `populate`, before the node's first program,
//! mounts /dev/pts and one tmpfs of limited size for /tmp, /run, /var/tmp, /dev/shm and the node's own
//! directory.

use super::host_files::HostFiles;
use super::paths::{self, make};
use super::root_template::RootTemplate;
use super::{copies, image, run_directories, tree};
use crate::os::Res;
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// The tmpfs has one inode per this many bytes.
const BYTES_PER_FILE: u64 = 4096;
/// Directories of the node's tmpfs: the name there, and the path where the directory is mounted.
const PLACES: [(&str, &str); 3] = [
    ("run", "/run"),
    ("var-tmp", "/var/tmp"),
    ("shm", "/dev/shm"),
];
/// The mode of directories where all users of the node may write, such as /tmp.
const SHARED: u32 = 0o1777;
/// The most terminals of a node. All nodes and containers of a machine share 3,072 by default
/// (drivers/tty/pty.c: NR_UNIX98_PTY_DEFAULT without NR_UNIX98_PTY_RESERVE).
const TERMINALS: u32 = 64;

fn place(what: &str) -> impl Fn(std::io::Error) -> String {
    let what = what.to_owned();
    move |e| format!("sandbox: {what}: {e}")
}

/// Moves this process into a copy of the root template, in a new mount namespace, and mounts /proc. Nothing
/// but /proc/sys/net is writable before `populate`.
pub fn enter(template: &RootTemplate) -> Res<()> {
    // SAFETY: the descriptors are open; the process is single threaded.
    unsafe {
        libc::umask(0o022); // programs must not inherit the launcher's
        let entered = libc::setns(template.mount_ns.as_raw_fd(), libc::CLONE_NEWNS) == 0
            && libc::fchdir(template.root.as_raw_fd()) == 0
            && libc::chroot(c".".as_ptr()) == 0
            && libc::unshare(libc::CLONE_NEWNS) == 0;
        if !entered {
            return Err(place("the root template")(std::io::Error::last_os_error()));
        }
    }
    processes().map_err(place("/proc"))
}

/// Covers the kernel's secret files in /proc, and mounts the node's writable tmpfs of `disk_bytes`, the
/// staged shared paths in it, and /dev/pts. Makes the directory of the node `name`. If the template has a
/// container image, moves this process into the root that is made from it.
pub fn populate(template: &RootTemplate, host: &HostFiles, name: &str, disk_bytes: u64) -> Res<()> {
    // /proc is covered before the node's own /tmp is mounted, since that hides the template's /tmp with the
    // empty file and directory.
    let (file, directory) = (Path::new(paths::NO_FILE), Path::new(paths::NOTHING));
    let covered = host.kernel.cover_proc(file, directory);
    covered.map_err(|e| format!("sandbox: {e}"))?;
    let nodes = host.nodes.as_path();
    let staged = (0..template.staged.len())
        .map(|i| tree::clone(&paths::staged(i)))
        .collect::<std::io::Result<Vec<OwnedFd>>>()
        .map_err(place("shared paths"))?;
    let image = template
        .image
        .then(|| tree::clone(Path::new(paths::IMAGE)))
        .transpose()
        .map_err(place("the image"))?;
    let copied = copies::take(&template.copies).map_err(place("copied directories"))?;
    let root =
        disk(nodes, disk_bytes, &copied, image.as_ref()).map_err(place("the node's own files"))?;
    if template.run {
        run_directories::make_in_node(Path::new("/"))?;
    }
    for (path, shared) in template.staged.iter().zip(&staged) {
        is_directory(shared)
            .and_then(|directory| paths::make_mount_point(path, directory))
            .and_then(|()| tree::attach(shared, libc::AT_FDCWD, path))
            .map_err(place(&path.to_string_lossy()))?;
    }
    let terminals = format!("newinstance,ptmxmode=0666,mode=0620,gid=5,max={TERMINALS}");
    tree::mount(
        "devpts",
        Path::new("/dev/pts"),
        libc::MS_NOSUID | libc::MS_NOEXEC,
        &terminals,
    )
    .map_err(place("/dev/pts"))?;
    fs::create_dir_all(nodes.join(name)).map_err(place("the node's directory"))?;
    let replaced = host.replaced.keys().map(PathBuf::as_path);
    root.map_or(Ok(()), |root| image::enter(&root, nodes, replaced))
}

/// Returns whether the root of a detached mount tree is a directory.
fn is_directory(tree: &OwnedFd) -> std::io::Result<bool> {
    Ok(fs::File::from(tree.try_clone()?).metadata()?.is_dir())
}

/// Mounts one tmpfs of `bytes` at /tmp for everything that the node writes, and the overlays of `copied`,
/// whose upper layers lie in it. Then bind-mounts its directories at their places: `PLACES` except symbolic
/// links, /tmp, and `nodes` unless it lies in one of them. Returns the opened root that is made from `image`;
/// None without an image.
fn disk(
    nodes: &Path,
    bytes: u64,
    copied: &[copies::Taken<'_>],
    image: Option<&OwnedFd>,
) -> std::io::Result<Option<OwnedFd>> {
    let tmp = Path::new("/tmp");
    let options = format!(
        "size={bytes},nr_inodes={},mode=755",
        (bytes / BYTES_PER_FILE).max(1024)
    );
    tree::mount("tmpfs", tmp, libc::MS_NODEV, &options)?;
    copies::mount(copied, tmp)?;
    for (name, target) in PLACES {
        let (own, target) = (tmp.join(name), Path::new(target));
        if fs::symlink_metadata(target).is_ok_and(|about| about.is_symlink()) {
            continue; // the link leads to another of these directories
        }
        make(&own, if name == "run" { 0o755 } else { SHARED })?;
        tree::bind(&own, target)?;
    }
    make(Path::new("/run/lock"), SHARED)?;
    if !paths::is_private(nodes) {
        make(&tmp.join("own"), 0o755)?;
        tree::bind(&tmp.join("own"), nodes)?;
    }
    let root = image
        .map(|image| image::mount_root(image, tmp))
        .transpose()?;
    make(&tmp.join("tmp"), SHARED)?;
    tree::bind(&tmp.join("tmp"), tmp)?;
    Ok(root)
}

/// Mounts a /proc that shows only the node's processes and is read only, except /proc/sys/net.
fn processes() -> std::io::Result<()> {
    let (proc, net) = (Path::new("/proc"), Path::new("/proc/sys/net"));
    let harmless = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    tree::mount("proc", proc, harmless, "")?;
    tree::change(proc, tree::RDONLY, 0, false)?;
    tree::bind(net, net)?;
    tree::change(net, 0, tree::RDONLY, false)
}
