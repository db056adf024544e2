//! Encodes and decodes messages of CoAP (RFC 7252, 3) with the options that the role uses: observation (RFC
//! 7641), blocks (RFC 7959), No-Response (RFC 7967) and Request-Tag (RFC 9175); cuts bodies into blocks.

/// The code of an empty message, which acknowledges or resets another.
pub const EMPTY: u8 = 0;
pub const GET: u8 = code(0, 1);
pub const POST: u8 = code(0, 2);
pub const CHANGED: u8 = code(2, 4);
pub const CONTENT: u8 = code(2, 5);
pub const CONTINUE: u8 = code(2, 31);
pub const BAD_REQUEST: u8 = code(4, 0);
pub const BAD_OPTION: u8 = code(4, 2);
pub const NOT_ALLOWED: u8 = code(4, 5);
pub const INCOMPLETE: u8 = code(4, 8);
pub const TOO_LARGE: u8 = code(4, 13);
pub const UNAVAILABLE: u8 = code(5, 3);

const fn code(class: u8, detail: u8) -> u8 {
    class << 5 | detail
}

/// Returns a code as it is printed: "2.04".
pub fn printed(code: u8) -> String {
    format!("{}.{:02}", code >> 5, code & 31)
}

/// The numbers of options.
pub const ETAG: u32 = 4;
pub const OBSERVE: u32 = 6;
pub const PATH: u32 = 11;
pub const BLOCK2: u32 = 23;
pub const BLOCK1: u32 = 27;
pub const NO_RESPONSE: u32 = 258;
pub const TAG: u32 = 292;
/// The critical options that a server accepts. It may ignore most of them, since each of its paths has the
/// same resource: Uri-Host, Uri-Port, Uri-Path, Uri-Query, Accept, Block2, Block1.
const KNOWN: [u32; 7] = [3, 7, PATH, 15, 17, BLOCK2, BLOCK1];
/// The value of No-Response with which a client requests that the server send no answer of any class.
pub const NO_ANSWER: u32 = 26;
const VERSION: u8 = 1;
const MARKER: u8 = 0xff;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Kind {
    #[default]
    Confirmable,
    NonConfirmable,
    Acknowledgement,
    Reset,
}

const KINDS: [Kind; 4] = [
    Kind::Confirmable,
    Kind::NonConfirmable,
    Kind::Acknowledgement,
    Kind::Reset,
];

/// A token of at most eight bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token {
    bytes: [u8; 8],
    length: u8,
}

impl Token {
    /// Returns the token of four bytes with this number.
    pub fn of(number: u32) -> Self {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        Self { bytes, length: 4 }
    }

    /// Returns the number of a token of four bytes; None for a token of another length.
    pub fn number(&self) -> Option<u32> {
        let [a, b, c, d, ..] = self.bytes;
        (self.length == 4).then(|| u32::from_be_bytes([a, b, c, d]))
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// A block's number, whether more follow, and the exponent of its size (RFC 7959, 2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    pub number: u32,
    pub more: bool,
    pub exponent: u8,
}

impl Block {
    /// Returns the block that begins at offset `from` of a body of `length` bytes, and the range of its
    /// bytes; None beyond the body's end.
    pub fn at(from: usize, length: usize, exponent: u8) -> Option<(Self, std::ops::Range<usize>)> {
        let size = size(exponent);
        let to = (from + size).min(length);
        let block = Self {
            number: (from / size) as u32,
            more: to < length,
            exponent,
        };
        (from < length).then_some((block, from..to))
    }

    /// Returns the offset of the block's first byte.
    pub fn from(&self) -> usize {
        self.number as usize * size(self.exponent)
    }

    fn value(self) -> u32 {
        self.number << 4 | u32::from(self.more) << 3 | u32::from(self.exponent)
    }

    fn read(value: u32) -> Option<Self> {
        let exponent = (value & 7) as u8;
        let more = value & 8 != 0;
        let number = value >> 4;
        (exponent < 7).then_some(Self {
            number,
            more,
            exponent,
        }) // 7 is reserved
    }
}

/// Returns the size in bytes of blocks with this exponent.
pub fn size(exponent: u8) -> usize {
    16 << exponent
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Message {
    pub kind: Kind,
    pub code: u8,
    pub id: u16,
    pub token: Token,
    /// The options as number and value, sorted by number.
    pub options: Vec<(u32, Vec<u8>)>,
    pub payload: Vec<u8>,
}

impl Message {
    /// Returns a message with this code, and without token, options and payload.
    pub fn of(code: u8) -> Self {
        Self {
            code,
            ..Self::default()
        }
    }

    /// Returns the empty message that acknowledges or resets message `id`.
    pub fn empty(kind: Kind, id: u16) -> Self {
        Self {
            kind,
            id,
            ..Self::default()
        }
    }

    pub fn is_request(&self) -> bool {
        (1..32).contains(&self.code)
    }

    /// Returns whether the message is an answer with one of the codes of success.
    pub fn is_success(&self) -> bool {
        self.code >> 5 == 2
    }

    /// Adds an option after those with the same number.
    pub fn put(&mut self, option: u32, value: &[u8]) {
        let place = self.options.partition_point(|(known, _)| *known <= option);
        self.options.insert(place, (option, value.to_vec()));
    }

    /// Adds an option whose value is a number, encoded in as few bytes as possible.
    pub fn put_number(&mut self, option: u32, value: u32) {
        let bytes = value.to_be_bytes();
        self.put(option, &bytes[(value.leading_zeros() / 8) as usize..]);
    }

    pub fn put_block(&mut self, option: u32, block: Block) {
        self.put_number(option, block.value());
    }

    /// Adds the block of `body` that begins at offset `from` as payload, with the option Block1; adds nothing
    /// if there is no such block.
    pub fn put_part(&mut self, body: &[u8], from: usize, exponent: u8) {
        if let Some((block, range)) = Block::at(from, body.len(), exponent) {
            self.payload = body[range].to_vec();
            if body.len() > size(exponent) {
                self.put_block(BLOCK1, block);
            }
        }
    }

    /// Requests the block of the answer that begins at `from`.
    pub fn put_wish(&mut self, from: usize, exponent: u8) {
        let number = (from / size(exponent)) as u32;
        let more = false;
        self.put_block(
            BLOCK2,
            Block {
                number,
                more,
                exponent,
            },
        );
    }

    /// Returns the number in the first option of this kind; None if there is no such option, or if it has
    /// more than four bytes.
    pub fn number(&self, option: u32) -> Option<u32> {
        let (_, value) = self.options.iter().find(|(known, _)| *known == option)?;
        let sum = |sum, byte: &u8| sum << 8 | u32::from(*byte);
        (value.len() <= 4).then(|| value.iter().fold(0, sum))
    }

    pub fn block(&self, option: u32) -> Option<Block> {
        self.number(option).and_then(Block::read)
    }

    /// Returns whether the message has a critical option that the role does not support, or one with an
    /// invalid value.
    pub fn has_bad_option(&self) -> bool {
        self.options.iter().any(|(option, _)| {
            let block = [BLOCK1, BLOCK2].contains(option);
            option % 2 == 1 && !KNOWN.contains(option) || block && self.block(*option).is_none()
        })
    }

    pub fn encoded(&self) -> Vec<u8> {
        let first = VERSION << 6 | (self.kind as u8) << 4 | self.token.length;
        let mut out = vec![first, self.code];
        out.extend_from_slice(&self.id.to_be_bytes());
        out.extend_from_slice(self.token.as_bytes());
        let mut last = 0;
        for (option, value) in &self.options {
            put_option(&mut out, option - last, value);
            last = *option;
        }
        if !self.payload.is_empty() {
            out.push(MARKER);
            out.extend_from_slice(&self.payload);
        }
        out
    }

    /// Decodes a datagram; None if it is malformed.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (&[first, code, high, low], mut rest) = bytes.split_first_chunk()?;
        let length = first & 15;
        let excess = code == EMPTY && bytes.len() > 4; // an empty message is its header (RFC 7252, 4.1)
        if first >> 6 != VERSION || length > 8 || excess {
            return None;
        }
        let mut message = Self {
            kind: KINDS[usize::from(first >> 4 & 3)],
            id: u16::from_be_bytes([high, low]),
            ..Self::of(code)
        };
        let token;
        (token, rest) = rest.split_at_checked(length.into())?;
        message.token.length = length;
        message.token.bytes[..token.len()].copy_from_slice(token);
        let mut option = 0u32;
        while let Some((&head, after)) = rest.split_first() {
            rest = after;
            if head == MARKER {
                message.payload = rest.to_vec();
                return (!rest.is_empty()).then_some(message); // a marker without a payload is malformed
            }
            option += extended(head >> 4, &mut rest)?;
            let length = extended(head & 15, &mut rest)?;
            let value;
            (value, rest) = rest.split_at_checked(length as usize)?;
            message.options.push((option, value.to_vec()));
        }
        Some(message)
    }
}

/// Appends an option whose number is `delta` above the one before.
fn put_option(out: &mut Vec<u8>, delta: u32, value: &[u8]) {
    let ((high, more), (low, rest)) = (nibble(delta), nibble(value.len() as u32));
    out.push(high << 4 | low);
    out.extend_from_slice(&more);
    out.extend_from_slice(&rest);
    out.extend_from_slice(value);
}

/// Returns a delta or a length as its four bits and the bytes that extend them (RFC 7252, 3.1).
fn nibble(value: u32) -> (u8, Vec<u8>) {
    match value {
        0..13 => (value as u8, Vec::new()),
        13..269 => (13, vec![(value - 13) as u8]),
        _ => (14, ((value - 269) as u16).to_be_bytes().to_vec()),
    }
}

fn extended(nibble: u8, rest: &mut &[u8]) -> Option<u32> {
    match nibble {
        0..13 => Some(nibble.into()),
        13 => {
            let (&[byte], after) = rest.split_first_chunk()?;
            *rest = after;
            Some(13 + u32::from(byte))
        }
        14 => {
            let (&two, after) = rest.split_first_chunk()?;
            *rest = after;
            Some(269 + u32::from(u16::from_be_bytes(two)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_request_is_the_bytes_of_the_standard() {
        // RFC 7252, appendix A, figure 16: CON GET with Uri-Path "temperature".
        let mut request = Message::of(GET);
        request.id = 0x7d34;
        request.put(PATH, b"temperature");
        let expected = b"\x40\x01\x7d\x34\xbbtemperature";
        assert_eq!(request.encoded(), expected);
        assert_eq!(Message::decode(expected), Some(request));
        assert_eq!(printed(CHANGED), "2.04");
    }

    #[test]
    fn malformed_messages_are_refused() {
        for wrong in [
            &b""[..],
            b"\x40\x01\x00",
            b"\x80\x01\x00\x01",          // another version
            b"\x49\x01\x00\x01aaaaaaaaa", // a token of nine bytes
            b"\x40\x00\x00\x01\xff",      // a marker without payload
            b"\x40\x00\x00\x01\xffa",     // an empty message with a payload
            b"\x40\x01\x00\x01\xf0",      // a reserved delta
            b"\x40\x01\x00\x01\xb5ab",    // an option that ends early
        ] {
            assert_eq!(Message::decode(wrong), None, "{wrong:02x?}");
        }
        for bad in [&b"\x40\x01\0\x01\x91a"[..], b"\x40\x01\0\x01\xd1\x0a\x07"] {
            // The cases are an option that does not exist, and a block of the reserved size.
            assert!(Message::decode(bad).unwrap().has_bad_option(), "{bad:02x?}");
        }
    }

    #[test]
    fn blocks_cover_a_payload_once() {
        let (mut from, mut blocks) = (0, Vec::new());
        while let Some((block, range)) = Block::at(from, 100, 1) {
            assert_eq!(block.from(), from);
            blocks.push((block.number, block.more, range.len()));
            from = range.end;
        }
        assert_eq!(
            blocks,
            [(0, true, 32), (1, true, 32), (2, true, 32), (3, false, 4)]
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_refused_or_read_back(mut bytes: Vec<u8>, option in 0u32..60_000) {
            bytes.splice(..0, [0x54, 1, 0, 7]);
            if let Some(mut message) = Message::decode(&bytes) {
                message.put_number(option, option);
                prop_assert_eq!(Message::decode(&message.encoded()), Some(message));
            }
        }
    }
}
