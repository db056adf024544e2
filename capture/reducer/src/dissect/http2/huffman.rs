//! Decodes the Huffman code of header fields (RFC 7541, appendix B), a canonical code: the lengths of its
//! codes determine it.

use std::sync::LazyLock;

const LONGEST: usize = 30;
const END: u16 = 256;

/// The length in bits of the code of each byte, and of the end.
#[rustfmt::skip]
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6,
    6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5,
    5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23,
    24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23,
    21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21,
    21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27,
    26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];

/// The codes by their length: the first code of each, the place of its symbol, and all symbols in the order
/// of their codes.
struct Code {
    first: [u32; LONGEST + 2],
    place: [usize; LONGEST + 2],
    symbols: Vec<u16>,
}

static CODE: LazyLock<Code> = LazyLock::new(|| {
    let (mut first, mut place) = ([0; LONGEST + 2], [0; LONGEST + 2]);
    let mut symbols: Vec<u16> = (0..=END).collect();
    symbols.sort_by_key(|&symbol| LENGTHS[usize::from(symbol)]);
    for length in 1..=LONGEST {
        let count = LENGTHS
            .iter()
            .filter(|&&one| usize::from(one) == length)
            .count();
        place[length + 1] = place[length] + count;
        first[length + 1] = (first[length] + count as u32) << 1;
    }
    Code {
        first,
        place,
        symbols,
    }
});

/// Appends the decoded text to `out`. Returns false if the text holds the code of the end, or if its padding
/// is 8 bits or more or does not begin that code.
pub fn decode(text: &[u8], out: &mut Vec<u8>) -> bool {
    let (mut code, mut length) = (0u32, 0usize);
    for bit in text
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1))
    {
        code = code << 1 | u32::from(bit);
        length += 1;
        if length > LONGEST {
            return false;
        }
        let (first, place) = (CODE.first[length], CODE.place[length]);
        let count = CODE.place[length + 1] - place;
        if code >= first && ((code - first) as usize) < count {
            let symbol = CODE.symbols[place + (code - first) as usize];
            if symbol == END {
                return false;
            }
            out.push(symbol as u8);
            (code, length) = (0, 0);
        }
    }
    length < 8 && code == (1 << length) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_standard() {
        for (coded, plain) in [
            (
                &b"\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff"[..],
                "www.example.com",
            ),
            (b"\xa8\xeb\x10\x64\x9c\xbf", "no-cache"),
            (b"\x25\xa8\x49\xe9\x5b\xb8\xe8\xb4\xbf", "custom-value"),
            (b"\x64\x02", "302"),
        ] {
            let mut out = Vec::new();
            assert!(decode(coded, &mut out));
            assert_eq!(out, plain.as_bytes());
        }
        assert!(!decode(b"\xff\xff\xff\xff", &mut Vec::new()));
        assert!(!decode(b"\x00", &mut Vec::new())); // padding of zeros
    }
}
