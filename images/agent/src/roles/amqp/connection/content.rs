//! Assembles an incoming message from its method, its header and the pieces of its body.

use crate::roles::amqp::wire::Fields;

/// The longest body that the client accepts, in bytes.
const BODY_MOST: u64 = 16 << 20;

pub struct Content {
    pub redelivered: bool,
    pub tag: u64,
    /// Number of missing bytes of the body; None before the header has arrived.
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

    /// Adds the header, which announces the body's size; None if it is malformed or the body too long.
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

    /// Adds a piece of the body; None if the header has not arrived, or if the body exceeds its announced
    /// size.
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
