//! Configures the network of the node's namespace by ioctl and netlink, without other programs, and reads the
//! result back.

mod forwarding;
mod naming;

use crate::ethtool::{self, Offloads, control_socket, request};
use crate::netlink::Netlink;
use crate::node::stack;
use crate::os::{self, Res};
use crate::proto::{Interface, Network, Route};
use serde::Serialize;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::Ordering;

/// The state of an interface as the kernel reports it.
#[derive(Debug, Serialize)]
pub struct Measured {
    name: String,
    address: Option<String>,
    prefix: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    second: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    second_prefix: Option<u32>,
    mtu: u32,
    mac: String,
    up: bool,
    offloads: Offloads,
}

/// The node's network as the kernel reports it. `forward` is false and `routes` is empty if they were not
/// requested.
#[derive(Debug, Serialize)]
pub struct Answer {
    interfaces: Vec<Measured>,
    forward: bool,
    routes: Vec<Route>,
}

/// Brings lo up, renames interfaces by their MACs, and sets every interface, forwarding, DSCP reflection,
/// routes and neighbours. Returns interfaces, forwarding and routes as the kernel reports them.
pub fn apply(wanted: &Network) -> Res<Answer> {
    let sock = control_socket()?;
    let mut netlink = Netlink::open()?;
    up(&sock, "lo")?;
    naming::by_mac(&sock, &wanted.interfaces)?;
    let interfaces: Vec<Measured> = wanted
        .interfaces
        .iter()
        .map(|i| one(&sock, &mut netlink, i))
        .collect::<Res<_>>()?;
    if wanted.forward {
        forwarding::on(&wanted.interfaces)?;
    }
    if wanted.reflect_dscp {
        forwarding::reflect()?;
    }
    let mut routes = Vec::new();
    for ipv6 in [false, true] {
        let several = |r: &Route| r.via.len() > 1 && r.via[0].contains(':') == ipv6;
        if wanted.routes.iter().any(several) {
            forwarding::by_flow(ipv6)?;
        }
    }
    if !wanted.routes.is_empty() {
        netlink.set_routes(&wanted.routes)?;
        routes = netlink.routes()?;
    }
    if !wanted.neighbours.is_empty() {
        netlink.set_neighbours(&wanted.neighbours)?;
    }
    Ok(Answer {
        interfaces,
        forward: wanted.forward && forwarding::read(&wanted.interfaces)?,
        routes,
    })
}

fn one(sock: &OwnedFd, netlink: &mut Netlink, spec: &Interface) -> Res<Measured> {
    let name = &spec.name;
    mtu(sock, name, spec.mtu)?;
    set_mac(sock, name, &spec.mac)?;
    let (six, four): (Vec<_>, Vec<_>) = spec.addresses().partition(|(a, _)| a.contains(':'));
    if six.len() > 1 || four.len() > 1 {
        return Err(format!(
            "{name}: has two addresses of one family; an interface has at most one of each"
        ));
    }
    if let Some((address, prefix)) = four.first() {
        address_of(sock, name, address, *prefix)?;
    }
    if !six.is_empty() {
        stack::IPV6.store(true, Ordering::Relaxed);
        forwarding::planned(name)?;
    }
    up(sock, name)?;
    let offloads = ethtool::switch_off(sock, netlink, name)?;
    let mut measured = read_back(sock, name, !four.is_empty(), offloads)?;
    let Some((address, prefix)) = six.first() else {
        return Ok(measured);
    };
    let (address, prefix) = with_ipv6(netlink, name, address, *prefix)?.unzip();
    if four.is_empty() {
        (measured.address, measured.prefix) = (address, prefix);
    } else if spec.address.as_deref().is_some_and(|a| a.contains(':')) {
        (measured.second, measured.second_prefix) = (measured.address, measured.prefix);
        (measured.address, measured.prefix) = (address, prefix);
    } else {
        (measured.second, measured.second_prefix) = (address, prefix);
    }
    Ok(measured)
}

/// Adds an IPv6 address to an interface that is up, and returns it with its prefix length as the kernel
/// reports them; None if the kernel does not report it.
fn with_ipv6(
    netlink: &mut Netlink,
    name: &str,
    address: &str,
    prefix: u8,
) -> Res<Option<(String, u32)>> {
    let wanted: Ipv6Addr = address
        .parse()
        .map_err(|_| format!("{name}: address \"{address}\" is not IPv6; write fd00::1"))?;
    let index = netlink.names()?.get(name).copied().unwrap_or_default();
    netlink
        .add_address(index, wanted, prefix)
        .map_err(|e| format!("{name}: address {address}/{prefix}: {e}"))?;
    let found = netlink.addresses(index)?;
    let ours = found.iter().find(|(a, _)| *a == wanted);
    Ok(ours.map(|(address, prefix)| (address.to_string(), u32::from(*prefix))))
}

fn address_of(sock: &OwnedFd, name: &str, address: &str, prefix: u8) -> Res<()> {
    let address: Ipv4Addr = address.parse().map_err(|_| {
        format!("{name}: address \"{address}\" is not IPv4; write four numbers with dots")
    })?;
    if prefix > 32 {
        return Err(format!("{name}: prefix {prefix} is not in 0..32"));
    }
    let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
    let broadcast = u32::from(address) | !mask;
    set_address(sock, name, libc::SIOCSIFADDR, address)?;
    set_address(sock, name, libc::SIOCSIFNETMASK, mask.into())?;
    set_address(sock, name, libc::SIOCSIFBRDADDR, broadcast.into())
}

fn call(sock: &OwnedFd, ifr: &mut libc::ifreq, op: libc::c_ulong, what: &str) -> Res<()> {
    // SAFETY: ifr is a valid ifreq for the interface operations used here.
    os::check(unsafe { libc::ioctl(sock.as_raw_fd(), op as _, ifr) })
        .map(drop)
        .map_err(|e| format!("{what}: {e}"))
}

/// Sets the MTU of an interface; returns the MTU that the kernel reports.
pub fn set_mtu(name: &str, value: u32) -> Res<u32> {
    let sock = control_socket()?;
    mtu(&sock, name, value)?;
    read_mtu(&sock, name)
}

fn mtu(sock: &OwnedFd, name: &str, value: u32) -> Res<()> {
    let mut ifr = request(name);
    ifr.ifr_ifru.ifru_mtu = value as i32;
    call(
        sock,
        &mut ifr,
        libc::SIOCSIFMTU,
        &format!("{name}: mtu {value}"),
    )
}

fn read_mtu(sock: &OwnedFd, name: &str) -> Res<u32> {
    let mut ifr = request(name);
    call(sock, &mut ifr, libc::SIOCGIFMTU, &format!("{name}: mtu"))?;
    // SAFETY: SIOCGIFMTU fills this member.
    Ok(unsafe { ifr.ifr_ifru.ifru_mtu } as u32)
}

fn set_mac(sock: &OwnedFd, name: &str, mac: &str) -> Res<()> {
    let bytes: Vec<u8> = mac
        .split(':')
        .filter_map(|b| u8::from_str_radix(b, 16).ok())
        .collect();
    if bytes.len() != 6 {
        return Err(format!(
            "{name}: mac \"{mac}\" is not six hexadecimal bytes with colons"
        ));
    }
    if read_mac(sock, name)? == mac.to_lowercase() {
        return Ok(());
    }
    let mut ifr = request(name);
    // SAFETY: the code writes the union member that SIOCSIFHWADDR reads.
    unsafe {
        ifr.ifr_ifru.ifru_hwaddr.sa_family = libc::ARPHRD_ETHER;
        for (to, from) in ifr.ifr_ifru.ifru_hwaddr.sa_data.iter_mut().zip(bytes) {
            *to = from as libc::c_char;
        }
    }
    call(
        sock,
        &mut ifr,
        libc::SIOCSIFHWADDR,
        &format!("{name}: mac {mac}"),
    )
}

fn read_mac(sock: &OwnedFd, name: &str) -> Res<String> {
    let mut ifr = request(name);
    call(sock, &mut ifr, libc::SIOCGIFHWADDR, &format!("{name}: mac"))?;
    // SAFETY: SIOCGIFHWADDR fills this member.
    let data = unsafe { ifr.ifr_ifru.ifru_hwaddr.sa_data };
    Ok(data[..6]
        .iter()
        .map(|b| format!("{:02x}", *b as u8))
        .collect::<Vec<_>>()
        .join(":"))
}

fn set_address(sock: &OwnedFd, name: &str, op: libc::c_ulong, value: Ipv4Addr) -> Res<()> {
    let mut ifr = request(name);
    let address = libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: 0,
        sin_addr: libc::in_addr {
            s_addr: u32::from(value).to_be(),
        },
        sin_zero: [0; 8],
    };
    // SAFETY: sockaddr_in and sockaddr have the same size.
    ifr.ifr_ifru.ifru_addr =
        unsafe { std::mem::transmute::<libc::sockaddr_in, libc::sockaddr>(address) };
    call(sock, &mut ifr, op, &format!("{name}: address {value}"))
}

fn read_address(sock: &OwnedFd, name: &str, op: libc::c_ulong) -> Res<Ipv4Addr> {
    let mut ifr = request(name);
    call(sock, &mut ifr, op, &format!("{name}: address"))?;
    // SAFETY: the kernel filled an AF_INET address.
    let address =
        unsafe { std::mem::transmute::<libc::sockaddr, libc::sockaddr_in>(ifr.ifr_ifru.ifru_addr) };
    Ok(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)))
}

fn flags(sock: &OwnedFd, name: &str) -> Res<i16> {
    let mut ifr = request(name);
    call(
        sock,
        &mut ifr,
        libc::SIOCGIFFLAGS,
        &format!("{name}: flags"),
    )?;
    // SAFETY: SIOCGIFFLAGS fills this member.
    Ok(unsafe { ifr.ifr_ifru.ifru_flags })
}

fn up(sock: &OwnedFd, name: &str) -> Res<()> {
    let mut ifr = request(name);
    ifr.ifr_ifru.ifru_flags = flags(sock, name)? | libc::IFF_UP as i16;
    call(sock, &mut ifr, libc::SIOCSIFFLAGS, &format!("{name}: up"))
}

/// Returns the state of an interface as the kernel reports it, with `offloads`. Leaves out the address unless
/// `addressed`, since the kernel refuses to report an address that does not exist.
fn read_back(sock: &OwnedFd, name: &str, addressed: bool, offloads: Offloads) -> Res<Measured> {
    let ask = |op| addressed.then(|| read_address(sock, name, op)).transpose();
    Ok(Measured {
        name: name.to_owned(),
        address: ask(libc::SIOCGIFADDR)?.map(|a| a.to_string()),
        prefix: ask(libc::SIOCGIFNETMASK)?.map(|m| u32::from(m).count_ones()),
        second: None,
        second_prefix: None,
        mtu: read_mtu(sock, name)?,
        mac: read_mac(sock, name)?,
        up: flags(sock, name)? & libc::IFF_UP as i16 != 0,
        offloads,
    })
}
