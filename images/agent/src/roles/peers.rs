//! Defines a receiver to which a sender without a broker sends, and builds the replies to requests.

use crate::payload::bytes::Bytes;
use crate::payload::{Identity, Payload, Purpose};
use serde::Deserialize;
use std::net::IpAddr;

/// A receiver: an entry of `to` in a specification.
#[derive(Debug, Clone, Deserialize)]
pub struct Peer {
    pub endpoint: String,
    pub address: IpAddr,
    pub port: u16,
}

/// Appends the reply to a request. Its length is in the request, or is that of an identity if that is longer;
/// so the server needs no state.
pub fn reply(request: &Identity, out: &mut Vec<u8>) {
    let reply = Identity {
        purpose: Purpose::Reply,
        reply_bytes: 0,
        ..*request
    };
    let bytes = (request.reply_bytes as usize).max(Bytes.smallest());
    Bytes.write(&reply, bytes, out);
}
