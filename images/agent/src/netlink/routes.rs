//! Sets IPv4 and IPv6 routes of a namespace in batches, and reads them; names and layout: linux/rtnetlink.h.

use super::{HEADER, Netlink, attribute, i32_at, put};
use crate::os::{self, Res};
use crate::proto::Route;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd;

const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
const RTA_DST: u16 = 1;
const RTA_GATEWAY: u16 = 5;
const RTA_MULTIPATH: u16 = 9;
const RT_TABLE_MAIN: u8 = 254;
/// The protocol number that marks vNET's routes; routes of daemons and of the kernel have others.
const RTPROT_STATIC: u8 = 4;
const RTN_UNICAST: u8 = 1;
const RTMSG: usize = 12;
const NEXTHOP: usize = 8;
/// Requests per write; the socket's buffer has room for more.
const BATCH: usize = 200;

impl Netlink {
    /// Sets all routes, each replacing a route to the same subnet, in batches of `BATCH`. The error names the
    /// first route that is invalid or that the kernel refuses. A batch with an invalid route is not sent, and
    /// neither is any later batch.
    pub fn set_routes(&mut self, routes: &[Route]) -> Res<()> {
        let all: Vec<(&String, &Route)> = routes
            .iter()
            .flat_map(|r| r.to.iter().map(move |to| (to, r)))
            .collect();
        for batch in all.chunks(BATCH) {
            self.set(batch)?;
        }
        Ok(())
    }

    /// Returns vNET's routes (main table, protocol `RTPROT_STATIC`), with the subnets grouped by their set of
    /// gateways.
    pub fn routes(&mut self) -> Res<Vec<Route>> {
        let mut found: BTreeMap<Vec<String>, Vec<String>> = BTreeMap::new();
        for family in [libc::AF_INET, libc::AF_INET6] {
            let mut wanted = [0u8; RTMSG];
            wanted[0] = family as u8;
            self.dump(RTM_GETROUTE, &wanted, |body| {
                // A kernel without this family answers with the routes of all families.
                if let Some((to, via)) = entry(body).filter(|_| body[0] == family as u8) {
                    found.entry(via).or_default().push(to);
                }
            })?;
        }
        let list = found.into_iter();
        Ok(list.map(|(via, to)| Route { to, via }).collect())
    }

    /// Sends one batch of routes; an error with the first route that the kernel refuses. The kernel
    /// acknowledges the last request, and answers a refused one with an error that carries the request's
    /// number.
    fn set(&mut self, batch: &[(&String, &Route)]) -> Res<()> {
        let mut requests = Vec::with_capacity(batch.len() * 64);
        for (number, (to, route)) in batch.iter().enumerate() {
            let last = number + 1 == batch.len();
            requests.extend(request(number as u32, to, &route.via, last)?);
        }
        os::write(self.fd.as_raw_fd(), &requests).map_err(|e| format!("routes: {e}"))?;
        let mut first = None;
        // Reads answers until that of the last request: refusals, each with the header of its request, come
        // before it. None may stay unread: it would be taken for the answer to a later request.
        loop {
            let n = self.receive().map_err(|e| format!("routes: {e}"))?;
            if n < HEADER + 16 {
                return Err(format!("routes: the kernel answered {n} bytes"));
            }
            let (number, answer) = (
                i32_at(&self.buffer, 8) as usize,
                i32_at(&self.buffer, HEADER),
            );
            let (to, route) = batch[number.min(batch.len() - 1)];
            if answer != 0 && first.is_none() {
                let error = std::io::Error::from_raw_os_error(-answer);
                first = Some(format!("route {to} via {}: {error}", route.via.join(", ")));
            }
            if number + 1 >= batch.len() {
                return first.map_or(Ok(()), Err);
            }
        }
    }
}

fn request(number: u32, to: &str, via: &[String], last: bool) -> Res<Vec<u8>> {
    let (address, prefix) = subnet(to)?;
    let family = if address.is_ipv6() {
        libc::AF_INET6
    } else {
        libc::AF_INET
    };
    let mut body = vec![family as u8, prefix, 0, 0];
    body.extend([RT_TABLE_MAIN, RTPROT_STATIC, 0, RTN_UNICAST, 0, 0, 0, 0]);
    if prefix > 0 {
        put(&mut body, RTA_DST, &octets(address));
    }
    match via {
        [one] => put(&mut body, RTA_GATEWAY, &octets(gateway(to, address, one)?)),
        several => {
            let mut hops = Vec::new();
            for one in several {
                let mut hop = Vec::new();
                put(&mut hop, RTA_GATEWAY, &octets(gateway(to, address, one)?));
                hops.extend(((NEXTHOP + hop.len()) as u16).to_ne_bytes());
                hops.extend([0u8; 6]); // no flags, equal weights, any interface
                hops.extend(hop);
            }
            put(&mut body, RTA_MULTIPATH, &hops);
        }
    }
    let mut flags = libc::NLM_F_REQUEST | libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
    if last {
        flags |= libc::NLM_F_ACK;
    }
    Ok(super::request(RTM_NEWROUTE, flags, number, &body))
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

fn subnet(text: &str) -> Res<(IpAddr, u8)> {
    let parts = text.split_once('/');
    let parsed: Option<(IpAddr, u8)> =
        parts.and_then(|(a, p)| Some((a.parse().ok()?, p.parse().ok()?)));
    parsed
        .filter(|(address, prefix)| usize::from(*prefix) <= 8 * octets(*address).len())
        .ok_or_else(|| format!("route \"{text}\": no subnet; write 10.1.0.0/16 or fd00:1::/64"))
}

/// Parses a gateway's address, which must be of the subnet's address family.
fn gateway(to: &str, address: IpAddr, text: &str) -> Res<IpAddr> {
    let parsed = text.parse().ok();
    parsed
        .filter(|gateway: &IpAddr| gateway.is_ipv6() == address.is_ipv6())
        .ok_or_else(|| format!("route {to}: gateway \"{text}\" is no address of the same family"))
}

/// Parses a route from a dump: returns subnet and sorted gateways of a route that vNET set (main table,
/// protocol `RTPROT_STATIC`), None for others.
pub fn entry(body: &[u8]) -> Option<(String, Vec<String>)> {
    let (&prefix, ours) = (body.get(1)?, [body.get(4)?, body.get(5)?]);
    if ours != [&RT_TABLE_MAIN, &RTPROT_STATIC] {
        return None;
    }
    let everywhere: IpAddr = if i32::from(body[0]) == libc::AF_INET6 {
        Ipv6Addr::UNSPECIFIED.into()
    } else {
        Ipv4Addr::UNSPECIFIED.into()
    };
    let attributes = body.get(RTMSG..)?;
    let to = attribute(attributes, RTA_DST).map_or(Some(everywhere), address)?;
    let mut via = match attribute(attributes, RTA_MULTIPATH) {
        Some(hops) => nexthops(hops),
        None => vec![address(attribute(attributes, RTA_GATEWAY)?)?.to_string()],
    };
    via.sort();
    Some((format!("{to}/{prefix}"), via))
}

fn nexthops(mut rest: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    while rest.len() >= NEXTHOP {
        let length = usize::from(u16::from_ne_bytes([rest[0], rest[1]])).clamp(NEXTHOP, rest.len());
        let gateway = attribute(&rest[NEXTHOP..length], RTA_GATEWAY).and_then(address);
        found.extend(gateway.map(|a| a.to_string()));
        rest = rest.get(super::align(length)..).unwrap_or(&[]);
    }
    found
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from))
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_and_its_entry_agree() {
        for (to, via) in [
            ("10.1.2.0/24", vec!["10.0.0.1"]),
            ("0.0.0.0/0", vec!["10.0.0.9", "10.0.1.9"]),
            ("fd00:2::/64", vec!["fd00:1::2"]),
            ("::/0", vec!["fd00:0:0:1::9", "fd00::9"]),
        ] {
            let via: Vec<String> = via.into_iter().map(str::to_owned).collect();
            let message = request(7, to, &via, true).unwrap();
            assert_eq!(entry(&message[HEADER..]), Some((to.to_owned(), via)));
            assert_eq!(message.len() % 4, 0);
        }
    }

    #[test]
    fn no_refusal_is_left_unread() {
        std::thread::spawn(|| {
            // SAFETY: the argument is a plain number. No interface is up in the thread's new namespace, so
            // the kernel refuses all routes. If the thread may not make a namespace, the kernel refuses them
            // as well.
            unsafe { libc::unshare(libc::CLONE_NEWNET) };
            let mut netlink = Netlink::open().unwrap();
            let to = (1..4).map(|n| format!("198.51.{n}.0/24")).collect();
            let via = vec!["192.0.2.1".to_owned()];
            let refused = netlink.set_routes(&[Route { to, via }]).unwrap_err();
            assert!(
                refused.starts_with("route 198.51.1.0/24 via 192.0.2.1: "),
                "{refused}"
            );
            assert!(netlink.names().unwrap().contains_key("lo"));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn an_invalid_route_is_named() {
        for (to, via) in [
            ("10.1.2.0", "10.0.0.1"),
            ("10.1.0.0/33", "10.0.0.1"),
            ("10.1.0.0/16", "r1"),
            ("10.1.0.0/16", "fd00::1"),
            ("fd00::/129", "fd00::1"),
        ] {
            let refusal = request(0, to, &[via.to_owned()], true).unwrap_err();
            assert!(refusal.contains(to), "{refusal}");
        }
    }
}
