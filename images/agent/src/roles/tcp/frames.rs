//! Frames messages in a byte stream: before each message stands its length, a big-endian u32.

use crate::os::Res;

/// The longest message in bytes. Longer messages are refused, since the receiver would have to buffer them.
pub const LONGEST: usize = 16 << 20;

/// Appends the message that `write` writes, with its length before it; appends nothing if `write` writes
/// nothing.
pub fn append(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out);
    let length = (out.len() - start - 4) as u32;
    if length == 0 {
        out.truncate(start);
    } else {
        out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    }
}

/// Extracts messages from the bytes of one connection.
#[derive(Default)]
pub struct Frames {
    partial: Vec<u8>,
}

impl Frames {
    /// Passes every completed message to `take`, without its length; keeps an incomplete rest for the next
    /// call. Returns an error for a message longer than `LONGEST`.
    #[cfg(any(test, feature = "fuzzing"))]
    pub fn feed(&mut self, bytes: &[u8], mut take: impl FnMut(&[u8])) -> Res<()> {
        self.feed_while(bytes, |message| {
            take(message);
            true
        })
    }

    /// Passes completed messages to `take` until it returns false; keeps the bytes after the last passed
    /// message for the next call. Returns an error for a message longer than `LONGEST`.
    pub fn feed_while(&mut self, bytes: &[u8], take: impl FnMut(&[u8]) -> bool) -> Res<()> {
        if self.partial.is_empty() {
            let left = pass_on(bytes, take)?;
            self.partial.extend_from_slice(left);
            return Ok(());
        }
        self.partial.extend_from_slice(bytes);
        let left = pass_on(&self.partial, take)?.len();
        if left == 0 {
            // A new vector replaces the old one, which frees the memory of a long message.
            self.partial = Vec::new();
        } else {
            self.partial.drain(..self.partial.len() - left);
        }
        Ok(())
    }
}

/// Passes complete messages to `take` until it returns false; returns the bytes after the last passed
/// message. Returns an error for a message longer than `LONGEST`.
fn pass_on(mut bytes: &[u8], mut take: impl FnMut(&[u8]) -> bool) -> Res<&[u8]> {
    while let Some((head, tail)) = bytes.split_first_chunk() {
        let length = u32::from_be_bytes(*head) as usize;
        if length > LONGEST {
            return Err(format!(
                "a message of {length} bytes; {LONGEST} are the most"
            ));
        }
        let Some((message, after)) = tail.split_at_checked(length) else {
            break;
        };
        bytes = after;
        if !take(message) {
            break;
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn refuses_oversized_lengths_and_frames_no_empty_message() {
        assert!(
            Frames::default()
                .feed(b"GET / HTTP/1.1", |_| ())
                .unwrap_err()
                .contains("most")
        );
        let mut out = vec![1];
        append(&mut out, |_| ());
        assert_eq!(out, [1]);
    }

    #[test]
    fn a_long_message_is_not_copied_with_every_piece_of_it() {
        let (mut stream, mut frames, mut got) = (Vec::new(), Frames::default(), 0);
        append(&mut stream, |out| out.resize(out.len() + LONGEST, 7));
        let begin = std::time::Instant::now();
        for piece in stream.chunks(512) {
            frames.feed(piece, |message| got += message.len()).unwrap();
        }
        assert_eq!((got, frames.partial.capacity()), (LONGEST, 0));
        // The test fails for a parser that copies the rest at every call: it would move some 270 GB.
        assert!(begin.elapsed().as_secs() < 10, "{:?}", begin.elapsed());
    }

    proptest! {
        #[test]
        fn messages_come_out_whole_however_the_stream_is_cut(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..100), 0..20),
            cuts in prop::collection::vec(1usize..50, 1..20),
        ) {
            let mut stream = Vec::new();
            for message in &messages {
                append(&mut stream, |out| out.extend_from_slice(message));
            }
            let (mut frames, mut got) = (Frames::default(), Vec::new());
            let (mut rest, mut cuts) = (&stream[..], cuts.into_iter().cycle());
            while !rest.is_empty() {
                let (now, later) = rest.split_at(cuts.next().unwrap().min(rest.len()));
                frames.feed(now, |message| got.push(message.to_vec())).unwrap();
                rest = later;
            }
            prop_assert_eq!(got, messages);
        }
    }
}
