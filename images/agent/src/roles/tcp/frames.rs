//! Messages in a stream of bytes: each is preceded by its length, a u32 in big endian.

use crate::os::Res;

/// A longer one is nonsense, and would be kept until it is whole.
pub const LONGEST: usize = 16 << 20;

/// Appends a message of what `write` appends; nothing where it appends nothing.
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

/// The receiving side of one connection.
#[derive(Default)]
pub struct Frames {
    partial: Vec<u8>,
}

impl Frames {
    /// Hands on every message that the bytes complete; what is left waits for more.
    pub fn feed(&mut self, bytes: &[u8], mut take: impl FnMut(&[u8])) -> Res<()> {
        let mut joined = std::mem::take(&mut self.partial);
        let mut rest = if joined.is_empty() {
            bytes
        } else {
            joined.extend_from_slice(bytes);
            &joined
        };
        while let Some((head, tail)) = rest.split_first_chunk() {
            let length = u32::from_be_bytes(*head) as usize;
            if length > LONGEST {
                return Err(format!(
                    "a message of {length} bytes; {LONGEST} are the most"
                ));
            }
            let Some((message, after)) = tail.split_at_checked(length) else {
                break;
            };
            take(message);
            rest = after;
        }
        self.partial = rest.to_vec();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nonsense_is_refused_and_nothing_makes_no_frame() {
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
