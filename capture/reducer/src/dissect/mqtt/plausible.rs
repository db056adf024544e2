//! Recognises the beginning of an MQTT control packet in streams whose beginning was not captured.

/// Returns true if `data` is a chain of plausible control packets, the last of which may be incomplete. If
/// it ends inside a fixed header, a whole packet must precede that. `cut` is true if bytes that were not
/// captured follow `data`.
pub fn beginning(data: &[u8], cut: bool) -> bool {
    let mut rest = data;
    while !rest.is_empty() {
        let Some((header, length)) = fixed_header(rest) else {
            // An incomplete header proves nothing, but a whole packet before it stays valid.
            return rest.len() < data.len() && (cut || rest.len() < 5);
        };
        let body = &rest[header..];
        if !fits(rest[0], length, body) {
            return false;
        }
        rest = body.get(length..).unwrap_or_default();
    }
    !data.is_empty()
}

/// Returns the size of the fixed header, and the remaining length; None if the header is incomplete or
/// invalid.
fn fixed_header(data: &[u8]) -> Option<(usize, usize)> {
    let mut length = 0;
    for (index, &byte) in data.get(1..)?.iter().take(4).enumerate() {
        length |= usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((index + 2, length));
        }
    }
    None
}

/// Returns true if flags and remaining length are possible for the packet type (MQTT 3.1.1 and 5, section 2.1
/// and each packet's section). For a CONNECT its protocol name must be possible, too, and for a PUBLISH its
/// topic.
fn fits(first: u8, length: usize, body: &[u8]) -> bool {
    let (kind, flags) = (first >> 4, first & 0xf);
    match kind {
        1 => flags == 0 && length >= 12 && b"\x00\x04MQTT".starts_with(&body[..body.len().min(6)]),
        2 => flags == 0 && (2..2048).contains(&length),
        3 => flags & 6 != 6 && topic_fits(length, body),
        4 | 5 | 7 => flags == 0 && (2..2048).contains(&length),
        6 => flags == 2 && (2..2048).contains(&length),
        8 | 10 => flags == 2 && length >= 5,
        9 | 11 => flags == 0 && length >= 2,
        12 | 13 => flags == 0 && length == 0,
        14 | 15 => flags == 0 && length < 2048,
        _ => false,
    }
}

/// Returns true if a PUBLISH of remaining length `length` begins with a possible topic: a length that fits,
/// then bytes without wildcards or control characters, as far as `body` shows them.
fn topic_fits(length: usize, body: &[u8]) -> bool {
    let &[high, low, ref rest @ ..] = body else {
        return length >= 2;
    };
    let topic = usize::from(high) << 8 | usize::from(low);
    let seen = &rest[..rest.len().min(topic)];
    topic + 2 <= length
        && seen
            .iter()
            .all(|&byte| byte >= 0x20 && !b"#+\x7f".contains(&byte))
}
