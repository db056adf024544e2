//! Receives the frames of a trial and accounts for them until a report is requested.

use super::account::Account;
use super::frame::{self, Stamp};
use super::{Listen, socket};
use crate::clock;
use crate::os::{self, Res};
use crate::packet;
use crate::packet::ring::{Ring, Size};
use serde_json::{Value, json};
use std::os::fd::{AsRawFd, OwnedFd};

/// Number of learning frames that the receiver broadcasts; bridges and switches learn its port from them (RFC
/// 2544 section 23).
const LEARNING: u32 = 3;
const BLOCK_BYTES: usize = 1 << 18;
const RETIRE_MS: u32 = 4;
const LEAST_RING: usize = 1 << 20;
const MOST_RING: usize = 16 << 20;
/// The receive ring takes at most 1/16 of the available memory.
const SHARE: usize = 16;
const BROADCAST: [u8; 6] = [0xFF; 6];
/// The time after the last frame during which duplicates are still counted. It includes the 4 ms after which
/// the kernel passes on the ring's last block.
const COPIES_NS: i64 = 20_000_000;

/// Receives a trial and returns its counts. Calls `armed` with the receiver's MAC once reception has started.
/// Ends after the pipe `until` has delivered a waiting time and the number of sent frames: when that time has
/// passed, or 20 ms after all frames have arrived if that is earlier.
pub fn run(spec: &Listen, until: &OwnedFd, armed: &dyn Fn(String)) -> Res<Value> {
    let mut ring = Ring::new(
        socket::receiver()?,
        &Size {
            bytes: spec.ring_bytes.unwrap_or_else(ring_bytes),
            block_bytes: BLOCK_BYTES,
            retire_ms: RETIRE_MS,
        },
    )?;
    packet::bind(ring.socket(), &spec.iface, libc::ETH_P_IP as u16)?;
    let mut account = Account::new(spec.trial, spec.count);
    ring.counts()?; // resets them
    armed(frame::mac_text(learn(spec)?));
    let mut end_ns = i64::MAX;
    loop {
        let requested = end_ns < i64::MAX;
        if requested && account.complete() {
            end_ns = end_ns.min(clock::mono_ns() + COPIES_NS);
        }
        let left_ms = if requested {
            (end_ns - clock::mono_ns()) / 1_000_000
        } else {
            -1
        };
        if requested && left_ms <= 0 {
            break;
        }
        let mut fds = [ring.raw(), until.as_raw_fd()].map(|fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        });
        let watched = if requested { 1 } else { 2 };
        os::poll(&mut fds[..watched], left_ms.clamp(-1, 1000) as i32)
            .map_err(|e| format!("frames: {e}"))?;
        ring.drain(&mut |frame| account.take(frame.arrived_ns, frame.bytes));
        if fds[1].revents != 0 {
            let (wait_ns, sent) = read_request(until)?;
            end_ns = clock::mono_ns() + wait_ns;
            account.sent(sent);
        }
    }
    ring.drain(&mut |frame| account.take(frame.arrived_ns, frame.bytes));
    let dropped = ring.counts()?.dropped;
    // As in the sender, the end of the process closes the socket.
    std::mem::forget(ring);
    let mut report = account.report();
    report["ring_dropped"] = json!(dropped);
    Ok(report)
}

/// Returns the size of the receive ring in bytes: 16 MiB, which hold about 100,000 frames while this
/// process does not run; 1/16 of the available memory, and at least 1 MiB, on a machine with less.
fn ring_bytes() -> usize {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"));
    let words = line.and_then(|l| l.split_whitespace().next());
    let available = words.and_then(|w| w.parse::<usize>().ok()).unwrap_or(0) << 10;
    (available / SHARE).clamp(LEAST_RING, MOST_RING)
}

/// Reads from the pipe how long to wait for the last frames, in ns, and how many frames were sent; an
/// error if the node has closed the pipe.
fn read_request(control: &OwnedFd) -> Res<(i64, u32)> {
    let mut bytes = [0u8; 16];
    match os::read(control.as_raw_fd(), &mut bytes) {
        Ok(16) => {
            let [wait_ns, sent] =
                [0, 8].map(|at| i64::from_ne_bytes(std::array::from_fn(|i| bytes[at + i])));
            Ok((wait_ns, u32::try_from(sent).unwrap_or(u32::MAX)))
        }
        other => Err(format!("frames: the node ended the trial: {other:?}")),
    }
}

/// Broadcasts learning frames, so that no bridge floods the trial's frames; returns the receiver's MAC.
fn learn(spec: &Listen) -> Res<[u8; 6]> {
    let out = socket::sender(&spec.iface, false)?;
    let own = packet::own(&out)?.0;
    let mut bytes = frame::template(frame::SMALLEST, BROADCAST, own);
    for seq in 0..LEARNING {
        let stamp = Stamp {
            trial: !spec.trial,
            seq,
            sent_ns: 0,
        };
        frame::stamp(&mut bytes, stamp);
        os::write(out.as_raw_fd(), &bytes)
            .map_err(|e| format!("frames: learning frame out of {}: {e}", spec.iface))?;
    }
    std::mem::forget(out);
    Ok(own)
}
