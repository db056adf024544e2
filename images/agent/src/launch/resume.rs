//! Implements the operation `resume`: sets the clock of a VM that was restored from a snapshot, and
//! reseeds its random numbers.
//!
//! Without this operation the clock would be as old as the snapshot, and every restore would draw the same
//! random numbers.

use super::Launcher;
use super::control_socket::ControlSocket;
use crate::clock;
use crate::os::{self, Res};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;

const RANDOM: &str = "/dev/urandom";
/// Bytes of the state of the kernel's random pool (BLAKE2s).
const SEED: usize = 32;
// include/uapi/linux/random.h: _IOW('R', 0x03, int[2]), _IO('R', 0x07)
const RNDADDENTROPY: libc::c_ulong = 0x4008_5203;
const RNDRESEEDCRNG: libc::c_ulong = 0x5207;

/// The kernel's struct rand_pool_info.
#[repr(C)]
struct PoolInfo {
    entropy_bits: libc::c_int,
    bytes: libc::c_int,
    buffer: [u8; SEED],
}

#[derive(Deserialize)]
pub struct Resume {
    /// Unix time to set, in nanoseconds.
    real_ns: i64,
    /// `SEED` random bytes from the host, in base64.
    seed: String,
}

impl Launcher {
    /// Sets the VM's clock, reseeds its random numbers, and returns the lab's time. The lab's clock follows
    /// only if the lab has no nodes yet, since it must not step while nodes use it. An error if the launcher
    /// listens on a Unix socket, since this machine is then the host.
    pub(super) fn resume(&self, spec: &Resume) -> Res<Map<String, Value>> {
        if matches!(self.control_socket, ControlSocket::Unix(_)) {
            return Err(
                "resume: the launcher may set the clock of a VM only, and this machine is the host"
                    .to_owned(),
            );
        }
        let seed = decoded(&spec.seed)?;
        clock::set_real_ns(spec.real_ns).map_err(|e| format!("resume: the clock: {e}"))?;
        reseed(&seed).map_err(|e| format!("resume: {RANDOM}: {e}"))?;
        if self.nodes.is_empty() {
            clock::rebase();
        }
        Ok(Map::from_iter([(
            "now_ns".to_owned(),
            json!(clock::lab_ns()),
        )]))
    }
}

fn decoded(seed: &str) -> Res<[u8; SEED]> {
    let bytes = STANDARD
        .decode(seed)
        .map_err(|e| format!("resume: seed: {e}; write base64"))?;
    let count = bytes.len();
    bytes
        .try_into()
        .map_err(|_| format!("resume: seed: {count} bytes; give {SEED}"))
}

/// Adds the seed to the kernel's random pool with full entropy credit, which makes an uninitialised generator
/// ready, and reseeds the generator of every processor.
fn reseed(seed: &[u8; SEED]) -> std::io::Result<()> {
    let pool = OpenOptions::new().write(true).open(RANDOM)?;
    let info = PoolInfo {
        entropy_bits: 8 * SEED as libc::c_int,
        bytes: SEED as libc::c_int,
        buffer: *seed,
    };
    // SAFETY: info is a rand_pool_info with its buffer; the second request takes no argument.
    unsafe {
        os::check(libc::ioctl(pool.as_raw_fd(), RNDADDENTROPY as _, &info))?;
        os::check(libc::ioctl(pool.as_raw_fd(), RNDRESEEDCRNG as _)).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_base64_of_the_pools_size() {
        assert_eq!(decoded(&STANDARD.encode([7; 32])).unwrap(), [7; 32]);
        let short = decoded(&STANDARD.encode([7; 31])).unwrap_err();
        assert!(short.contains("31 bytes; give 32"), "{short}");
        assert!(decoded("no base64!").unwrap_err().contains("base64"));
    }
}
