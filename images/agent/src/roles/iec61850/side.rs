//! The two sides of frames right above Ethernet: a socket that sends them, and one that takes those of an ethertype.

use crate::os::Res;
use crate::packet;
use crate::records::Outcome;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// Frames that wait: a second of a fast stream.
const ROOM_BYTES: i32 = 8 << 20;
/// No frame is longer.
const LONGEST: usize = 65_536;
/// So many are taken in before the clock is looked at again: what arrives must not make late what is to be sent.
const AT_ONCE: usize = 64;

pub struct Sender {
    socket: OwnedFd,
    own: [u8; 6],
    /// Each is said once and not for every frame.
    troubles: BTreeSet<String>,
}

impl Sender {
    pub fn open(iface: &str) -> Res<Self> {
        let socket = packet::socket(libc::SOCK_NONBLOCK)?;
        packet::room(&socket, libc::SO_SNDBUF, libc::SO_SNDBUFFORCE, ROOM_BYTES)?;
        packet::bind(&socket, iface, 0)?;
        let (own, _) = packet::own(&socket)?;
        let troubles = BTreeSet::new();
        Ok(Self {
            socket,
            own,
            troubles,
        })
    }

    /// The address of its interface.
    pub fn address(&self) -> [u8; 6] {
        self.own
    }

    /// What became of a frame, and a trouble that is new.
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
            return (Outcome::Dropped, None); // a queue on its way was full
        }
        let text = format!("frame of {} bytes: {e}", frame.len());
        let new = self.troubles.insert(text.clone());
        (Outcome::Unsent, new.then_some(text))
    }
}

/// A socket for each interface that streams come by.
pub struct Receivers {
    sockets: Vec<OwnedFd>,
    input: Vec<u8>,
}

impl Receivers {
    /// Takes what comes by these interfaces to these groups with that ethertype, tagged or not.
    pub fn open<'a>(ethertype: u16, wanted: impl Iterator<Item = (&'a str, [u8; 6])>) -> Res<Self> {
        let mut groups: BTreeMap<&str, BTreeSet<[u8; 6]>> = BTreeMap::new();
        wanted.for_each(|(iface, group)| {
            groups.entry(iface).or_default().insert(group);
        });
        let open = |(iface, groups): (&&str, &BTreeSet<[u8; 6]>)| {
            let socket = packet::socket(libc::SOCK_NONBLOCK)?;
            packet::room(&socket, libc::SO_RCVBUF, libc::SO_RCVBUFFORCE, ROOM_BYTES)?;
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

    /// Hands over frames that one of the sockets has.
    pub fn receive(&mut self, fd: RawFd, each: &mut dyn FnMut(&[u8])) {
        for _ in 0..AT_ONCE {
            // SAFETY: room for as many bytes as it says.
            let n = unsafe { libc::recv(fd, self.input.as_mut_ptr().cast(), self.input.len(), 0) };
            let Ok(n) = usize::try_from(n) else {
                return;
            };
            each(&self.input[..n]);
        }
    }

    /// What there is to say of frames that the kernel dropped because the sockets were not read fast enough.
    pub fn overrun(&self) -> Option<String> {
        let count: u32 = self.sockets.iter().map(drops).sum();
        (count > 0).then(|| format!("{count} frames arrived and found the socket's buffer full"))
    }
}

/// Frames that found a socket full since it was last asked.
fn drops(socket: &OwnedFd) -> u32 {
    // SAFETY: all zero is valid.
    let mut seen: libc::tpacket_stats = unsafe { std::mem::zeroed() };
    let mut length = size_of_val(&seen) as libc::socklen_t;
    // SAFETY: room for `length` bytes.
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
