//! Keeps the requests that the broker has taken until all their replies have arrived.

use crate::records::Message;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub struct Requests {
    /// The number of clients that reply to each request; 0 without requests.
    replies: usize,
    waiting: BTreeMap<u64, Message>,
    /// The clients that have replied to an open request, by its number. A reply may come before the broker's
    /// acknowledgement of its request.
    replied: BTreeMap<u64, BTreeSet<String>>,
}

impl Requests {
    pub fn new(replies: usize) -> Self {
        Self {
            replies,
            ..Self::default()
        }
    }

    /// Returns the number of requests that wait for replies.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Takes a request that has arrived at the broker; returns it at once if all its replies have arrived.
    pub fn sent(&mut self, message: Message) -> Option<Message> {
        let seq = message.seq;
        self.waiting.insert(seq, message);
        self.settled(seq)
    }

    /// Takes a reply; `open` is true while the broker has not acknowledged the request. Returns the request
    /// if this was its last missing reply. Ignores a reply to another request.
    pub fn replied(&mut self, seq: u64, by: &str, open: bool) -> Option<Message> {
        if !open && !self.waiting.contains_key(&seq) {
            return None;
        }
        self.replied.entry(seq).or_default().insert(by.to_owned());
        self.settled(seq)
    }

    fn settled(&mut self, seq: u64) -> Option<Message> {
        let replied = self.replied.get(&seq).map_or(0, BTreeSet::len);
        if replied < self.replies {
            return None;
        }
        let message = self.waiting.remove(&seq)?;
        self.replied.remove(&seq);
        Some(message)
    }

    /// Removes and returns the requests that wait, in the order of their numbers.
    pub fn take_all(&mut self) -> Vec<Message> {
        self.replied.clear();
        std::mem::take(&mut self.waiting).into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(seq: u64) -> Message {
        Message {
            seq,
            ..Message::default()
        }
    }

    #[test]
    fn a_request_is_settled_once_by_the_last_reply() {
        let mut requests = Requests::new(2);
        assert!(requests.sent(message(1)).is_none());
        assert!(requests.replied(1, "a", false).is_none());
        assert!(
            requests.replied(1, "a", false).is_none(),
            "the same client again"
        );
        assert_eq!(requests.replied(1, "b", false).map(|m| m.seq), Some(1));
        assert!(requests.replied(1, "b", false).is_none());
        assert_eq!(requests.len(), 0);
    }

    #[test]
    fn replies_may_come_before_the_acknowledgement() {
        let mut requests = Requests::new(1);
        assert!(requests.replied(3, "a", true).is_none());
        assert!(requests.replied(4, "a", false).is_none(), "of no request");
        assert_eq!(requests.sent(message(3)).map(|m| m.seq), Some(3));
        assert!(requests.sent(message(4)).is_none());
        assert_eq!(requests.take_all().len(), 1);
        assert_eq!(requests.len(), 0);
    }
}
