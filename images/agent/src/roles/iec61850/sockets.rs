//! Opens and uses packet sockets: one that sends frames, and others that receive frames of an EtherType.

use crate::os::Res;
use crate::packet;
use crate::records::Outcome;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// Size of socket buffers in bytes; they hold a second of a fast stream.
const BUFFER_BYTES: i32 = 8 << 20;
/// The longest possible frame in bytes.
const LONGEST: usize = 65_536;
/// The most frames to receive before the role checks the clock again, so that arrivals do not delay sends.
const AT_ONCE: usize = 64;

pub struct Sender {
    socket: OwnedFd,
    own: [u8; 6],
    /// The errors reported so far; each is reported once, and not for every frame.
    errors: BTreeSet<String>,
}

impl Sender {
    pub fn open(iface: &str) -> Res<Self> {
        let socket = packet::socket(libc::SOCK_NONBLOCK)?;
        packet::set_buffer(&socket, libc::SO_SNDBUF, libc::SO_SNDBUFFORCE, BUFFER_BYTES)?;
        packet::bind(&socket, iface, 0)?;
        let (own, _) = packet::own(&socket)?;
        let errors = BTreeSet::new();
        Ok(Self {
            socket,
            own,
            errors,
        })
    }

    /// Returns the MAC address of the socket's interface.
    pub fn address(&self) -> [u8; 6] {
        self.own
    }

    /// Sends a frame; returns the outcome, `Dropped` if a local queue is full, `Unsent` after any other
    /// error. Also returns the text of such an error if it is new.
    pub fn send(&mut self, frame: &[u8]) -> (Outcome, Option<String>) {
        // SAFETY: the frame is valid for its length.
        let n = unsafe {
            libc::send(
                self.socket.as_raw_fd(),
                frame.as_ptr().cast(),
                frame.len(),
                0,
            )
        };
        if n >= 0 {
            return (Outcome::Sent, None);
        }
        let e = io::Error::last_os_error();
        if e.kind() == ErrorKind::WouldBlock || e.raw_os_error() == Some(libc::ENOBUFS) {
            return (Outcome::Dropped, None); // a local queue was full
        }
        let text = format!("frame of {} bytes: {e}", frame.len());
        let new = self.errors.insert(text.clone());
        (Outcome::Unsent, new.then_some(text))
    }
}

/// Receives streams: one socket for each interface.
pub struct Receivers {
    sockets: Vec<OwnedFd>,
    input: Vec<u8>,
}

impl Receivers {
    /// Opens sockets that receive frames of an EtherType, tagged or not, to the given groups on the given
    /// interfaces.
    pub fn open<'a>(ethertype: u16, wanted: impl Iterator<Item = (&'a str, [u8; 6])>) -> Res<Self> {
        let mut groups: BTreeMap<&str, BTreeSet<[u8; 6]>> = BTreeMap::new();
        wanted.for_each(|(iface, group)| {
            groups.entry(iface).or_default().insert(group);
        });
        let open = |(iface, groups): (&&str, &BTreeSet<[u8; 6]>)| {
            let socket = packet::socket(libc::SOCK_NONBLOCK)?;
            packet::set_buffer(&socket, libc::SO_RCVBUF, libc::SO_RCVBUFFORCE, BUFFER_BYTES)?;
            packet::bind(&socket, iface, ethertype)?;
            groups
                .iter()
                .try_for_each(|group| packet::join(&socket, *group))?;
            Ok(socket)
        };
        Ok(Self {
            sockets: groups.iter().map(open).collect::<Res<_>>()?,
            input: vec![0; LONGEST],
        })
    }

    pub fn fds(&self, wait_for: &mut dyn FnMut(RawFd, bool)) {
        self.sockets
            .iter()
            .for_each(|socket| wait_for(socket.as_raw_fd(), false));
    }

    /// Passes the frames that one socket has received to `each`, at most `AT_ONCE`.
    pub fn receive(&mut self, fd: RawFd, each: &mut dyn FnMut(&[u8])) {
        for _ in 0..AT_ONCE {
            // SAFETY: the buffer has the given length.
            let n = unsafe { libc::recv(fd, self.input.as_mut_ptr().cast(), self.input.len(), 0) };
            let Ok(n) = usize::try_from(n) else {
                return;
            };
            each(&self.input[..n]);
        }
    }

    /// Returns a text with the number of frames that the kernel has dropped since the last call because a
    /// socket's buffer was full; None without any.
    pub fn overrun(&self) -> Option<String> {
        let count: u32 = self.sockets.iter().map(drops).sum();
        (count > 0).then(|| format!("{count} frames arrived and found the socket's buffer full"))
    }
}

/// Returns the number of frames dropped at a full socket since the last call; 0 if the kernel does not report
/// it.
fn drops(socket: &OwnedFd) -> u32 {
    // SAFETY: all zero is valid.
    let mut seen: libc::tpacket_stats = unsafe { std::mem::zeroed() };
    let mut length = size_of_val(&seen) as libc::socklen_t;
    // SAFETY: the structure has room for `length` bytes.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            (&raw mut seen).cast(),
            &mut length,
        )
    };
    if answer == 0 { seen.tp_drops } else { 0 }
}
