//! Sets the alias of an interface, a text that marks its owner; names and layout: linux/if_link.h.

use super::{Netlink, put, request};
use crate::os::Res;

const RTM_SETLINK: u16 = 19;
const IFLA_IFALIAS: u16 = 20;

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
}

#[cfg(test)]
mod tests {
    use super::*;

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
