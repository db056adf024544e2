//! Sets the alias of an interface, a text that marks its owner; reads and sets the highest number of segments
//! in a packet. Names and layout: linux/if_link.h.

use super::{IFLA_IFNAME, Netlink, RTM_GETLINK, attribute, i32_at, messages, put, request};
use crate::os::{self, Res};
use std::os::fd::AsRawFd;

const RTM_SETLINK: u16 = 19;
const IFLA_IFALIAS: u16 = 20;
const IFLA_GSO_MAX_SEGS: u16 = 40;
/// Length of a name with its zeros, a multiple of four (linux/if.h: IFNAMSIZ).
const NAME: usize = 16;
/// struct ifinfomsg
const IFINFOMSG: usize = 16;

impl Netlink {
    /// Sets an interface's alias; its length must be a multiple of four bytes.
    pub fn set_alias(&mut self, index: i32, alias: &str) -> Res<()> {
        let mut body = vec![0; 4]; // family, padding, type
        body.extend(index.to_ne_bytes());
        body.extend([0; 8]); // flags and change mask: no change
        put(&mut body, IFLA_IFALIAS, alias.as_bytes());
        let flags = libc::NLM_F_REQUEST | libc::NLM_F_ACK;
        self.acknowledged(&request(RTM_SETLINK, flags, 0, &body))
    }

    /// Sets the highest number of segments in a packet that TCP passes to the qdisc of an interface.
    pub fn set_max_segments(&mut self, name: &str, segments: u32) -> Res<()> {
        let mut body = by_name(name);
        put(&mut body, IFLA_GSO_MAX_SEGS, &segments.to_ne_bytes());
        let flags = libc::NLM_F_REQUEST | libc::NLM_F_ACK;
        self.acknowledged(&request(RTM_SETLINK, flags, 0, &body))
    }

    /// Returns the highest number of segments in a packet that TCP passes to the qdisc of an interface. An
    /// error if there is no such interface, or if the kernel does not state the number.
    pub fn max_segments(&mut self, name: &str) -> Res<u32> {
        let request = request(RTM_GETLINK, libc::NLM_F_REQUEST, 0, &by_name(name));
        os::write(self.fd.as_raw_fd(), &request).map_err(|e| e.to_string())?;
        self.receive().map_err(|e| e.to_string())?;
        let mut found = None;
        messages(RTM_GETLINK, &self.buffer, &mut |body| {
            let attributes = body.get(IFINFOMSG..).unwrap_or(&[]);
            found = attribute(attributes, IFLA_GSO_MAX_SEGS).map(|value| i32_at(value, 0) as u32);
        })?;
        found.ok_or_else(|| "the kernel states no gso_max_segs; Linux 4.5 does".to_owned())
    }
}

/// Returns the start of a request about the interface of this name.
fn by_name(name: &str) -> Vec<u8> {
    let mut body = vec![0; IFINFOMSG];
    let mut value = name.as_bytes().to_vec();
    value.resize(NAME, 0);
    put(&mut body, IFLA_IFNAME, &value);
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_states_its_most_segments() {
        let mut netlink = Netlink::open().unwrap();
        assert!(netlink.max_segments("lo").unwrap() >= 1);
        let text = netlink.max_segments("none").unwrap_err();
        assert!(text.contains("No such device"), "{text}");
    }

    #[test]
    fn a_refusal_is_an_error() {
        let mut netlink = Netlink::open().unwrap();
        let refused = netlink.set_alias(i32::MAX, "none");
        let text = refused.unwrap_err();
        assert!(
            text.contains("No such device") || text.contains("not permitted"),
            "{text}"
        );
    }
}
