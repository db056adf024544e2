//! Implements the operations `fetch` and `clock`, which read files and the time of a VM, since its host
//! cannot read them directly.

use crate::clock;
use crate::os::Res;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};

/// The largest chunk in bytes. One chunk is one line on the channel and must not delay other answers.
const LONGEST: u64 = 48 * 1024;
const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

#[derive(Deserialize)]
pub struct Fetch {
    path: String,
    #[serde(default)]
    offset: u64,
    length: u64,
}

/// Reads at most `length` bytes of a regular file from `offset` on. Returns `data` (base64; "" beyond the
/// end) and the file's present `size`, which is null if the file does not exist. Returns an error for a
/// length of 0 or above 48 KiB.
pub fn fetch(spec: &Fetch) -> Res<Map<String, Value>> {
    let path = spec.path.as_str();
    if spec.length == 0 || spec.length > LONGEST {
        return Err(format!(
            "fetch: length {} is not in 1..{LONGEST}; request the file in chunks",
            spec.length
        ));
    }
    let fail = |e: std::io::Error| format!("fetch: {path}: {e}");
    let mut file = match File::open(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(chunk("", None)),
        opened => opened.map_err(fail)?,
    };
    let about = file.metadata().map_err(fail)?;
    if !about.is_file() {
        return Err(format!("fetch: {path}: not a regular file; name a file"));
    }
    file.seek(SeekFrom::Start(spec.offset)).map_err(fail)?;
    let mut data = Vec::new();
    file.take(spec.length)
        .read_to_end(&mut data)
        .map_err(fail)?;
    Ok(chunk(&STANDARD.encode(&data), Some(about.len())))
}

fn chunk(data: &str, size: Option<u64>) -> Map<String, Value> {
    Map::from_iter([
        ("data".to_owned(), json!(data)),
        ("size".to_owned(), json!(size)),
    ])
}

/// Returns the lab's time (`now_ns`) and the name of the kernel's clock source (`source`, "" if unknown). It
/// reads the clock once, so that the client can bound it by the times of its request and of the answer.
pub fn clock() -> Map<String, Value> {
    let now = clock::lab_ns();
    // Informative only; a kernel without /sys gives no name.
    let source = std::fs::read_to_string(SOURCE).unwrap_or_default();
    Map::from_iter([
        ("now_ns".to_owned(), json!(now)),
        ("source".to_owned(), json!(source.trim())),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(path: &str, offset: u64, length: u64) -> Res<Map<String, Value>> {
        fetch(&Fetch {
            path: path.to_owned(),
            offset,
            length,
        })
    }

    #[test]
    fn chunks_join_to_the_file_and_beyond_its_end_there_is_nothing() {
        let file = std::env::temp_dir().join(format!("vnet-fetch-{}", std::process::id()));
        std::fs::write(&file, b"0123456789").unwrap();
        let path = file.to_str().unwrap();
        let chunks: Vec<_> = (0..3).map(|i| ask(path, i * 6, 6).unwrap()).collect();
        std::fs::remove_file(&file).unwrap();
        let data: Vec<&str> = chunks.iter().map(|c| c["data"].as_str().unwrap()).collect();
        assert_eq!(
            data,
            [
                STANDARD.encode("012345"),
                STANDARD.encode("6789"),
                String::new()
            ]
        );
        assert!(chunks.iter().all(|c| c["size"] == json!(10)));
    }

    #[test]
    fn a_file_that_is_not_there_has_no_size() {
        let answer = ask("/nowhere/at/all", 0, 1).unwrap();
        assert_eq!(answer["size"], Value::Null);
    }

    #[test]
    fn too_long_a_chunk_and_a_directory_are_refused() {
        let long = ask("/etc/hostname", 0, LONGEST + 1).unwrap_err();
        assert!(long.contains("chunks"));
        assert!(ask("/", 0, 1).unwrap_err().contains("regular file"));
    }

    #[test]
    fn the_clock_reads_forward() {
        let (a, b) = (clock(), clock());
        assert!(b["now_ns"].as_i64() >= a["now_ns"].as_i64());
        assert!(a["now_ns"].as_i64() > Some(1_700_000_000_000_000_000));
    }
}
