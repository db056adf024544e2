//! Defines the summary of a reduction: one line of JSON for the caller, which is also stored in the
//! metadata of the packet table.

use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub struct Summary {
    pub link_type: u32,
    pub snaplen: u32,
    pub nanosecond: bool,
    pub packets: u64,
    pub wire_bytes: u64,
    pub captured_bytes: u64,
    /// Frames captured only in part.
    pub snapped: u64,
    /// Frames without a decoded network header.
    pub unknown: u64,
    pub first_ns: Option<i64>,
    pub last_ns: Option<i64>,
    pub streams: u64,
    pub evicted: u64,
    pub retransmissions: u64,
    /// Complete messages of application protocols that a dissector has recognised.
    pub app_messages: u64,
    /// Frames in which the dissector could not follow a stream.
    pub app_unknown: u64,
    /// Number of frames of each link type that the reducer cannot decode.
    pub unknown_links: BTreeMap<u32, u64>,
    /// The position at which the file ends early, and the reason; None if the file is whole.
    pub cut: Option<String>,
}

impl Summary {
    /// Formats the summary as one JSON object with all its fields, and `truncated`: true if the file was cut.
    pub fn json(&self) -> String {
        let time = |value: Option<i64>| value.map_or("null".to_string(), |value| value.to_string());
        let numbers = [
            ("packets", self.packets),
            ("wire_bytes", self.wire_bytes),
            ("captured_bytes", self.captured_bytes),
            ("snapped", self.snapped),
            ("unknown", self.unknown),
            ("streams", self.streams),
            ("evicted", self.evicted),
            ("retransmissions", self.retransmissions),
            ("app_messages", self.app_messages),
            ("app_unknown", self.app_unknown),
            ("link_type", self.link_type.into()),
            ("snaplen", self.snaplen.into()),
        ];
        let mut fields: Vec<String> = numbers
            .iter()
            .map(|(name, value)| format!("\"{name}\": {value}"))
            .collect();
        fields.push(format!(
            "\"first_ns\": {}, \"last_ns\": {}",
            time(self.first_ns),
            time(self.last_ns)
        ));
        fields.push(format!(
            "\"nanosecond\": {}, \"truncated\": {}",
            self.nanosecond,
            self.cut.is_some()
        ));
        let link = |(kind, count): (&u32, &u64)| format!("\"{kind}\": {count}");
        let links: Vec<String> = self.unknown_links.iter().map(link).collect();
        fields.push(format!("\"unknown_links\": {{{}}}", links.join(", ")));
        // The text contains no quotation marks, backslashes or control characters, so it needs no escapes.
        let cut = self
            .cut
            .as_ref()
            .map_or("null".to_string(), |cut| format!("\"{cut}\""));
        fields.push(format!("\"cut\": {cut}"));
        format!("{{{}}}", fields.join(", "))
    }
}
