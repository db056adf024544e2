//! Captures the frames of a device into a pcap file, in a process of its own, and counts those that the kernel
//! dropped. Takes the place of tcpdump where a program that starts costs much: in virtual time.

mod pcap;

use crate::launch::netns;
use crate::netlink::Netlink;
use crate::os::{self, Res};
use crate::packet;
use crate::packet::ring::{Ring, Size};
use crate::proto::Capture;
use pcap::File;
use serde_json::{Value, json};
use std::os::fd::{AsRawFd, OwnedFd};

/// Holds one frame of 64 KiB, the largest, at least.
const BLOCK_BYTES: usize = 1 << 17;
/// As tcpdump has it: an unfinished block is passed on after this time.
const RETIRE_MS: u32 = 1000;

/// Captures until the pipe `until` is written to or closed. Calls `listening` once the capture has begun.
/// Returns the numbers of packets: written, passed by the filter, dropped at a full ring, dropped by the
/// interface.
pub fn run(spec: &Capture, until: &OwnedFd, listening: &dyn Fn()) -> Res<Value> {
    let there = netns::open(&spec.netns)?;
    os::enter_netns(&there)
        .map_err(|e| format!("namespace {}: cannot be entered: {e}", spec.netns))?;
    let mut file = File::create(&spec.file, spec.snaplen)?;
    let mut ring = open(spec)?;
    let missed_before = missed(&ring)?;
    listening();
    let ended = follow(spec, until, &mut ring, &mut file);
    packet::stop(ring.socket())?;
    ring.finish(&mut |frame| file.add(frame));
    file.write_all()?;
    ended?;
    let counts = ring.counts()?;
    Ok(json!({
        "packets": file.packets,
        "received": counts.passed,
        "dropped_kernel": counts.dropped,
        "dropped_interface": missed(&ring)?.saturating_sub(missed_before),
    }))
}

/// Writes frames until the pipe `until` is written to or closed; an error if the device or the file fails.
fn follow(spec: &Capture, until: &OwnedFd, ring: &mut Ring, file: &mut File) -> Res<()> {
    loop {
        let mut fds = [ring.raw(), until.as_raw_fd()].map(|fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        });
        os::poll(&mut fds, -1).map_err(|e| format!("device {}: {e}", spec.device))?;
        if fds[1].revents != 0 {
            return Ok(());
        }
        ring.drain(&mut |frame| file.add(frame));
        file.write_full()?;
        if fds[0].revents & libc::POLLERR != 0 {
            still_there(ring, &spec.device)?;
        }
    }
}

/// Opens the ring on the device and begins to receive, in promiscuous mode; an error if its frames are not
/// Ethernet's.
fn open(spec: &Capture) -> Res<Ring> {
    let socket = packet::socket(libc::SOCK_NONBLOCK)?;
    packet::filter(&socket, &mut program(spec))?;
    let size = Size {
        bytes: spec.ring_bytes,
        block_bytes: BLOCK_BYTES,
        retire_ms: RETIRE_MS,
    };
    let ring = Ring::new(socket, &size)?;
    packet::bind(ring.socket(), &spec.device, libc::ETH_P_ALL as u16)?;
    let hardware = packet::hardware(ring.socket())?;
    if hardware != libc::ARPHRD_ETHER {
        return Err(format!(
            "device {}: hardware type {hardware}; captures need Ethernet, type {}",
            spec.device,
            libc::ARPHRD_ETHER
        ));
    }
    packet::promiscuous(ring.socket())?;
    Ok(ring)
}

/// The filter's program, whose frames are cut at the snap length, so that the kernel copies no more of them.
fn program(spec: &Capture) -> Vec<libc::sock_filter> {
    const ANSWER: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let all = [(ANSWER, 0, 0, spec.snaplen)];
    let given: &[_] = if spec.filter.is_empty() {
        &all
    } else {
        &spec.filter
    };
    let cut = |(code, jt, jf, k): (u16, u8, u8, u32)| libc::sock_filter {
        code,
        jt,
        jf,
        k: if code == ANSWER && k != 0 {
            spec.snaplen
        } else {
            k
        },
    };
    given.iter().copied().map(cut).collect()
}

/// The frames that the ring's device has lost before the kernel saw them; 0 if the device is gone.
fn missed(ring: &Ring) -> Res<u64> {
    let index = packet::own(ring.socket())?.1;
    let links = Netlink::open()?.links()?;
    Ok(links.get(&index).map_or(0, |link| link.rx_missed))
}

/// Clears the socket's error. A device that is only down for a while is captured again when it is up; an error
/// if it is gone.
fn still_there(ring: &Ring, device: &str) -> Res<()> {
    let error = packet::take_error(ring.socket())
        .map_err(|e| format!("device {device}: {e}"))?
        .map(std::io::Error::from_raw_os_error);
    match error {
        None => Ok(()),
        Some(e) if e.raw_os_error() == Some(libc::ENETDOWN) => packet::index_of(device)
            .map(drop)
            .map_err(|why| format!("device {device} has disappeared: {why}")),
        Some(e) => Err(format!("device {device}: {e}")),
    }
}
