//! Proves links: sends raw frames through all links at once, and measures losses, delays, duplicates and
//! reordering.

mod frame;
mod sockets;

use crate::clock;
use crate::os::{self, Res};
use crate::proto::LinkProbe;
use frame::Frame;
use serde::Serialize;
use serde_json::{Value, json};
use sockets::Sockets;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

const LONGEST_WAIT_NS: i64 = 100_000_000;
const LAZY_NS: i64 = 20_000_000;

/// The result of a probe. `received` includes corrupted frames, and excludes duplicates.
#[derive(Default, Serialize)]
struct Seen {
    link: String,
    direction: String,
    sent: u32,
    received: u32,
    duplicates: u32,
    reordered: u32,
    corrupted: u32,
    delays_ns: Vec<i64>,
    arrivals_ns: Vec<i64>,
    #[serde(skip)]
    got: Vec<bool>,
    #[serde(skip)]
    highest: Option<u32>,
}

/// Runs all probes in parallel; returns one result object per probe, in the order of `probes`. An error if a
/// frame would be shorter than `frame::SMALLEST`, an interval is negative, or a device is missing.
pub fn run(probes: &[LinkProbe]) -> Res<Vec<Value>> {
    for p in probes {
        if p.size < frame::SMALLEST || p.interval_ns < 0 {
            return Err(format!(
                "prove: link {} {}: size {} or interval {} ns is too small; at least {} bytes and 0 ns",
                p.link,
                p.direction,
                p.size,
                p.interval_ns,
                frame::SMALLEST
            ));
        }
    }
    os::reduce_timer_slack();
    let mut sockets = Sockets::open(probes)?;
    let mut seen: Vec<Seen> = probes.iter().map(Seen::new).collect();
    exchange(probes, &mut sockets, &mut seen)?;
    // Closing a packet socket waits for an RCU grace period (15 ms), so the sockets stay open until the
    // process ends, after the answer.
    std::mem::forget(sockets);
    Ok(seen.iter().map(|s| json!(s)).collect())
}

fn exchange(probes: &[LinkProbe], sockets: &mut Sockets, seen: &mut [Seen]) -> Res<()> {
    let start = clock::mono_ns() + 1_000_000;
    let mut due = BinaryHeap::new();
    for (i, p) in probes.iter().enumerate().filter(|(_, p)| p.count > 0) {
        // Spreads the first frames of the probes over one interval, so that they are not all sent at one
        // instant.
        due.push(Reverse((
            start + p.start_ns + p.interval_ns * i as i64 / probes.len() as i64,
            i,
        )));
    }
    let mut until = start;
    // Frames that were sent together arrive one by one. The kernel records their times of arrival, so the
    // loop need not wake up for each.
    let together = probes.iter().all(|p| p.batch > 1);
    loop {
        let now = clock::mono_ns();
        while let Some(Reverse((at, i))) = due.peek().copied().filter(|Reverse((at, _))| *at <= now)
        {
            due.pop();
            let (p, s) = (&probes[i], &mut seen[i]);
            let together = p.batch.clamp(1, sockets::MOST).min(p.count - s.sent);
            sockets.send(i, &frames(i, p.size, s.sent, together))?;
            s.sent += together;
            until = until.max(clock::mono_ns() + p.timeout_ns);
            if s.sent < p.count {
                due.push(Reverse((at + p.interval_ns * i64::from(together), i)));
            } else if p.interval_ns == 0 {
                break; // a whole train: receive arrivals before the next one fills the socket
            }
        }
        let complete = due.is_empty() && seen.iter().all(|s| s.received >= s.sent);
        if complete || (due.is_empty() && now >= until) {
            // Duplicates of the last frames may still arrive.
            return sockets.receive(20_000_000, &mut |far, at, bytes| {
                take(probes, seen, far, at, bytes)
            });
        }
        let next = due.peek().map_or(until, |Reverse((at, _))| *at);
        let mut wait_ns = (next - clock::mono_ns()).clamp(0, LONGEST_WAIT_NS);
        if together {
            std::thread::sleep(Duration::from_nanos(wait_ns.min(LAZY_NS).unsigned_abs()));
            wait_ns = 0;
        }
        sockets.receive(wait_ns, &mut |far, at, bytes| {
            take(probes, seen, far, at, bytes)
        })?;
    }
}

/// Builds the next `count` frames of a probe from number `first` on, all with the present time as sending
/// time.
fn frames(probe: usize, size: usize, first: u32, count: u32) -> Vec<Vec<u8>> {
    let sent_ns = clock::real_ns();
    (first..first + count)
        .map(|seq| {
            Frame {
                probe: probe as u32,
                seq,
                sent_ns,
            }
            .write(size)
        })
        .collect()
}

/// Counts an arrived frame, if its probe ends at the device `far` where it arrived. A corrupted frame counts
/// for the only probe that ends there; if several do, for the probe whose number it carries.
fn take(probes: &[LinkProbe], seen: &mut [Seen], far: &sockets::Place, at_ns: i64, bytes: &[u8]) {
    let (frame, intact) = Frame::read(bytes);
    let index = if intact {
        frame.probe as usize
    } else {
        far.only.unwrap_or(frame.probe as usize)
    };
    let Some(probe) = probes
        .get(index)
        .filter(|p| p.far_netns == far.netns && p.far_device == far.device)
    else {
        return; // seen at another device (bridge, tap), or unrecognisably corrupted
    };
    seen[index].count(&frame, intact, at_ns, probe);
}

impl Seen {
    fn new(probe: &LinkProbe) -> Self {
        Self {
            link: probe.link.clone(),
            direction: probe.direction.clone(),
            got: vec![false; probe.count as usize],
            ..Self::default()
        }
    }

    fn count(&mut self, frame: &Frame, intact: bool, at_ns: i64, probe: &LinkProbe) {
        if !intact {
            self.corrupted += 1;
            self.received += 1;
            return;
        }
        if frame.seq >= probe.count {
            return;
        }
        if std::mem::replace(&mut self.got[frame.seq as usize], true) {
            self.duplicates += 1;
            return;
        }
        self.received += 1;
        self.reordered += u32::from(self.highest.is_some_and(|h| frame.seq < h));
        self.highest = self.highest.max(Some(frame.seq));
        if !probe.counts_only {
            self.delays_ns.push(at_ns - frame.sent_ns);
            self.arrivals_ns.push(at_ns);
        }
    }
}

#[cfg(feature = "fuzzing")]
pub fn fuzz(bytes: &[u8]) {
    _ = Frame::read(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(counts_only: bool) -> LinkProbe {
        LinkProbe {
            count: 10,
            counts_only,
            ..LinkProbe::default()
        }
    }

    fn seen(order: &[u32]) -> Seen {
        let mut s = Seen {
            got: vec![false; 10],
            ..Seen::default()
        };
        for seq in order {
            s.count(
                &Frame {
                    probe: 0,
                    seq: *seq,
                    sent_ns: 5,
                },
                true,
                9,
                &probe(false),
            );
        }
        s
    }

    #[test]
    fn order_and_copies_are_told_apart() {
        let s = seen(&[0, 2, 1, 1, 3]);
        assert_eq!((s.received, s.duplicates, s.reordered), (4, 1, 1));
        assert_eq!(s.delays_ns, [4, 4, 4, 4]);
    }

    #[test]
    fn a_corrupted_frame_has_no_delay() {
        let mut s = seen(&[0]);
        s.count(
            &Frame {
                probe: 0,
                seq: 77,
                sent_ns: 0,
            },
            false,
            9,
            &probe(false),
        );
        assert_eq!((s.received, s.corrupted, s.delays_ns.len()), (2, 1, 1));
    }

    #[test]
    fn frames_that_are_only_counted_have_no_delays() {
        let mut s = seen(&[0]);
        let frame = Frame {
            probe: 0,
            seq: 1,
            sent_ns: 5,
        };
        s.count(&frame, true, 9, &probe(true));
        assert_eq!(
            (s.received, s.delays_ns.len(), s.arrivals_ns.len()),
            (2, 1, 1)
        );
    }
}
