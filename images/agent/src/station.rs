//! Runs the queues of an end node's protocol stack: `vnet-agent station FILE`. It takes the frames that the
//! kernel receives on one interface and passes them to the node's stack one by one, in the order of its
//! receive queues' algorithm. It sends the stack's frames in the order of its transmit queues' policy.
//!
//! The kernel diverts the frames to TAP devices. Frames that have passed the station carry a mark, and the
//! filters let frames with the mark through.

mod receive;
mod transmit;

use crate::clock;
use crate::gateway;
use crate::os::{self, Res};
use crate::packet;
use crate::tap;
use serde::Deserialize;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// The most frames to read before the station does other work.
const AT_ONCE: usize = 64;
/// The longest time for which a station that wakes up late passes the missed frames at once.
const CATCH_UP_NS: i64 = 10_000_000;
const LARGEST: usize = 65_536;
/// The least time between two lines of counters.
const LOG_NS: i64 = 1_000_000_000;
const ARP: u16 = 0x0806;
const TAGGED: u16 = 0x8100;

#[derive(Deserialize)]
struct Settings {
    device: String,
    /// The mark of frames that have passed the station.
    mark: u32,
    /// Lines for `tc -batch` that divert frames to the TAP devices, and frames from a TAP device back to the
    /// interface.
    filters: Vec<String>,
    receive: Option<Receiving>,
    transmit: Option<Transmitting>,
}

#[derive(Deserialize)]
struct Receiving {
    tap: String,
    algorithm: receive::Algorithm,
    promote_after: u32,
    limit: usize,
    rate_bps: u64,
    /// The priority code points of each queue except the lowest; the highest queue comes first.
    queues: Vec<Vec<u8>>,
}

#[derive(Deserialize)]
struct Transmitting {
    tap: String,
    policy: transmit::Policy,
    limit: usize,
    rate_bps: u64,
    /// The priority code points of frames that go directly into the hardware queue.
    high: Vec<u8>,
}

/// Runs the station until the process ends; `file` holds its settings.
pub fn run(file: &str) -> Res<()> {
    os::reduce_timer_slack();
    let mut station = Station::open(gateway::settings(file)?)?;
    println!("vnet: ready");
    loop {
        let fds = station.sides().map(|side| side.fd()).collect();
        let free = station.sides().filter_map(|side| side.deadline()).min();
        gateway::wait((fds, Vec::new()), free.unwrap_or(i64::MAX))?;
        station.forward(clock::mono_ns())?;
    }
}

struct Station {
    receive: Option<Side<Receive>>,
    transmit: Option<Side<Transmit>>,
    frame: Vec<u8>,
}

impl Station {
    fn open(settings: Settings) -> Res<Self> {
        let receive = settings.receive.map(Receive::open).transpose()?;
        let transmit = settings
            .transmit
            .map(|transmit| Transmit::open(transmit, &settings.device, settings.mark));
        let station = Self {
            receive,
            transmit: transmit.transpose()?,
            frame: vec![0; LARGEST],
        };
        tap::run_tc(&settings.filters)?;
        Ok(station)
    }

    fn sides(&self) -> impl Iterator<Item = &dyn Wakes> {
        let receive = self.receive.iter().map(|side| side as &dyn Wakes);
        receive.chain(self.transmit.iter().map(|side| side as &dyn Wakes))
    }

    fn forward(&mut self, now_ns: i64) -> Res<()> {
        if let Some(side) = &mut self.receive {
            side.forward(&mut self.frame, now_ns)?;
        }
        if let Some(side) = &mut self.transmit {
            side.forward(&mut self.frame, now_ns)?;
        }
        Ok(())
    }
}

/// The functions of one side of the station that the loop needs.
trait Wakes {
    /// Returns the descriptor to poll for reading.
    fn fd(&self) -> RawFd;
    /// Returns the monotonic time in ns at which the next frame may pass; None if no frame waits.
    fn deadline(&self) -> Option<i64>;
}

/// The queues of one side, and the function that passes a frame on.
trait Queues {
    fn push(&mut self, frame: &[u8]);
    fn pop(&mut self) -> Option<Vec<u8>>;
    /// Passes a frame on. A full queue or a link that is down is no error, since the kernel counts the loss.
    fn pass(&mut self, tap: &mut File, frame: &[u8]) -> Res<()>;
    fn waiting(&self) -> usize;
    /// Returns the counters for the log: arrived, passed, dropped, moved between queues.
    fn counters(&self) -> [u64; 4];
    const NAME: &'static str;
}

struct Side<Q> {
    tap: File,
    /// The MAC address of the TAP device. The kernel's own frames on the device carry it, and diverted frames
    /// do not.
    own: [u8; 6],
    queues: Q,
    rate_bps: u64,
    /// The time at which the next frame may pass, in nanoseconds of the monotonic clock.
    free_ns: i64,
    /// True if the last search of the queues found a frame that may pass. If false, only an arrival can
    /// change that.
    passes: bool,
    logged: ([u64; 4], i64),
}

impl<Q: Queues> Wakes for Side<Q> {
    fn fd(&self) -> RawFd {
        self.tap.as_raw_fd()
    }

    fn deadline(&self) -> Option<i64> {
        (self.passes && self.queues.waiting() > 0).then_some(self.free_ns)
    }
}

impl<Q: Queues> Side<Q> {
    fn open(tap: &str, queues: Q, rate_bps: u64) -> Res<Self> {
        let device = tap::open(tap)?;
        Ok(Self {
            own: tap::address(tap)?,
            tap: device,
            queues,
            rate_bps: rate_bps.max(1),
            free_ns: 0,
            passes: true,
            logged: ([0; 4], 0),
        })
    }

    fn forward(&mut self, frame: &mut [u8], now_ns: i64) -> Res<()> {
        self.take(frame, now_ns)?;
        while self.free_ns <= now_ns {
            let next = self.queues.pop();
            self.passes = next.is_some();
            let Some(frame) = next else {
                break;
            };
            self.queues.pass(&mut self.tap, &frame)?;
            let passing_ns = (8_000_000_000 * frame.len() as u64 / self.rate_bps) as i64;
            self.free_ns = self.free_ns.max(now_ns - CATCH_UP_NS) + passing_ns;
        }
        self.log(now_ns);
        Ok(())
    }

    fn take(&mut self, frame: &mut [u8], now_ns: i64) -> Res<()> {
        for _ in 0..AT_ONCE {
            let n = match os::read(self.tap.as_raw_fd(), frame) {
                Ok(n) => n,
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => break,
                Err(e) => return Err(format!("station: {e}")),
            };
            if frame.get(6..12) == Some(self.own.as_slice()) {
                continue;
            }
            if self.queues.waiting() == 0 || !self.passes {
                self.free_ns = self.free_ns.max(now_ns);
            }
            self.passes = true;
            self.queues.push(&frame[..n]);
        }
        Ok(())
    }

    fn log(&mut self, now_ns: i64) {
        let counters = self.queues.counters();
        if counters != self.logged.0 && now_ns - self.logged.1 >= LOG_NS {
            let at_s = clock::lab_ns() as f64 / 1e9;
            let ([arrived, passed, dropped, moved], name) = (counters, Q::NAME);
            println!("{name} {at_s:.3} {arrived} {passed} {dropped} {moved}");
            self.logged = (counters, now_ns);
        }
    }
}

struct Receive {
    queues: receive::Queues<Vec<u8>>,
    of_pcp: Vec<Vec<u8>>,
}

impl Receive {
    fn open(settings: Receiving) -> Res<Side<Self>> {
        let count = settings.queues.len() + 1;
        let (algorithm, after) = (settings.algorithm, settings.promote_after);
        let queues = receive::Queues::new(algorithm, after, settings.limit, count);
        let receive = Self {
            queues,
            of_pcp: settings.queues,
        };
        Side::open(&settings.tap, receive, settings.rate_bps)
    }
}

impl Queues for Receive {
    const NAME: &'static str = "receive";

    fn push(&mut self, frame: &[u8]) {
        let place = match priority(frame) {
            Priority::Address => 0,
            Priority::Code(pcp) => {
                let of = self.of_pcp.iter().position(|codes| codes.contains(&pcp));
                of.unwrap_or(self.of_pcp.len())
            }
            Priority::None => self.of_pcp.len(),
        };
        self.queues.push(place, frame.to_vec());
    }

    fn pop(&mut self) -> Option<Vec<u8>> {
        self.queues.pop()
    }

    fn pass(&mut self, tap: &mut File, frame: &[u8]) -> Res<()> {
        match tap.write(frame) {
            Ok(_) => Ok(()),
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => Ok(()),
            Err(e) => Err(format!("station: {e}")),
        }
    }

    fn waiting(&self) -> usize {
        self.queues.waiting()
    }

    fn counters(&self) -> [u64; 4] {
        let found = self.queues.counters();
        [found.arrived, found.taken, found.dropped, found.promoted]
    }
}

struct Transmit {
    queues: transmit::Queues<Vec<u8>>,
    high: Vec<u8>,
    socket: OwnedFd,
    index: i32,
}

impl Transmit {
    fn open(settings: Transmitting, device: &str, mark: u32) -> Res<Side<Self>> {
        let socket = packet::socket(libc::SOCK_NONBLOCK)?;
        packet::option(&socket, libc::SOL_SOCKET, libc::SO_MARK, &mark)?;
        let transmit = Self {
            queues: transmit::Queues::new(settings.policy, settings.limit),
            high: settings.high,
            socket,
            index: packet::index_of(device)?,
        };
        Side::open(&settings.tap, transmit, settings.rate_bps)
    }
}

impl Queues for Transmit {
    const NAME: &'static str = "transmit";

    fn push(&mut self, frame: &[u8]) {
        let high = match priority(frame) {
            Priority::Address => true,
            Priority::Code(pcp) => self.high.contains(&pcp),
            Priority::None => false,
        };
        self.queues.push(high, frame.to_vec());
    }

    fn pop(&mut self) -> Option<Vec<u8>> {
        self.queues.pop()
    }

    fn pass(&mut self, _tap: &mut File, frame: &[u8]) -> Res<()> {
        let protocol = word(frame, 12).unwrap_or_default();
        tap::send(&self.socket, self.index, protocol, frame).map_err(|e| format!("station: {e}"))
    }

    fn waiting(&self) -> usize {
        self.queues.waiting()
    }

    fn counters(&self) -> [u64; 4] {
        let found = self.queues.counters();
        [found.arrived, found.sent, found.dropped, found.moved]
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Priority {
    /// The frame is ARP, and gets the highest queue, since without ARP the node cannot send other frames.
    Address,
    Code(u8),
    None,
}

fn word(frame: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]))
}

/// Returns the priority of an Ethernet frame: the code point of its tag, or `Address` for ARP.
fn priority(frame: &[u8]) -> Priority {
    let tag = (word(frame, 12) == Some(TAGGED))
        .then(|| word(frame, 14))
        .flatten();
    let protocol = word(frame, if tag.is_some() { 16 } else { 12 });
    match (protocol, tag) {
        (Some(ARP), _) => Priority::Address,
        (_, Some(tag)) => Priority::Code((tag >> 13) as u8),
        _ => Priority::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(words: &[u16]) -> Vec<u8> {
        let mut frame = vec![0; 12];
        words
            .iter()
            .for_each(|word| frame.extend(word.to_be_bytes()));
        frame
    }

    #[test]
    fn a_frame_has_the_priority_of_its_tag() {
        assert_eq!(
            priority(&frame(&[TAGGED, 6 << 13 | 5, 0x0800])),
            Priority::Code(6)
        );
        assert_eq!(priority(&frame(&[TAGGED, 5, 0x0800])), Priority::Code(0));
        assert_eq!(priority(&frame(&[0x0800, 0xe000])), Priority::None);
        assert_eq!(priority(&frame(&[ARP])), Priority::Address);
        assert_eq!(priority(&frame(&[TAGGED, 5, ARP])), Priority::Address);
        assert_eq!(priority(&frame(&[TAGGED])), Priority::None, "it is cut");
        assert_eq!(priority(&[0; 3]), Priority::None);
    }
}
