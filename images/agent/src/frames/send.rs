//! Generates test frames in an open loop: sends each frame when it is due, and several in one system call
//! if several are due.

use super::frame::{self, Stamp};
use super::pace::Pace;
use super::{Send, socket};
use crate::clock;
use crate::os::{self, Res};
use crate::packet;
use serde_json::{Value, json};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// The most frames per system call. More do not raise the rate, and blur the sending times.
const BATCH: usize = 32;
/// During waits shorter than this the generator polls the clock instead of sleeping.
const SLEEP_NS: i64 = 20_000;
/// The most frames to catch up with at once after a stall; a longer burst would be another load than the
/// requested one.
const CATCH_UP: u32 = 128;
/// The time after which an interface that accepts nothing counts as down.
const STUCK_MS: i32 = 2_000;

/// The counts and times of the frames that a sender has sent. `refused` counts frames that the queue of its
/// own interface dropped.
#[derive(Default)]
struct Sent {
    frames: u32,
    refused: u64,
    waits: u64,
    late_ns: i64,
    first_ns: i64,
    last_ns: i64,
}

/// Sends the frames of a trial, for at most `longest_ns`; returns the counts and times as the fields of the
/// answer to `send`.
pub fn run(spec: &Send) -> Res<Value> {
    os::reduce_timer_slack();
    let socket = socket::sender(&spec.iface, spec.bypass)?;
    let template = frame::template(spec.size, frame::mac(&spec.to)?, packet::own(&socket)?.0);
    let mut batch = Batch::new(&template);
    let sent = exchange(spec, &socket, &mut batch)?;
    // Closing a packet socket waits for an RCU grace period, so leave it to the end of the process, after the
    // answer.
    std::mem::forget(socket);
    Ok(json!({
        "sent": sent.frames, "refused": sent.refused, "waits": sent.waits, "late_ns": sent.late_ns,
        "first_ns": sent.first_ns, "last_ns": sent.last_ns,
    }))
}

fn exchange(spec: &Send, socket: &OwnedFd, batch: &mut Batch) -> Res<Sent> {
    let pace = Pace::new(spec.rate_fps, spec.count);
    let mut sent = Sent::default();
    let most_late_ns = pace.at_ns(CATCH_UP);
    let mut start = clock::mono_ns();
    // Limits the duration of the trial if the host is too slow.
    let end = start + spec.longest_ns;
    while sent.frames < spec.count {
        let now = clock::mono_ns();
        if now >= end {
            break;
        }
        let late_ns = now - start - pace.at_ns(sent.frames);
        if late_ns < 0 {
            wait_until(now - late_ns);
            continue;
        }
        sent.late_ns = sent.late_ns.max(late_ns);
        if late_ns > most_late_ns && spec.rate_fps > 0.0 {
            start += late_ns - most_late_ns;
        }
        let due = pace.due(now - start);
        let wanted = (due - sent.frames).min(BATCH as u32) as usize;
        let at = clock::real_ns();
        batch.stamp(spec.trial, sent.frames, wanted, at);
        if sent.frames == 0 {
            sent.first_ns = at;
        }
        sent.last_ns = at;
        offer(spec, socket, batch, wanted, end, &mut sent)?;
    }
    Ok(sent)
}

/// Passes the first `wanted` frames of a batch to the kernel. A frame that the interface refuses counts as
/// sent and as `refused`; with `bypass` it is sent again until `end_ns`. Waits while the socket is full;
/// returns an error if that takes more than two seconds or the kernel reports another error.
fn offer(
    spec: &Send,
    socket: &OwnedFd,
    batch: &mut Batch,
    wanted: usize,
    end_ns: i64,
    sent: &mut Sent,
) -> Res<()> {
    let mut done = 0;
    while done < wanted {
        match batch.send(socket.as_raw_fd(), done, wanted) {
            Ok(n) => {
                done += n;
                sent.frames += n as u32;
            }
            Err(e) => match e.raw_os_error() {
                // With `bypass`, an error of the send call means that the NIC is busy, so the frame is sent
                // again.
                Some(libc::ENOBUFS) if spec.bypass => {
                    sent.waits += 1;
                    if clock::mono_ns() >= end_ns {
                        return Ok(()); // the carrier may be down
                    }
                }
                Some(libc::ENOBUFS | libc::ENETDOWN) => {
                    done += 1;
                    sent.frames += 1;
                    sent.refused += 1;
                }
                Some(libc::EAGAIN) => {
                    sent.waits += 1;
                    await_room(socket.as_raw_fd(), &spec.iface)?;
                }
                Some(libc::EINTR) => {}
                _ => return Err(failure(spec, &e)),
            },
        }
    }
    Ok(())
}

fn failure(spec: &Send, error: &std::io::Error) -> String {
    format!(
        "frames: {} bytes out of {}: {error}; the frame must fit the interface's MTU ({} bytes are needed)",
        spec.size,
        spec.iface,
        spec.size - frame::FCS - 14
    )
}

fn await_room(fd: RawFd, iface: &str) -> Res<()> {
    let mut fds = [libc::pollfd {
        fd,
        events: libc::POLLOUT,
        revents: 0,
    }];
    match os::poll(&mut fds, STUCK_MS).map_err(|e| format!("frames: {e}"))? {
        0 => Err(format!(
            "frames: {iface} took no frame for {STUCK_MS} ms; is its link up?"
        )),
        _ => Ok(()),
    }
}

/// Sleeps until `mono_ns`; returns at once if the wait is shorter than SLEEP_NS, since a sleep would end
/// too late.
fn wait_until(mono_ns: i64) {
    if mono_ns - clock::mono_ns() < SLEEP_NS {
        std::hint::spin_loop();
        return;
    }
    let until = libc::timespec {
        tv_sec: mono_ns / 1_000_000_000,
        tv_nsec: mono_ns % 1_000_000_000,
    };
    // SAFETY: a valid timespec. After an interruption the caller checks the clock again.
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &until,
            std::ptr::null_mut(),
        );
    }
}

/// A buffer of frames, and the message headers to send several per system call.
struct Batch {
    frames: Vec<Vec<u8>>,
    #[expect(dead_code, reason = "the headers point into it")]
    parts: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

impl Batch {
    fn new(template: &[u8]) -> Self {
        let mut frames = vec![template.to_vec(); BATCH];
        let mut parts: Vec<libc::iovec> = frames
            .iter_mut()
            .map(|f| libc::iovec {
                iov_base: f.as_mut_ptr().cast(),
                iov_len: f.len(),
            })
            .collect();
        let headers = parts
            .iter_mut()
            .map(|part| {
                // SAFETY: all zero is a valid mmsghdr.
                let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
                header.msg_hdr.msg_iov = part;
                header.msg_hdr.msg_iovlen = 1;
                header
            })
            .collect();
        Self {
            frames,
            parts,
            headers,
        }
    }

    fn stamp(&mut self, trial: u16, first: u32, count: usize, sent_ns: i64) {
        for (seq, bytes) in (first..).zip(&mut self.frames[..count]) {
            frame::stamp(
                bytes,
                Stamp {
                    trial,
                    seq,
                    sent_ns,
                },
            );
        }
    }

    fn send(&mut self, fd: RawFd, from: usize, to: usize) -> std::io::Result<usize> {
        // SAFETY: the headers and their targets live as long as this batch, whose vectors never grow.
        let n = unsafe {
            libc::sendmmsg(
                fd,
                self.headers[from..to].as_mut_ptr(),
                (to - from) as u32,
                libc::MSG_DONTWAIT,
            )
        };
        os::check(n).map(|n| n as usize)
    }
}
