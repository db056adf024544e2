//! What stands in one packet's headers, and which of it is there.

/// Presence bits of a row; the columns of one bit are null together.
pub const VLAN: u8 = 1;
pub const ETHERTYPE: u8 = 2;
pub const NET: u8 = 4;
pub const PORTS: u8 = 8;
pub const TCP: u8 = 16;
pub const PAYLOAD: u8 = 32;
pub const ANALYSIS: u8 = 64;
pub const MQTT: u8 = 128;

/// Protocol number that stands for ARP; IP's own numbers end at 255.
pub const ARP: u16 = 256;

/// What stands in one frame. A field counts only if its bit is set in `present`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Packet<'a> {
    pub present: u8,
    pub vlan: u16,
    pub ethertype: u16,
    pub src: u128,
    pub dst: u128,
    pub protocol: u16,
    pub src_port: u16,
    pub dst_port: u16,
    pub flags: u16,
    pub seq: u32,
    pub ack: u32,
    pub window: u16,
    pub payload_len: u32,
    /// What was captured of the transport payload.
    pub payload: &'a [u8],
    /// A part of a larger IP packet: its payload is not the segment's.
    pub fragment: bool,
}
