//! Who is sent to without a go-between, and what is answered.

use crate::payload::bytes::Bytes;
use crate::payload::{Identity, Payload, Purpose};
use serde::Deserialize;
use std::net::IpAddr;

/// One of a specification's `to`.
#[derive(Debug, Clone, Deserialize)]
pub struct Peer {
    pub endpoint: String,
    pub address: IpAddr,
    pub port: u16,
}

/// Appends the reply to a request, as long as it asks for: who answers needs no other state.
pub fn reply(asked: &Identity, out: &mut Vec<u8>) {
    let reply = Identity {
        purpose: Purpose::Reply,
        reply_bytes: 0,
        ..*asked
    };
    let bytes = (asked.reply_bytes as usize).max(Bytes.smallest());
    Bytes.write(&reply, bytes, out);
}
