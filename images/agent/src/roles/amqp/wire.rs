//! Encodes and decodes frames and fields of AMQP 0-9-1 (specification, 4.2).

use crate::os::Res;

pub const METHOD: u8 = 1;
pub const HEADER: u8 = 2;
pub const BODY: u8 = 3;
pub const HEARTBEAT: u8 = 8;
const END: u8 = 0xce;
/// The number of bytes of a frame before its payload: type, channel and size. One byte follows the payload,
/// the end mark.
const BEFORE: usize = 7;
pub const AROUND: usize = BEFORE + 1;

pub struct Frame<'a> {
    pub kind: u8,
    pub channel: u16,
    pub payload: &'a [u8],
}

/// Returns the first frame of `bytes` and its length; None while it is incomplete. An error if it is
/// malformed or its payload longer than `most` bytes.
pub fn frame(bytes: &[u8], most: usize) -> Res<Option<(Frame<'_>, usize)>> {
    let mut fields = Fields(bytes);
    let (Some(kind), Some(channel), Some(size)) = (fields.octet(), fields.short(), fields.long())
    else {
        return Ok(None);
    };
    let size = size as usize;
    if !matches!(kind, METHOD | HEADER | BODY | HEARTBEAT) || size > most {
        return Err(format!(
            "no frame of AMQP 0-9-1: type {kind}, {size} bytes; is it such a broker's port?"
        ));
    }
    let Some(payload) = fields.take(size) else {
        return Ok(None);
    };
    match fields.octet() {
        None => Ok(None),
        Some(END) => Ok(Some((
            Frame {
                kind,
                channel,
                payload,
            },
            size + AROUND,
        ))),
        Some(other) => Err(format!("a frame ends in {other:#04x}, not in {END:#04x}")),
    }
}

/// Appends a frame; `write` appends its payload.
pub fn put_frame(out: &mut Vec<u8>, kind: u8, channel: u16, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(kind);
    out.extend_from_slice(&channel.to_be_bytes());
    let size_at = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out);
    let size = (out.len() - size_at - 4) as u32;
    out[size_at..size_at + 4].copy_from_slice(&size.to_be_bytes());
    out.push(END);
}

/// Appends a text with its length in one byte. Cuts it after 255 bytes; the check of the settings refuses
/// longer texts.
pub fn put_short_text(out: &mut Vec<u8>, text: &str) {
    let bytes = &text.as_bytes()[..text.len().min(255)];
    out.push(bytes.len() as u8);
    out.extend_from_slice(bytes);
}

pub fn put_long_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// The unread rest of a method's arguments. Each of its functions that reads a field returns None if the rest
/// is too short.
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub fn octet(&mut self) -> Option<u8> {
        self.number().map(u8::from_be_bytes)
    }

    pub fn short(&mut self) -> Option<u16> {
        self.number().map(u16::from_be_bytes)
    }

    pub fn long(&mut self) -> Option<u32> {
        self.number().map(u32::from_be_bytes)
    }

    pub fn longlong(&mut self) -> Option<u64> {
        self.number().map(u64::from_be_bytes)
    }

    pub fn short_text(&mut self) -> Option<String> {
        let size = self.octet()?;
        self.take(size.into())
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// Removes a long text or a table; returns its bytes unparsed.
    pub fn long_bytes(&mut self) -> Option<&'a [u8]> {
        let size = self.long()?;
        self.take(size as usize)
    }
}
