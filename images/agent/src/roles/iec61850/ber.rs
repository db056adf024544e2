//! Encodes and decodes ASN.1 basic encoding rules (ITU-T X.690), as far as these protocols need them:
//! one-byte tags, definite lengths.

/// Appends a value with its tag and length.
pub fn push(out: &mut Vec<u8>, tag: u8, value: &[u8]) {
    out.push(tag);
    match value.len() {
        n @ 0..0x80 => out.push(n as u8),
        n @ 0x80..0x100 => out.extend_from_slice(&[0x81, n as u8]),
        n => out.extend_from_slice(&[0x82, (n >> 8) as u8, n as u8]),
    }
    out.extend_from_slice(value);
}

/// Appends an unsigned number with as few bytes as possible; its first bit must be 0, since that bit is the
/// sign.
pub fn push_unsigned(out: &mut Vec<u8>, tag: u8, value: u32) {
    let bytes = u64::from(value).to_be_bytes();
    let skip = (3..7).take_while(|&i| bytes[i] == 0 && bytes[i + 1] < 0x80);
    push(out, tag, &bytes[3 + skip.count()..]);
}

/// Removes the first value and returns its tag and content; None if it is incomplete.
pub fn take<'a>(from: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let (&[tag, first], mut rest) = from.split_first_chunk()?;
    let mut length = usize::from(first);
    if first >= 0x80 {
        let count = usize::from(first & 0x7f);
        if !(1..=4).contains(&count) {
            return None; // indefinite, or longer than any frame
        }
        let (bytes, after) = rest.split_at_checked(count)?;
        length = bytes.iter().fold(0, |n, byte| n << 8 | usize::from(*byte));
        rest = after;
    }
    let (value, rest) = rest.split_at_checked(length)?;
    *from = rest;
    Some((tag, value))
}

/// Decodes an unsigned number of at most eight bytes, after an optional zero byte for the sign; None if it is
/// longer.
pub fn unsigned(bytes: &[u8]) -> Option<u64> {
    let bytes = bytes.strip_prefix(&[0]).unwrap_or(bytes);
    (bytes.len() <= 8).then(|| bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lengths_that_no_frame_has_are_refused() {
        for bytes in [
            &[0x80][..],
            &[0x80, 0x80],
            &[0x80, 0x85, 0, 0, 0, 0, 0],
            &[0x80, 2, 1],
        ] {
            assert_eq!(take(&mut &bytes[..]), None, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn pushed_values_round_trip(tag: u8, value in proptest::collection::vec(any::<u8>(), 0..70_000), more: Vec<u8>) {
            prop_assume!(value.len() < 0x1_0000);
            let mut bytes = Vec::new();
            push(&mut bytes, tag, &value);
            bytes.extend_from_slice(&more);
            let mut rest = &bytes[..];
            prop_assert_eq!(take(&mut rest), Some((tag, &value[..])));
            prop_assert_eq!(rest, &more[..]);
        }

        #[test]
        fn numbers_are_taken_again(value: u32) {
            let mut bytes = Vec::new();
            push_unsigned(&mut bytes, 0x85, value);
            let (_, content) = take(&mut &bytes[..]).unwrap();
            prop_assert_eq!(unsigned(content), Some(u64::from(value)));
            prop_assert!(content[0] < 0x80, "a sign");
            prop_assert!(content.len() == 1 || content[0] != 0 || content[1] >= 0x80, "a byte too many");
        }

        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            let mut rest = &bytes[..];
            while take(&mut rest).is_some() {}
        }
    }
}
