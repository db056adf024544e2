//! Makes the directories below /run that the machine's packages declare for their programs, in a node that has
//! a copy of /run: empty, with the owners and modes of the declarations.
//!
//! On a machine systemd makes them, at boot from tmpfiles.d and at a service's start from its unit
//! (`RuntimeDirectory`). The machine's own /run is never shown: its sockets lead out of the lab.

use super::paths::make;
use crate::os::Res;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The path in `mounts.copy` that stands for these directories.
pub const RUN: &str = "/run";
const DECLARED: [&str; 2] = ["/usr/lib/tmpfiles.d", "/etc/tmpfiles.d"];
const UNITS: [&str; 3] = [
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
    "/etc/systemd/system",
];
const USUAL: u32 = 0o755;

/// A declared directory; the owner and group are names, or numbers.
#[derive(Debug, Clone, PartialEq)]
struct Declared {
    mode: u32,
    user: String,
    group: String,
}

/// Makes the directories that the packages below `root` declare, in the node's own /run. Skips those whose
/// account the machine does not have, and those that exist.
pub fn make_in_node(root: &Path) -> Res<()> {
    let [passwd, group] = ["etc/passwd", "etc/group"].map(|name| read(&root.join(name)));
    let (users, groups) = (accounts(&passwd), accounts(&group));
    for (path, one) in find(root) {
        let fail = |e: std::io::Error| format!("sandbox: {}: {e}", path.display());
        let (Some(user), Some(group)) = (number(&users, &one.user), number(&groups, &one.group))
        else {
            continue;
        };
        let place = root.join(path.strip_prefix("/").unwrap_or(&path));
        if place.exists() {
            continue;
        }
        if let Some(above) = place.parent() {
            fs::create_dir_all(above).map_err(fail)?;
        }
        make(&place, one.mode).map_err(fail)?;
        std::os::unix::fs::chown(&place, Some(user), Some(group)).map_err(fail)?;
        // A change of the owner takes set-group-id away.
        fs::set_permissions(
            &place,
            std::os::unix::fs::PermissionsExt::from_mode(one.mode),
        )
        .map_err(fail)?;
    }
    Ok(())
}

/// Returns the declared directories below /run, by path; a directory sorts before those in it.
fn find(root: &Path) -> BTreeMap<PathBuf, Declared> {
    let mut found = BTreeMap::new();
    for text in texts(root, &UNITS, ".service") {
        found.extend(of_unit(&text));
    }
    for text in texts(root, &DECLARED, ".conf") {
        found.extend(text.lines().filter_map(of_line));
    }
    found
}

/// Returns the contents of the files with this ending in these directories below `root`, in the order of
/// directories and names.
fn texts(root: &Path, directories: &[&str], ending: &str) -> Vec<String> {
    let in_root = |path: &&str| root.join(path.trim_start_matches('/'));
    let mut all = Vec::new();
    for directory in directories.iter().map(in_root) {
        let Ok(entries) = fs::read_dir(&directory) else {
            continue; // a machine without systemd's files
        };
        let mut names: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        names.sort();
        names.retain(|path| path.to_string_lossy().ends_with(ending));
        all.extend(names.iter().map(|path| read(path)));
    }
    all
}

/// Returns the text of a file; empty if it cannot be read.
fn read(path: &Path) -> String {
    fs::read(path).map_or_else(
        |_| String::new(),
        |bytes| String::from_utf8_lossy(&bytes).into_owned(),
    )
}

/// Returns the directory of a line of tmpfiles.d (type, path, mode, user, group; `man tmpfiles.d`), None if
/// the line makes no directory below /run or has specifiers.
fn of_line(line: &str) -> Option<(PathBuf, Declared)> {
    let mut words = line.split_whitespace();
    if !words.next()?.starts_with(['d', 'D']) {
        return None;
    }
    let path = below_run(words.next()?)?;
    let mut word = || words.next().filter(|word| *word != "-");
    let mode = word().map_or(Some(USUAL), |text| {
        octal(text.trim_start_matches(['~', ':']))
    })?;
    let user = word().unwrap_or("root").trim_start_matches(':').to_owned();
    let group = word().unwrap_or("root").trim_start_matches(':').to_owned();
    Some((path, Declared { mode, user, group }))
}

/// Returns the directories of a unit's `RuntimeDirectory` (`man systemd.exec`), except those with specifiers.
fn of_unit(text: &str) -> Vec<(PathBuf, Declared)> {
    let value = |key: &str| {
        let values = text.lines().filter_map(|line| line.trim().split_once('='));
        values
            .filter(|(name, _)| name.trim() == key)
            .map(|(_, value)| value.trim().to_owned())
            .next_back()
    };
    let user = value("User").unwrap_or_else(|| "root".to_owned());
    let declared = Declared {
        mode: value("RuntimeDirectoryMode")
            .and_then(|text| octal(&text))
            .unwrap_or(USUAL),
        group: value("Group").unwrap_or_else(|| user.clone()),
        user,
    };
    let names = value("RuntimeDirectory").unwrap_or_default();
    names
        .split_whitespace()
        .filter_map(|name| below_run(&format!("/run/{}", name.split(':').next()?)))
        .map(|path| (path, declared.clone()))
        .collect()
}

/// Returns a path below /run in its shortest form (/var/run is /run); None for any other path, and for one
/// with `..` or a specifier.
fn below_run(path: &str) -> Option<PathBuf> {
    let path = path
        .strip_prefix("/var")
        .filter(|rest| rest.starts_with("/run/"))
        .unwrap_or(path);
    let inside = path.strip_prefix("/run/")?.trim_end_matches('/');
    let plain = !inside.is_empty() && !inside.contains('%');
    let parts = || inside.split('/');
    (plain && parts().all(|part| !matches!(part, "" | "." | "..")))
        .then(|| Path::new(RUN).join(inside))
}

fn octal(text: &str) -> Option<u32> {
    u32::from_str_radix(text, 8)
        .ok()
        .filter(|mode| *mode <= 0o7777)
}

/// Returns the numbers of the accounts in the text of /etc/passwd or /etc/group, by name.
fn accounts(text: &str) -> BTreeMap<&str, u32> {
    let fields = text.lines().map(|line| line.split(':').collect::<Vec<_>>());
    fields
        .filter_map(|fields| Some((*fields.first()?, fields.get(2)?.parse().ok()?)))
        .collect()
}

fn number(known: &BTreeMap<&str, u32>, name: &str) -> Option<u32> {
    known.get(name).copied().or_else(|| name.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(mode: u32, user: &str, group: &str) -> Declared {
        let [user, group] = [user, group].map(str::to_owned);
        Declared { mode, user, group }
    }

    #[test]
    fn reads_the_directories_of_tmpfiles_d() {
        let line = "d /run/postgresql 2775 postgres postgres - -";
        let of_postgresql = (
            PathBuf::from("/run/postgresql"),
            declared(0o2775, "postgres", "postgres"),
        );
        assert_eq!(of_line(line), Some(of_postgresql));
        let usual = (PathBuf::from("/run/a/b"), declared(0o755, "root", "root"));
        assert_eq!(of_line("D! /var/run/a/b/ - - -"), Some(usual));
        for other in [
            "",
            "# d /run/x",
            "f /run/x",
            "d /var/log/x",
            "d /run/%i",
            "d /run/../etc",
            "d /run",
            "d /run/x 99",
        ] {
            assert_eq!(of_line(other), None, "{other}");
        }
    }

    #[test]
    fn reads_the_directories_of_a_unit() {
        let unit = "[Service]\nUser=redis\nGroup=redis\nRuntimeDirectory=redis more/x ../etc %i\nRuntimeDirectoryMode=2755\n";
        let found = of_unit(unit);
        let paths: Vec<&Path> = found.iter().map(|(path, _)| path.as_path()).collect();
        assert_eq!(paths, [Path::new("/run/redis"), Path::new("/run/more/x")]);
        assert_eq!(found[0].1, declared(0o2755, "redis", "redis"));
        assert_eq!(of_unit("[Service]\nUser=a\n"), []);
    }

    #[test]
    fn makes_what_known_accounts_own_and_keeps_what_exists() {
        let root = std::env::temp_dir().join(format!("vnet-run-{}", std::process::id()));
        for directory in ["usr/lib/tmpfiles.d", "etc", "run/there"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        // SAFETY: plain numbers.
        let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
        fs::write(
            root.join("etc/passwd"),
            format!("me:x:{uid}:{gid}::/:/bin/sh\n"),
        )
        .unwrap();
        fs::write(root.join("etc/group"), format!("us:x:{gid}:\n")).unwrap();
        let lines =
            "d /run/a/b 2770 me us\nd /run/c 0700 nobody-knows us\nd /run/there 0700 me us\n";
        fs::write(root.join("usr/lib/tmpfiles.d/a.conf"), lines).unwrap();
        make_in_node(&root).unwrap();
        use std::os::unix::fs::PermissionsExt;
        let mode =
            |name: &str| fs::metadata(root.join(name)).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode("run/a/b"), 0o2770);
        assert_ne!(mode("run/there"), 0o700);
        assert!(!root.join("run/c").exists());
        fs::remove_dir_all(&root).unwrap();
    }
}
