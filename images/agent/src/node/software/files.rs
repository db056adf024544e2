//! Writes a program's files before it starts, and opens its log.

use crate::launch::sandbox::Logs;
use crate::os::Res;
use crate::proto::Process;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Writes the files of the program `name` with their modes, replaces existing content, and creates missing
/// directories; relative paths begin at `dir`.
pub fn write(name: &str, dir: &str, spec: &Process) -> Res<()> {
    for file in &spec.files {
        let fail = |e: std::io::Error| {
            format!(
                "software {name}: file {}: {e}; choose a path that can be written",
                file.path
            )
        };
        let path = Path::new(dir).join(&file.path);
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir).map_err(fail)?;
        }
        let mut out = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(file.mode)
            .open(&path)
            .map_err(fail)?;
        out.write_all(file.content.as_bytes()).map_err(fail)?;
        // Set the mode explicitly: the umask or an existing file may have changed it.
        out.set_permissions(fs::Permissions::from_mode(file.mode))
            .map_err(fail)?;
    }
    Ok(())
}

/// Opens a log for appending, and creates it if needed; a node in the sandbox can open only files in the
/// directory `logs`, which is None for other nodes.
pub fn open_log(name: &str, path: &str, logs: Option<&Logs>) -> Res<File> {
    let within = logs.and_then(|logs| logs.append(Path::new(path)));
    let opened = within.unwrap_or_else(|| OpenOptions::new().append(true).create(true).open(path));
    opened.map_err(|e| {
        format!("software {name}: log {path}: {e}; the directory must exist and be writable")
    })
}
