//! Sets and reads IPv6 addresses of an interface; names and layout: linux/if_addr.h, linux/rtnetlink.h.

use super::{Netlink, attribute, i32_at};
use crate::os::Res;
use std::net::Ipv6Addr;

const RTM_NEWADDR: u16 = 20;
const RTM_GETADDR: u16 = 22;
const IFA_ADDRESS: u16 = 1;
/// Flag that skips duplicate address detection (RFC 4862, 5.4), which delays the use of an address; the
/// plan's addresses are unique.
const IFA_F_NODAD: u8 = 0x02;
const RT_SCOPE_UNIVERSE: u8 = 0;
const IFADDRMSG: usize = 8;

impl Netlink {
    /// Adds an IPv6 address to an interface that is up, without duplicate address detection; replaces the
    /// same address.
    pub fn add_address(&mut self, index: i32, address: Ipv6Addr, prefix: u8) -> Res<()> {
        let mut body = vec![libc::AF_INET6 as u8, prefix, IFA_F_NODAD, RT_SCOPE_UNIVERSE];
        body.extend(index.to_ne_bytes());
        super::put(&mut body, IFA_ADDRESS, &address.octets());
        let flags = libc::NLM_F_REQUEST | libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
        let request = super::request(RTM_NEWADDR, flags | libc::NLM_F_ACK, 0, &body);
        self.acknowledged(&request)
    }

    /// Returns the IPv6 addresses of an interface with their prefix lengths, without the kernel's link-local
    /// ones.
    pub fn addresses(&mut self, index: i32) -> Res<Vec<(Ipv6Addr, u8)>> {
        let mut found = Vec::new();
        let mut wanted = [0u8; IFADDRMSG];
        wanted[0] = libc::AF_INET6 as u8;
        self.dump(RTM_GETADDR, &wanted, |body| {
            let octets = body
                .get(IFADDRMSG..)
                .and_then(|a| attribute(a, IFA_ADDRESS));
            let address = octets.and_then(|o| <[u8; 16]>::try_from(o).ok());
            if let (Some(address), Some(&prefix)) = (address.map(Ipv6Addr::from), body.get(1))
                && i32_at(body, 4) == index
                && !address.is_unicast_link_local()
            {
                found.push((address, prefix));
            }
        })?;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_an_error() {
        // SAFETY: plain numbers.
        let root = unsafe { libc::geteuid() } == 0;
        let why = if root {
            "No such device"
        } else {
            "not permitted"
        };
        let mut netlink = Netlink::open().unwrap();
        let refusal = netlink
            .add_address(i32::MAX, Ipv6Addr::LOCALHOST, 64)
            .unwrap_err();
        assert!(refusal.contains(why), "{refusal}");
        assert_eq!(netlink.addresses(i32::MAX), Ok(Vec::new()));
    }
}
