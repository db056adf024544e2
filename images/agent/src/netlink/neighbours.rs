//! Sets permanent neighbour entries of a namespace; names and layout: linux/neighbour.h.

use super::{HEADER, Netlink, i32_at, put};
use crate::os::{self, Res};
use crate::proto::Neighbour;
use std::net::IpAddr;
use std::os::fd::AsRawFd;

const RTM_NEWNEIGH: u16 = 28;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
/// State of a permanent entry, which is never resolved, never expires, and does not count towards gc_thresh3.
const NUD_PERMANENT: u16 = 0x80;

impl Netlink {
    /// Sets all neighbours; each replaces an entry of the same address. Stops at the first one whose
    /// interface does not exist, whose addresses are invalid, or that the kernel refuses.
    pub fn set_neighbours(&mut self, neighbours: &[Neighbour]) -> Res<()> {
        let names = self.names()?;
        for one in neighbours {
            let fail = |what: &dyn std::fmt::Display| {
                format!(
                    "neighbour {} at {} by {}: {what}",
                    one.address, one.mac, one.device
                )
            };
            let index = names
                .get(&one.device)
                .ok_or_else(|| fail(&"there is no such interface"))?;
            let request = request(one, *index).map_err(|what| fail(&what))?;
            os::write(self.fd.as_raw_fd(), &request).map_err(|e| fail(&e))?;
            let n = self.receive().map_err(|e| fail(&e))?;
            if n < HEADER + 16 {
                return Err(fail(&format!("the kernel answered {n} bytes")));
            }
            let refused = i32_at(&self.buffer, HEADER);
            if refused != 0 {
                return Err(fail(&std::io::Error::from_raw_os_error(-refused)));
            }
        }
        Ok(())
    }
}

fn request(one: &Neighbour, index: i32) -> Res<Vec<u8>> {
    let address: IpAddr = one
        .address
        .parse()
        .map_err(|_| "the address is neither IPv4 nor IPv6".to_owned())?;
    let mac: Vec<u8> = one
        .mac
        .split(':')
        .filter_map(|byte| u8::from_str_radix(byte, 16).ok())
        .collect();
    if mac.len() != 6 {
        return Err("the MAC is not six hexadecimal bytes with colons".to_owned());
    }
    let (family, octets) = match address {
        IpAddr::V4(v4) => (libc::AF_INET, v4.octets().to_vec()),
        IpAddr::V6(v6) => (libc::AF_INET6, v6.octets().to_vec()),
    };
    // struct ndmsg
    let mut body = vec![family as u8, 0, 0, 0];
    body.extend(index.to_ne_bytes());
    body.extend(NUD_PERMANENT.to_ne_bytes());
    body.extend([0u8; 2]);
    put(&mut body, NDA_DST, &octets);
    put(&mut body, NDA_LLADDR, &mac);
    let flags = libc::NLM_F_REQUEST | libc::NLM_F_CREATE | libc::NLM_F_REPLACE | libc::NLM_F_ACK;
    Ok(super::request(RTM_NEWNEIGH, flags, 0, &body))
}
