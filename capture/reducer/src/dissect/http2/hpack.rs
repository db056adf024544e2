//! Reads header blocks of HTTP/2 (HPACK, RFC 7541) and finds the fields that distinguish requests and
//! answers. The dynamic table stores only the size of each entry, and the value if the entry is one of these
//! fields.

use std::collections::VecDeque;

use super::huffman;

/// The fields that matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    Method,
    Status,
    GrpcStatus,
    Other,
}

/// The number of entries of the static table (RFC 7541, appendix A).
const STATIC: u64 = 61;
/// The size in bytes of the dynamic table before its first update; larger tables are not followed.
const FIRST_SIZE: usize = 4096;
const LARGEST_SIZE: usize = 1 << 16;
/// The number of bytes that an entry takes in addition to its name and value (RFC 7541, 4.1).
const ENTRY: usize = 32;

struct Entry {
    field: Field,
    /// Empty for other fields.
    value: Vec<u8>,
    size: usize,
    name_size: usize,
}

/// The table of one direction of a connection.
pub struct Hpack {
    entries: VecDeque<Entry>,
    size: usize,
    largest: usize,
}

impl Default for Hpack {
    fn default() -> Self {
        Self {
            entries: VecDeque::new(),
            size: 0,
            largest: FIRST_SIZE,
        }
    }
}

/// Returns the field of an entry of the static table and its value, which is empty for other fields.
fn fixed(index: u64) -> (Field, &'static [u8]) {
    match index {
        2 => (Field::Method, b"GET"),
        3 => (Field::Method, b"POST"),
        8 => (Field::Status, b"200"),
        9 => (Field::Status, b"204"),
        10 => (Field::Status, b"206"),
        11 => (Field::Status, b"304"),
        12 => (Field::Status, b"400"),
        13 => (Field::Status, b"404"),
        14 => (Field::Status, b"500"),
        _ => (Field::Other, b""),
    }
}

/// The lengths of the names in the static table, from index 1 on.
const NAME_LENGTHS: [u8; 61] = [
    10, 7, 7, 5, 5, 7, 7, 7, 7, 7, 7, 7, 7, 7, 14, 15, 15, 13, 6, 27, 3, 5, 13, 13, 19, 16, 16, 14,
    16, 13, 12, 6, 4, 4, 6, 7, 4, 4, 8, 17, 13, 8, 19, 13, 4, 8, 12, 18, 19, 5, 7, 7, 11, 6, 10,
    25, 17, 10, 4, 3, 16,
];

/// The bytes of a header block that are not read yet.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    /// Reads the integer whose first `bits` bits are in `first` (RFC 7541, 5.1).
    fn integer(&mut self, first: u8, bits: u32) -> Option<u64> {
        let mask = (1u64 << bits) - 1;
        let mut value = u64::from(first) & mask;
        if value < mask {
            return Some(value);
        }
        for shift in (0..35).step_by(7) {
            let byte = self.byte()?;
            value += u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn text(&mut self) -> Option<Vec<u8>> {
        let first = self.byte()?;
        let length = usize::try_from(self.integer(first, 7)?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        if first & 0x80 == 0 {
            return Some(text.to_vec());
        }
        let mut plain = Vec::new();
        huffman::decode(text, &mut plain).then_some(plain)
    }
}

impl Hpack {
    /// Reads a whole header block and passes each field with its value to `see`; returns false if the block
    /// is invalid, or if its table is larger than the largest that is followed.
    pub fn read(&mut self, block: &[u8], mut see: impl FnMut(Field, &[u8])) -> bool {
        let mut reader = Reader(block);
        while let Some(first) = reader.byte() {
            if self.one(&mut reader, first, &mut see).is_none() {
                return false;
            }
        }
        true
    }

    /// Reads the representation that begins with `first` (RFC 7541, 6).
    fn one(
        &mut self,
        reader: &mut Reader<'_>,
        first: u8,
        see: &mut impl FnMut(Field, &[u8]),
    ) -> Option<()> {
        if first & 0x80 != 0 {
            let index = reader.integer(first, 7)?;
            if (1..=STATIC).contains(&index) {
                let (field, value) = fixed(index);
                see(field, value);
            } else {
                let entry = self.entry(index)?;
                see(entry.field, &entry.value);
            }
            return Some(());
        }
        if first & 0xe0 == 0x20 {
            let size = reader.integer(first, 5)?;
            self.largest = usize::try_from(size)
                .ok()
                .filter(|&size| size <= LARGEST_SIZE)?;
            self.shrink();
            return Some(());
        }
        let kept = first & 0xc0 == 0x40;
        let index = reader.integer(first, if kept { 6 } else { 4 })?;
        let (field, name_size) = match index {
            0 => named(&reader.text()?),
            1..=STATIC => (
                fixed_name(index),
                usize::from(NAME_LENGTHS[index as usize - 1]),
            ),
            _ => self
                .entry(index)
                .map(|entry| (entry.field, entry.name_size))?,
        };
        let value = reader.text()?;
        see(field, &value);
        if kept {
            self.keep(field, name_size, value);
        }
        Some(())
    }

    fn entry(&self, index: u64) -> Option<&Entry> {
        let place = usize::try_from(index.checked_sub(STATIC + 1)?).ok()?;
        self.entries.get(place)
    }

    fn keep(&mut self, field: Field, name_size: usize, value: Vec<u8>) {
        let size = ENTRY + name_size + value.len();
        let value = if field == Field::Other {
            Vec::new()
        } else {
            value
        };
        self.size += size;
        self.entries.push_front(Entry {
            field,
            value,
            size,
            name_size,
        });
        self.shrink();
    }

    /// Drops the oldest entries until the others fit.
    fn shrink(&mut self) {
        while self.size > self.largest
            && let Some(oldest) = self.entries.pop_back()
        {
            self.size -= oldest.size;
        }
    }
}

/// Returns the field with this name, and the name's length.
fn named(name: &[u8]) -> (Field, usize) {
    let field = match name {
        b":method" => Field::Method,
        b":status" => Field::Status,
        b"grpc-status" => Field::GrpcStatus,
        _ => Field::Other,
    };
    (field, name.len())
}

/// Returns the field of a name in the static table.
fn fixed_name(index: u64) -> Field {
    fixed(index).0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the fields that matter, with their values, and the size of the table after each block.
    fn read(hpack: &mut Hpack, block: &[u8]) -> Option<(Vec<(Field, String)>, usize)> {
        let mut found = Vec::new();
        let ok = hpack.read(block, |field, value| {
            if field != Field::Other {
                found.push((field, String::from_utf8(value.to_vec()).unwrap()));
            }
        });
        ok.then_some((found, hpack.size))
    }

    /// Tests RFC 7541, C.6: responses with Huffman codes and a table of 256 bytes, from which entries are
    /// dropped.
    #[test]
    fn the_responses_of_the_standard() {
        let mut hpack = Hpack {
            largest: 256,
            ..Hpack::default()
        };
        let first = b"\x48\x82\x64\x02\x58\x85\xae\xc3\x77\x1a\x4b\x61\x96\xd0\x7a\xbe\x94\x10\x54\
            \xd4\x44\xa8\x20\x05\x95\x04\x0b\x81\x66\xe0\x82\xa6\x2d\x1b\xff\x6e\x91\x9d\x29\xad\x17\
            \x18\x63\xc7\x8f\x0b\x97\xc8\xe9\xae\x82\xae\x43\xd3";
        let status = |code: &str| vec![(Field::Status, code.to_owned())];
        assert_eq!(read(&mut hpack, first), Some((status("302"), 222)));
        let second = b"\x48\x83\x64\x0e\xff\xc1\xc0\xbf";
        assert_eq!(read(&mut hpack, second), Some((status("307"), 222)));
        let third = b"\x88\xc1\x61\x96\xd0\x7a\xbe\x94\x10\x54\xd4\x44\xa8\x20\x05\x95\x04\x0b\x81\
            \x66\xe0\x84\xa6\x2d\x1b\xff\xc0\x5a\x83\x9b\xd9\xab\x77\xad\x94\xe7\x82\x1d\xd7\xf2\xe6\
            \xc7\xb3\x35\xdf\xdf\xcd\x5b\x39\x60\xd5\xaf\x27\x08\x7f\x36\x72\xc1\xab\x27\x0f\xb5\x29\
            \x1f\x95\x87\x31\x60\x65\xc0\x03\xed\x4e\xe5\xb1\x06\x3d\x50\x07";
        assert_eq!(read(&mut hpack, third), Some((status("200"), 215)));
    }

    #[test]
    fn blocks_that_end_early_or_name_no_entry_are_refused() {
        for wrong in [
            &b"\xbe"[..],
            b"\x80",
            b"\x40\x05ab",
            b"\x3f\xff\xff\xff\xff\xff\x01",
            b"\x48",
        ] {
            assert_eq!(read(&mut Hpack::default(), wrong), None, "{wrong:?}");
        }
    }
}
