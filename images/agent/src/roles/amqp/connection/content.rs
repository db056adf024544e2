//! A message on its way in: its method, then its header, then pieces of its body.

use crate::roles::amqp::wire::Fields;

/// Of a message that the broker delivers.
const BODY_MOST: u64 = 16 << 20;

pub struct Content {
    pub redelivered: bool,
    pub tag: u64,
    /// Bytes that are missing; None before its header.
    left: Option<usize>,
    pub body: Vec<u8>,
}

impl Content {
    pub fn new(tag: u64, redelivered: bool) -> Self {
        Self {
            redelivered,
            tag,
            left: None,
            body: Vec::new(),
        }
    }

    /// Takes the header; None where it is none.
    pub fn head(&mut self, payload: &[u8]) -> Option<()> {
        let mut fields = Fields(payload);
        let size = fields
            .short()
            .and(fields.short())
            .and_then(|_| fields.longlong())
            .filter(|size| *size <= BODY_MOST)?;
        self.left = Some(size as usize);
        self.body.reserve(size as usize);
        Some(())
    }

    /// Takes a piece of the body; None where it is one too many.
    pub fn add(&mut self, payload: &[u8]) -> Option<()> {
        let left = self.left?.checked_sub(payload.len())?;
        self.left = Some(left);
        self.body.extend_from_slice(payload);
        Some(())
    }

    pub fn is_whole(&self) -> bool {
        self.left == Some(0)
    }
}
