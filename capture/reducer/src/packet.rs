//! Defines the decoded headers of a packet and the lengths of its layers.

/// Presence bits of a packet's fields; the columns that share a bit are null together.
pub const VLAN: u8 = 1;
pub const ETHERTYPE: u8 = 2;
pub const NET: u8 = 4;
pub const PORTS: u8 = 8;
pub const TCP: u8 = 16;
pub const PAYLOAD: u8 = 32;

/// Presence bits of analysis results, which have a byte of their own.
pub const ANALYSIS: u8 = 1;
pub const APP: u8 = 2;
pub const TYPES: u8 = 4;
pub const IDS: u8 = 8;

/// Protocol number that represents ARP; IP's own numbers end at 255.
pub const ARP: u16 = 256;

/// The decoded fields of a frame. A field is valid only if its bit in `present` is set.
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
    /// Captured bytes after the last decoded header, up to the network packet's end.
    pub payload: &'a [u8],
    pub wire_len: u32,
    pub link_len: u32,
    pub vlan_len: u32,
    pub net_len: u32,
    pub transport_len: u32,
    /// Number of bytes after the last decoded header, up to the network packet's end by its length field.
    pub inner_len: u32,
    /// Whether the packet is an IP fragment, whose payload is only a part of a segment.
    pub fragment: bool,
}

/// The bytes of a frame by layer, in the order of transmission; their sum is the length that was sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Layers {
    pub link: u32,
    pub vlan: u32,
    pub net: u32,
    pub transport: u32,
    pub app: u32,
    pub data: u32,
    pub pad: u32,
}

impl Packet<'_> {
    /// Returns the frame's bytes by layer; `header` bytes after the transport header count as the application
    /// protocol's header.
    #[inline]
    pub fn layers(&self, header: u32) -> Layers {
        let mut left = self.wire_len;
        let mut take = |count: u32| {
            let part = count.min(left);
            left -= part;
            part
        };
        let (link, vlan) = (take(self.link_len), take(self.vlan_len));
        let (net, transport) = (take(self.net_len), take(self.transport_len));
        let inner = take(self.inner_len);
        let app = header.min(inner);
        Layers {
            link,
            vlan,
            net,
            transport,
            app,
            data: inner - app,
            pad: left,
        }
    }
}
