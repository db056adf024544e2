//! Writes output files that appear under their final name only when complete.

use std::fs::{self, File};
use std::io::BufWriter;

/// A temporary file beside its final path; dropping it before `keep` removes the file.
pub struct Output {
    path: String,
    part: Option<String>,
}

impl Output {
    /// Creates the temporary file beside `path` and returns it with its writer. Returns an error if `path`
    /// exists and is no regular file, or if the temporary file cannot be created.
    pub fn create(path: &str) -> Result<(Self, BufWriter<File>), String> {
        // If the path is a device, the rename at the end would replace it by a file.
        if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            return Err(format!(
                "{path}: exists and is not a regular file; write another path"
            ));
        }
        let part = format!("{path}.part-{}", std::process::id());
        let file = File::create(&part).map_err(|error| format!("{path}: {error}"))?;
        let output = Self {
            path: path.into(),
            part: Some(part),
        };
        Ok((output, BufWriter::with_capacity(1 << 20, file)))
    }

    /// Renames the complete file to its final path.
    pub fn keep(mut self) -> Result<(), String> {
        let part = self.part.take().expect("kept once");
        fs::rename(part, &self.path).map_err(|error| format!("{}: {error}", self.path))
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(part) = &self.part
            && let Err(error) = fs::remove_file(part)
        {
            eprintln!("vnet-reduce: {part}: cannot be removed: {error}");
        }
    }
}
