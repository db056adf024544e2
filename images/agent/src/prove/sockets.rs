//! One packet socket per namespace, for sending out of and receiving on all of its devices, with the kernel's receive times.

use super::frame::{DESTINATION, ETHERTYPE};
use crate::launch::netns;
use crate::os::{self, Res};
use crate::proto::LinkProbe;
use std::collections::HashMap;
use std::os::fd::{AsRawFd, OwnedFd};

const BUFFER_BYTES: i32 = 32 << 20;

/// Where a frame came in.
pub struct Place {
    pub netns: String,
    pub device: String,
    /// The only probe that ends here, if there is just one: a corrupted frame is counted for it.
    pub only: Option<usize>,
}

struct Namespace {
    socket: OwnedFd,
    places: HashMap<i32, Place>,
}

pub struct Sockets {
    epoll: OwnedFd,
    buffer: Vec<u8>,
    namespaces: Vec<Namespace>,
    /// For each probe: namespace and interface index to send out of.
    out: Vec<(usize, i32)>,
}

impl Sockets {
    /// Opens what the probes need.
    pub fn open(probes: &[LinkProbe]) -> Res<Self> {
        // SAFETY: plain numbers.
        let epoll = os::own(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })
            .map_err(|e| format!("prove: {e}"))?;
        let mut this = Self {
            epoll,
            buffer: vec![0; 65_536],
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

    /// Sends a frame; one that the queue refuses was offered to the link and counts as lost there.
    pub fn send(&self, probe: usize, bytes: &[u8]) -> Res<()> {
        let (place, index) = self.out[probe];
        let to = address(index);
        let size = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: buffer and address are valid for the sizes given.
        let n = unsafe {
            libc::sendto(
                self.namespaces[place].socket.as_raw_fd(),
                bytes.as_ptr().cast(),
                bytes.len(),
                libc::MSG_DONTWAIT,
                (&raw const to).cast(),
                size,
            )
        };
        if n >= 0 {
            return Ok(());
        }
        let error = std::io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::ENOBUFS | libc::EAGAIN | libc::ENETDOWN) => Ok(()),
            _ => Err(format!(
                "prove: frame of {} bytes: {error}; it must fit the device's MTU",
                bytes.len()
            )),
        }
    }

    /// Waits at most `wait_ns` for frames and hands over all that are there, each with its Unix time of arrival.
    pub fn receive(&mut self, wait_ns: i64, each: &mut dyn FnMut(&Place, i64, &[u8])) -> Res<()> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 64];
        let n = wait(self.epoll.as_raw_fd(), &mut events, wait_ns)
            .map_err(|e| format!("prove: {e}"))?;
        for event in &events[..n as usize] {
            let namespace = &self.namespaces[event.u64 as usize];
            let fd = namespace.socket.as_raw_fd();
            while let Some((n, index, at)) = receive_one(fd, &mut self.buffer) {
                if let Some(place) = namespace.places.get(&index) {
                    each(place, at, &self.buffer[..n]);
                }
            }
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

/// Waits to the nanosecond where the kernel can (Linux 5.11), else to the millisecond below. Asking again and again
/// through the last millisecond would take a core in real time and thousands of turns in virtual time.
fn wait(epoll: i32, events: &mut [libc::epoll_event; 64], wait_ns: i64) -> std::io::Result<i32> {
    let timeout = libc::timespec {
        tv_sec: wait_ns / 1_000_000_000,
        tv_nsec: wait_ns % 1_000_000_000,
    };
    // SAFETY: room for 64 events, a valid timespec, no signal mask.
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
        // SAFETY: room for 64 events.
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
    // Forced beyond rmem_max where that is allowed; losses for want of room would be blamed on the link.
    if option(&socket, libc::SO_RCVBUFFORCE, BUFFER_BYTES).is_err() {
        option(&socket, libc::SO_RCVBUF, BUFFER_BYTES)?;
    }
    if option(&socket, libc::SO_SNDBUFFORCE, BUFFER_BYTES).is_err() {
        option(&socket, libc::SO_SNDBUF, BUFFER_BYTES)?;
    }
    Ok(socket)
}

/// Lets the device take our frames: a physical NIC filters group addresses that nobody has asked for.
fn join(socket: &OwnedFd, index: i32) -> Res<()> {
    // SAFETY: all zero is a valid packet_mreq.
    let mut group: libc::packet_mreq = unsafe { std::mem::zeroed() };
    group.mr_ifindex = index;
    group.mr_type = libc::PACKET_MR_MULTICAST as u16;
    group.mr_alen = DESTINATION.len() as u16;
    group.mr_address[..DESTINATION.len()].copy_from_slice(&DESTINATION);
    // SAFETY: the group and its size.
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

/// Length, interface index and kernel time of one frame; nothing when no more are there.
fn receive_one(fd: i32, buffer: &mut [u8]) -> Option<(usize, i32, i64)> {
    let mut from = address(0);
    let mut control = [0u64; 16];
    let mut part = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    // SAFETY: all zero is a valid msghdr; every pointer set below outlives the call.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_name = (&raw mut from).cast();
    message.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: see above.
    let n = unsafe { libc::recvmsg(fd, &mut message, libc::MSG_DONTWAIT) };
    let n = usize::try_from(n).ok()?;
    let mut at = crate::clock::real_ns();
    // SAFETY: the kernel wrote well-formed control messages into `control`.
    unsafe {
        let mut c = libc::CMSG_FIRSTHDR(&message);
        while !c.is_null() {
            if (*c).cmsg_level == libc::SOL_SOCKET && (*c).cmsg_type == libc::SCM_TIMESTAMPNS {
                let ts: libc::timespec = std::ptr::read_unaligned(libc::CMSG_DATA(c).cast());
                at = ts.tv_sec * 1_000_000_000 + ts.tv_nsec;
            }
            c = libc::CMSG_NXTHDR(&message, c);
        }
    }
    Some((n, from.sll_ifindex, at))
}
