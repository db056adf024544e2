//! Sends and receives probe frames: one packet socket per namespace serves all its devices, with the kernel's
//! receive times.

use super::frame::{DESTINATION, ETHERTYPE};
use crate::launch::netns;
use crate::os::{self, Res};
use crate::proto::LinkProbe;
use std::collections::HashMap;
use std::os::fd::{AsRawFd, OwnedFd};

const BUFFER_BYTES: i32 = 32 << 20;
/// The most frames per system call.
pub const MOST: u32 = 64;
const FRAME_BYTES: usize = 9216; // a jumbo frame
const CONTROL_WORDS: usize = 16;

/// A device on which probe frames arrive.
pub struct Place {
    pub netns: String,
    pub device: String,
    /// Index of the probe that ends at this device, if exactly one does; a corrupted frame counts for that
    /// probe. None if several probes end here.
    pub only: Option<usize>,
}

struct Namespace {
    socket: OwnedFd,
    places: HashMap<i32, Place>,
}

pub struct Sockets {
    epoll: OwnedFd,
    inbox: Inbox,
    namespaces: Vec<Namespace>,
    /// For each probe: index of the namespace, and index of the interface, from which it is sent.
    out: Vec<(usize, i32)>,
}

impl Sockets {
    /// Opens one socket in each namespace from which probes are sent or in which they arrive; an error if a
    /// namespace or device is missing.
    pub fn open(probes: &[LinkProbe]) -> Res<Self> {
        // SAFETY: plain numbers.
        let epoll = os::own(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })
            .map_err(|e| format!("prove: {e}"))?;
        let mut this = Self {
            epoll,
            inbox: Inbox::new(),
            namespaces: Vec::new(),
            out: Vec::new(),
        };
        let mut by_name: HashMap<String, (usize, HashMap<String, i32>)> = HashMap::new();
        for (i, p) in probes.iter().enumerate() {
            let (near, index) = this.device(&mut by_name, p, &p.netns, &p.device)?;
            this.out.push((near, index));
            let (far, index) = this.device(&mut by_name, p, &p.far_netns, &p.far_device)?;
            join(&this.namespaces[far].socket, index)?;
            this.namespaces[far]
                .places
                .entry(index)
                .and_modify(|place| place.only = None)
                .or_insert_with(|| Place {
                    netns: p.far_netns.clone(),
                    device: p.far_device.clone(),
                    only: Some(i),
                });
        }
        Ok(this)
    }

    fn device(
        &mut self,
        by_name: &mut HashMap<String, (usize, HashMap<String, i32>)>,
        probe: &LinkProbe,
        name: &str,
        device: &str,
    ) -> Res<(usize, i32)> {
        if !by_name.contains_key(name) {
            let (socket, names) = netns::within(name, || {
                Ok((packet_socket()?, crate::netlink::Netlink::open()?.names()?))
            })?;
            self.namespaces.push(Namespace {
                socket,
                places: HashMap::new(),
            });
            self.watch(self.namespaces.len() - 1)?;
            by_name.insert(name.to_owned(), (self.namespaces.len() - 1, names));
        }
        let (place, names) = &by_name[name];
        let index = names.get(device).ok_or_else(|| {
            format!(
                "prove: link {} {}: device {device} is not in namespace {name}; make it first",
                probe.link, probe.direction
            )
        })?;
        Ok((*place, *index))
    }

    /// Sends frames of a probe; skips frames that the interface's queue refuses, and all frames of an
    /// interface that is down; they count as lost.
    pub fn send(&self, probe: usize, frames: &[Vec<u8>]) -> Res<()> {
        let (place, index) = self.out[probe];
        let fd = self.namespaces[place].socket.as_raw_fd();
        let to = address(index);
        let mut left = frames;
        while !left.is_empty() {
            let went = send_some(fd, &to, left).or_else(|error| match error.raw_os_error() {
                Some(libc::ENOBUFS | libc::EAGAIN | libc::ENETDOWN) => Ok(1), // the first is lost
                _ => Err(format!(
                    "prove: frame of {} bytes: {error}; it must fit the device's MTU",
                    left[0].len()
                )),
            })?;
            left = &left[went..];
        }
        Ok(())
    }

    /// Waits at most `wait_ns` for frames, and passes all that have arrived to `each` with their Unix time of
    /// arrival.
    pub fn receive(&mut self, wait_ns: i64, each: &mut dyn FnMut(&Place, i64, &[u8])) -> Res<()> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 64];
        let n = wait(self.epoll.as_raw_fd(), &mut events, wait_ns)
            .map_err(|e| format!("prove: {e}"))?;
        for event in &events[..n as usize] {
            let namespace = &self.namespaces[event.u64 as usize];
            let fd = namespace.socket.as_raw_fd();
            self.inbox.take(fd, &mut |index, at, bytes| {
                if let Some(place) = namespace.places.get(&index) {
                    each(place, at, bytes);
                }
            });
        }
        Ok(())
    }

    fn watch(&self, namespace: usize) -> Res<()> {
        let fd = self.namespaces[namespace].socket.as_raw_fd();
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN as u32,
            u64: namespace as u64,
        };
        // SAFETY: event is valid; both descriptors are open.
        os::check(unsafe {
            libc::epoll_ctl(self.epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &mut event)
        })
        .map(drop)
        .map_err(|e| format!("prove: {e}"))
    }
}

/// Waits for events with nanosecond resolution if the kernel can (Linux 5.11), else rounds the wait down to
/// milliseconds. Polling through the last millisecond would occupy a core in real time, and cost thousands of
/// rounds in virtual time.
fn wait(epoll: i32, events: &mut [libc::epoll_event; 64], wait_ns: i64) -> std::io::Result<i32> {
    let timeout = libc::timespec {
        tv_sec: wait_ns / 1_000_000_000,
        tv_nsec: wait_ns % 1_000_000_000,
    };
    // SAFETY: the array has room for 64 events, the timespec is valid, and there is no signal mask.
    let n = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            epoll,
            events.as_mut_ptr(),
            64,
            &raw const timeout,
            std::ptr::null::<libc::sigset_t>(),
            0,
        )
    };
    if n == -1 && std::io::Error::last_os_error().raw_os_error() == Some(libc::ENOSYS) {
        // SAFETY: the array has room for 64 events.
        let n = unsafe {
            libc::epoll_wait(epoll, events.as_mut_ptr(), 64, (wait_ns / 1_000_000) as i32)
        };
        return os::check(n);
    }
    os::check(n as i32)
}

fn address(index: i32) -> libc::sockaddr_ll {
    // SAFETY: all zero is a valid sockaddr_ll.
    let mut to: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    to.sll_family = libc::AF_PACKET as u16;
    to.sll_protocol = ETHERTYPE.to_be();
    to.sll_ifindex = index;
    to
}

fn packet_socket() -> Res<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: plain numbers.
    let socket =
        os::own(unsafe { libc::socket(libc::AF_PACKET, kind, i32::from(ETHERTYPE.to_be())) })
            .map_err(|e| format!("prove: packet socket: {e}; run as root"))?;
    option(&socket, libc::SO_TIMESTAMPNS, 1)?;
    // The buffer may exceed rmem_max if that is allowed: frames lost at a full buffer would count as losses
    // of the link.
    if option(&socket, libc::SO_RCVBUFFORCE, BUFFER_BYTES).is_err() {
        option(&socket, libc::SO_RCVBUF, BUFFER_BYTES)?;
    }
    if option(&socket, libc::SO_SNDBUFFORCE, BUFFER_BYTES).is_err() {
        option(&socket, libc::SO_SNDBUF, BUFFER_BYTES)?;
    }
    Ok(socket)
}

/// Joins the probes' multicast group on the device; a physical NIC discards frames of groups that are not
/// joined.
fn join(socket: &OwnedFd, index: i32) -> Res<()> {
    // SAFETY: all zero is a valid packet_mreq.
    let mut group: libc::packet_mreq = unsafe { std::mem::zeroed() };
    group.mr_ifindex = index;
    group.mr_type = libc::PACKET_MR_MULTICAST as u16;
    group.mr_alen = DESTINATION.len() as u16;
    group.mr_address[..DESTINATION.len()].copy_from_slice(&DESTINATION);
    // SAFETY: the call gets the group and its size.
    os::check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_ADD_MEMBERSHIP,
            (&raw const group).cast(),
            size_of::<libc::packet_mreq>() as libc::socklen_t,
        )
    })
    .map(drop)
    .map_err(|e| format!("prove: group address of device {index}: {e}"))
}

fn option(socket: &OwnedFd, name: i32, value: i32) -> Res<()> {
    // SAFETY: an int option.
    os::check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            name,
            (&raw const value).cast(),
            4,
        )
    })
    .map(drop)
    .map_err(|e| {
        format!(
            "prove: socket option {name}: {e}; raw sockets need CAP_NET_RAW in the lab's namespaces"
        )
    })
}

/// Passes frames to the kernel in one call; returns how many it accepted.
fn send_some(fd: i32, to: &libc::sockaddr_ll, frames: &[Vec<u8>]) -> std::io::Result<usize> {
    let mut parts: Vec<libc::iovec> = frames
        .iter()
        .map(|frame| libc::iovec {
            iov_base: frame.as_ptr().cast_mut().cast(),
            iov_len: frame.len(),
        })
        .collect();
    let mut messages: Vec<libc::mmsghdr> = parts
        .iter_mut()
        .map(|part| {
            // SAFETY: all zero is a valid mmsghdr.
            let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
            message.msg_hdr.msg_name = std::ptr::from_ref(to).cast_mut().cast();
            message.msg_hdr.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            message.msg_hdr.msg_iov = part;
            message.msg_hdr.msg_iovlen = 1;
            message
        })
        .collect();
    // SAFETY: the kernel only reads address and frames, which outlive the call.
    let n = unsafe {
        libc::sendmmsg(
            fd,
            messages.as_mut_ptr(),
            messages.len() as u32,
            libc::MSG_DONTWAIT as _,
        )
    };
    os::check(n).map(|n| n as usize)
}

/// The buffers into which one system call receives frames.
struct Inbox {
    frames: Vec<Vec<u8>>,
    control: Vec<[u64; CONTROL_WORDS]>,
    from: Vec<libc::sockaddr_ll>,
}

impl Inbox {
    fn new() -> Self {
        let most = MOST as usize;
        Self {
            frames: vec![vec![0; FRAME_BYTES]; most],
            control: vec![[0; CONTROL_WORDS]; most],
            from: vec![address(0); most],
        }
    }

    /// Passes interface index, arrival time (Unix nanoseconds) and bytes of each waiting frame to `each`,
    /// until none is left.
    fn take(&mut self, fd: i32, each: &mut dyn FnMut(i32, i64, &[u8])) {
        loop {
            let mut parts: Vec<libc::iovec> = self
                .frames
                .iter_mut()
                .map(|frame| libc::iovec {
                    iov_base: frame.as_mut_ptr().cast(),
                    iov_len: frame.len(),
                })
                .collect();
            let mut messages: Vec<libc::mmsghdr> = (0..parts.len())
                .map(|i| {
                    // SAFETY: all zero is a valid mmsghdr.
                    let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
                    let header = &mut message.msg_hdr;
                    header.msg_name = (&raw mut self.from[i]).cast();
                    header.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
                    header.msg_iov = &raw mut parts[i];
                    header.msg_iovlen = 1;
                    header.msg_control = self.control[i].as_mut_ptr().cast();
                    header.msg_controllen = size_of_val(&self.control[i]) as _;
                    message
                })
                .collect();
            // SAFETY: every pointer set above outlives the call.
            let n = unsafe {
                libc::recvmmsg(
                    fd,
                    messages.as_mut_ptr(),
                    MOST,
                    libc::MSG_DONTWAIT as _,
                    std::ptr::null_mut(),
                )
            };
            let Ok(n) = usize::try_from(n) else {
                return;
            };
            for (i, message) in messages[..n].iter().enumerate() {
                let at = arrived(&message.msg_hdr).unwrap_or_else(crate::clock::real_ns);
                let bytes = (message.msg_len as usize).min(FRAME_BYTES);
                each(self.from[i].sll_ifindex, at, &self.frames[i][..bytes]);
            }
            if n < MOST as usize {
                return;
            }
        }
    }
}

/// Returns when the kernel received a frame, in Unix nanoseconds; None if the kernel reports no time.
fn arrived(message: &libc::msghdr) -> Option<i64> {
    // SAFETY: the kernel wrote well-formed control messages there.
    unsafe {
        let mut c = libc::CMSG_FIRSTHDR(message);
        while !c.is_null() {
            if (*c).cmsg_level == libc::SOL_SOCKET && (*c).cmsg_type == libc::SCM_TIMESTAMPNS {
                let ts: libc::timespec = std::ptr::read_unaligned(libc::CMSG_DATA(c).cast());
                return Some(ts.tv_sec * 1_000_000_000 + ts.tv_nsec);
            }
            c = libc::CMSG_NXTHDR(message, c);
        }
    }
    None
}
