//! Gives a node writable copies of directories of the host: mounts over each an overlay whose lower layer is
//! the directory and whose upper layer is the node's own file system.
//!
//! An overlay shows the files of its lower layer, and not what is mounted on them. So the mounts below the
//! directory, among them the covers of secret files, are attached again on the overlay. A directory or file
//! that is hidden, because not every user of the machine may read it, is an empty one of the node's own there,
//! with the owner and the mode that it has on the machine, so that a service can write to its logs.

use super::run_directories::RUN;
use super::{hidden, paths, tree};
use crate::os::Res;
use crate::proto::Mounts;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A directory of which nodes have copies, and the mounts below it that they keep.
pub struct Copied {
    pub path: PathBuf,
    pub kept: Vec<PathBuf>,
}

/// Detached mounts for the copy of one directory: the directory without the mounts below it, and these
/// mounts.
pub struct Taken<'a> {
    copied: &'a Copied,
    lower: OwnedFd,
    kept: Vec<OwnedFd>,
    /// For each of `kept`, whether it is the cover of a hidden directory or file.
    hidden: Vec<bool>,
}

/// Checks the directories of `mounts.copy`. Returns an error if one of them is no directory of the host, or
/// if the kernel has no seccomp filters; without a filter, a node's root could unmount the covers of secret
/// files.
pub fn check(mounts: &Mounts) -> Res<()> {
    for path in overlaid(mounts) {
        if !Path::new(path).is_dir() {
            return Err(format!(
                "mounts.copy: {path} is no directory of this machine; make it, or correct the path"
            ));
        }
        if !filters() {
            return Err(format!(
                "mounts.copy: {path}: the kernel has no seccomp filters, so a node could see secret files \
                 there; take a kernel with CONFIG_SECCOMP_FILTER, or leave the key out"
            ));
        }
    }
    Ok(())
}

/// Returns the directories of which nodes have an overlay: all of `mounts.copy` except /run, which each node has
/// of its own.
fn overlaid(mounts: &Mounts) -> impl Iterator<Item = &String> {
    mounts.copy.iter().filter(|path| *path != RUN)
}

/// Whether the kernel has seccomp filters that refuse system calls.
fn filters() -> bool {
    let action: u32 = libc::SECCOMP_RET_ERRNO;
    // SAFETY: the kernel reads one number.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_GET_ACTION_AVAIL,
            0,
            &raw const action,
        )
    };
    answer == 0
}

/// Bind-mounts each directory of `mounts.copy`, without the mounts below it, in the root template at
/// `paths::copied`. Returns an error for a directory that is hidden from nodes.
pub fn stage(mounts: &Mounts, hidden: &[PathBuf]) -> Res<()> {
    for (i, path) in overlaid(mounts).map(Path::new).enumerate() {
        let fail = |e: io::Error| format!("mounts.copy: {}: {e}", path.display());
        if hidden.iter().any(|top| path.starts_with(top)) {
            return Err(format!(
                "mounts.copy: {} is hidden from nodes, because not every user of the machine may read it",
                path.display()
            ));
        }
        let place = paths::copied(i);
        paths::make_mount_point(&place, true).map_err(fail)?;
        tree::bind(path, &place).map_err(fail)?;
    }
    Ok(())
}

/// Returns the directories of `mounts.copy` with the outermost mounts below each; `points` are all mount
/// points of the root template.
pub fn with_mounts(mounts: &Mounts, points: &[PathBuf]) -> Vec<Copied> {
    let below = |top: &Path| {
        let mut kept: Vec<PathBuf> = points
            .iter()
            .filter(|at| at.starts_with(top) && *at != top && !paths::is_private(at))
            .cloned()
            .collect();
        kept.sort();
        hidden::outermost(kept)
    };
    overlaid(mounts)
        .map(|path| Copied {
            kept: below(Path::new(path)),
            path: path.into(),
        })
        .collect()
}

/// Returns detached mounts for the copies. Call it before the node mounts its own /tmp, which covers these
/// mounts of the root template.
pub fn take(copies: &[Copied]) -> io::Result<Vec<Taken<'_>>> {
    copies
        .iter()
        .enumerate()
        .map(|(i, copied)| {
            let kept = copied.kept.iter().map(|path| tree::clone(path));
            let covers = [place_of(paths::NOTHING)?, place_of(paths::NO_FILE)?];
            let is_cover = |path: &PathBuf| Ok(covers.contains(&place_of(path)?));
            let hidden = copied.kept.iter().map(is_cover);
            Ok(Taken {
                copied,
                lower: tree::clone(&paths::copied(i))?,
                kept: kept.collect::<io::Result<_>>()?,
                hidden: hidden.collect::<io::Result<_>>()?,
            })
        })
        .collect()
}

/// Returns the numbers of a file's device and of the file on it.
fn place_of(path: impl AsRef<Path>) -> io::Result<(u64, u64)> {
    let about = fs::metadata(path)?;
    Ok((about.dev(), about.ino()))
}

/// Mounts the overlay of each copy on its directory, with the layers in the node's own file system at
/// `place`, and attaches the kept mounts. Afterwards no path leads to the directory without its covers.
pub fn mount(taken: &[Taken<'_>], place: &Path) -> io::Result<()> {
    for (i, one) in taken.iter().enumerate() {
        let [lower, upper, work] =
            ["lower", "upper", "work"].map(|name| place.join(format!("copy-{i}-{name}")));
        for directory in [&lower, &upper, &work] {
            paths::make(directory, 0o755)?;
        }
        tree::attach(&one.lower, libc::AT_FDCWD, &lower)?;
        alike(&lower, &upper)?;
        let options = format!(
            "lowerdir={},upperdir={},workdir={}",
            lower.display(),
            upper.display(),
            work.display()
        );
        let own = own_of_hidden(one, &lower, &place.join(format!("copy-{i}-own")))?;
        tree::mount("overlay", &one.copied.path, libc::MS_NODEV, &options)?;
        tree::clear(&lower)?;
        for ((path, kept), own) in one.copied.kept.iter().zip(&one.kept).zip(own) {
            match own {
                Some(own) => tree::bind(&own, path)?,
                None => tree::attach(kept, libc::AT_FDCWD, path)?,
            }
        }
    }
    Ok(())
}

/// Makes below `place` an empty directory or file for each hidden one of a copy, like that in `lower`; returns
/// one entry for each kept mount, None for those that hide nothing.
fn own_of_hidden(one: &Taken<'_>, lower: &Path, place: &Path) -> io::Result<Vec<Option<PathBuf>>> {
    paths::make(place, 0o755)?;
    let numbered = one.copied.kept.iter().zip(&one.hidden).enumerate();
    numbered
        .map(|(number, (path, hidden))| {
            let below = path.strip_prefix(&one.copied.path).ok().filter(|_| *hidden);
            let Some(below) = below else {
                return Ok(None);
            };
            let own = place.join(number.to_string());
            let like = lower.join(below);
            paths::make_mount_point(&own, fs::metadata(&like)?.is_dir())?;
            alike(&like, &own)?;
            Ok(Some(own))
        })
        .collect()
}

/// Gives `to` the owner and the mode of `from`: the top of an overlay has those of its upper layer.
fn alike(from: &Path, to: &Path) -> io::Result<()> {
    let about = fs::metadata(from)?;
    std::os::unix::fs::chown(to, Some(about.uid()), Some(about.gid()))?;
    fs::set_permissions(to, about.permissions())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_outermost_mounts_below_a_directory() {
        let mounts = Mounts {
            copy: vec!["/var".into(), "/etc".into()],
            ..Mounts::default()
        };
        let points = [
            "/",
            "/etc",
            "/etc/shadow",
            "/var/lib/a/b",
            "/var/lib/a",
            "/var/tmp",
            "/various",
            "/run",
        ]
        .map(PathBuf::from);
        let found = with_mounts(&mounts, &points);
        let kept: Vec<Vec<&Path>> = found
            .iter()
            .map(|one| one.kept.iter().map(PathBuf::as_path).collect())
            .collect();
        assert_eq!(
            kept,
            [
                vec![Path::new("/var/lib/a")],
                vec![Path::new("/etc/shadow")]
            ]
        );
    }

    #[test]
    fn refuses_what_is_no_directory() {
        let mounts = Mounts {
            copy: vec!["/etc/passwd".into()],
            ..Mounts::default()
        };
        assert!(
            check(&mounts)
                .unwrap_err()
                .contains("/etc/passwd is no directory")
        );
    }
}
