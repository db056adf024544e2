//! Encodes columns as Parquet pages: delta for times, dictionary where values repeat, plain elsewhere.
//!
//! Parquet's own writer hashes every value for its dictionary, which would cost more than all the parsing.
//! Values here are small numbers, so a table indexed by value suffices. The pages are standard
//! (parquet.apache.org, "Encodings").

use parquet::basic::Encoding;

/// The widest range of values that are encoded with a lookup table.
const TABLE: u32 = 1 << 16;
const BLOCK: usize = 128;
const MINIBLOCK: usize = 32;

/// A column chunk's pages, not yet compressed.
#[derive(Debug)]
pub struct Pages {
    /// The dictionary page and its number of entries; None without a dictionary.
    pub dictionary: Option<(Vec<u8>, u32)>,
    pub encoding: Encoding,
    pub values: Vec<u8>,
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

/// Packs values of `width` bits, least significant first, in one run of the RLE / bit-packing hybrid.
fn bit_packed(values: &[u32], width: u32, out: &mut Vec<u8>) {
    varint((values.len().div_ceil(8) as u64) << 1 | 1, out);
    let end = out.len() + values.len().div_ceil(8) * width as usize;
    let (mut bits, mut held) = (0u64, 0);
    for &value in values {
        bits |= u64::from(value) << held;
        held += width;
        if held >= 32 {
            out.extend_from_slice(&(bits as u32).to_le_bytes());
            bits >>= 32;
            held -= 32;
        }
    }
    out.extend_from_slice(&bits.to_le_bytes());
    out.resize(end, 0);
}

fn run(value: u8, count: usize, out: &mut Vec<u8>) {
    varint((count as u64) << 1, out);
    out.push(value);
}

/// Returns the number of bits for values below `count`. It is at least one, since readers of Parquet
/// interpret zero differently.
fn width(count: u32) -> u32 {
    (32 - count.saturating_sub(1).leading_zeros()).max(1)
}

/// Encodes indices into a dictionary of `count` entries.
fn indices(values: &[u32], count: u32) -> Vec<u8> {
    if count == 1 {
        return constant(values.len());
    }
    let width = width(count);
    let mut out = Vec::with_capacity(values.len() * width as usize / 8 + 16);
    out.push(width as u8);
    bit_packed(values, width, &mut out);
    out
}

/// Encodes `count` times the index of a dictionary's only entry.
fn constant(count: usize) -> Vec<u8> {
    let mut out = vec![width(1) as u8];
    run(0, count, &mut out);
    out
}

/// Encodes a column of numbers: with a dictionary if the values are close together and repeat, else plain.
pub fn numbers(values: &[u32]) -> Pages {
    let low = values.iter().copied().min().unwrap_or(0);
    let high = values.iter().copied().max().unwrap_or(0);
    if low == high && !values.is_empty() {
        return Pages {
            dictionary: Some((plain(&[low]), 1)),
            encoding: Encoding::RLE_DICTIONARY,
            values: constant(values.len()),
        };
    }
    let dictionary = (high - low < TABLE).then(|| index_by_table(values, low, high));
    match dictionary {
        Some((entries, indexed)) if !values.is_empty() && entries.len() <= values.len() / 2 + 1 => {
            let count = entries.len() as u32;
            let page = (plain(&entries), count);
            let values = indices(&indexed, count);
            Pages {
                dictionary: Some(page),
                encoding: Encoding::RLE_DICTIONARY,
                values,
            }
        }
        _ => Pages {
            dictionary: None,
            encoding: Encoding::PLAIN,
            values: plain(values),
        },
    }
}

/// Returns the distinct values in order of appearance, and for each value its index among them; all values
/// must be below 2^16.
pub fn distinct(values: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let high = values.iter().copied().max().unwrap_or(0);
    index_by_table(values, 0, high)
}

fn plain(values: &[u32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

/// Returns the distinct values in order of appearance, and for each value its index among them; all values
/// are between `low` and `high`.
fn index_by_table(values: &[u32], low: u32, high: u32) -> (Vec<u32>, Vec<u32>) {
    let mut table = vec![u32::MAX; (high - low) as usize + 1];
    let mut entries = Vec::new();
    let place = |&value: &u32| {
        let slot = &mut table[(value - low) as usize];
        if *slot == u32::MAX {
            *slot = entries.len() as u32;
            entries.push(value);
        }
        *slot
    };
    let indexed = values.iter().map(place).collect();
    (entries, indexed)
}

/// Encodes a column of texts with the dictionary `names`; each number is an index into it.
pub fn texts<S: AsRef<[u8]>>(numbers: &[u32], names: &[S]) -> Pages {
    let mut page = Vec::new();
    for name in names {
        page.extend_from_slice(&(name.as_ref().len() as u32).to_le_bytes());
        page.extend_from_slice(name.as_ref());
    }
    let count = names.len() as u32;
    let values = indices(numbers, count);
    Pages {
        dictionary: Some((page, count)),
        encoding: Encoding::RLE_DICTIONARY,
        values,
    }
}

/// Encodes a column of booleans; each byte of `values` is 0 or 1.
pub fn truths(values: &[u8]) -> Pages {
    Pages {
        dictionary: None,
        encoding: Encoding::PLAIN,
        values: gather(values, 0),
    }
}

/// Collects bit `bit` of every byte into a bit map, the first byte in the lowest bit.
fn gather(bytes: &[u8], bit: u32) -> Vec<u8> {
    let one = |chunk: &[u8]| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        let bits = u64::from_le_bytes(word) >> bit & 0x0101_0101_0101_0101;
        (bits.wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
    };
    bytes.chunks(8).map(one).collect()
}

/// Encodes the definition levels of a nullable column, preceded by their length; a value is present where
/// `bit` of `present` is set.
pub fn levels(present: &[u8], bit: u8) -> Vec<u8> {
    let map = gather(present, bit.trailing_zeros());
    let set: usize = map.iter().map(|byte| byte.count_ones() as usize).sum();
    let mut out = vec![0; 4];
    if set == 0 || set == present.len() {
        run(u8::from(set > 0), present.len(), &mut out);
    } else {
        varint((map.len() as u64) << 1 | 1, &mut out);
        out.extend_from_slice(&map);
    }
    prefix_length(out)
}

/// Encodes repetition or definition levels of `width` bits, preceded by their length.
pub fn level_list(levels: &[u32], width: u32) -> Vec<u8> {
    let mut out = vec![0; 4];
    bit_packed(levels, width, &mut out);
    prefix_length(out)
}

fn prefix_length(mut out: Vec<u8>) -> Vec<u8> {
    let length = out.len() as u32 - 4;
    out[..4].copy_from_slice(&length.to_le_bytes());
    out
}

/// Encodes times as DELTA_BINARY_PACKED: blocks of 128 differences, in four miniblocks with a width each.
pub fn times(values: &[i64]) -> Pages {
    let mut out = Vec::with_capacity(values.len() * 4);
    varint(BLOCK as u64, &mut out);
    varint((BLOCK / MINIBLOCK) as u64, &mut out);
    varint(values.len() as u64, &mut out);
    varint(zigzag(values.first().copied().unwrap_or(0)), &mut out);
    let mut deltas = [0i64; BLOCK];
    for start in (1..values.len()).step_by(BLOCK) {
        let end = (start + BLOCK).min(values.len());
        for (delta, pair) in deltas.iter_mut().zip(values[start - 1..end].windows(2)) {
            *delta = pair[1].wrapping_sub(pair[0]);
        }
        delta_block(&deltas[..end - start], &mut out);
    }
    Pages {
        dictionary: None,
        encoding: Encoding::DELTA_BINARY_PACKED,
        values: out,
    }
}

fn delta_block(deltas: &[i64], out: &mut Vec<u8>) {
    let least = deltas.iter().copied().min().unwrap_or(0);
    varint(zigzag(least), out);
    let widths = out.len();
    out.extend_from_slice(&[0; BLOCK / MINIBLOCK]);
    for (index, part) in deltas.chunks(MINIBLOCK).enumerate() {
        let above = |delta: &i64| delta.wrapping_sub(least) as u64;
        let width = 64
            - part
                .iter()
                .map(above)
                .fold(0, |all, one| all | one)
                .leading_zeros();
        out[widths + index] = width as u8;
        let end = out.len() + MINIBLOCK * width as usize / 8;
        let (mut bits, mut held) = (0u128, 0);
        for delta in part {
            bits |= u128::from(above(delta)) << held;
            held += width;
            while held >= 32 {
                out.extend_from_slice(&(bits as u32).to_le_bytes());
                bits >>= 32;
                held -= 32;
            }
        }
        out.extend_from_slice(&(bits as u32).to_le_bytes());
        out.resize(end, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes the example of "Delta Encoding" in the format's description (Encodings.md).
    #[test]
    fn deltas_are_those_of_the_description() {
        let Pages { values, .. } = times(&[1, 2, 3, 4, 5]);
        assert_eq!(values, [128, 1, 4, 5, 2, 2, 0, 0, 0, 0]);
    }

    /// Encodes the example of bit packing in Encodings.md: 0 to 7 in three bits each.
    #[test]
    fn bits_are_packed_from_the_least_significant() {
        let mut out = Vec::new();
        bit_packed(&[0, 1, 2, 3, 4, 5, 6, 7], 3, &mut out);
        assert_eq!(out, [0b11, 0b1000_1000, 0b1100_0110, 0b1111_1010]);
    }

    #[test]
    fn a_bit_of_every_byte_becomes_a_map() {
        assert_eq!(
            gather(&[4, 0, 4, 4, 0, 0, 0, 4, 4, 1], 2),
            [0b1000_1101, 0b1]
        );
    }

    #[test]
    fn far_apart_or_all_different_numbers_stay_plain() {
        assert!(numbers(&[1, 2, 1, 2]).dictionary.is_some());
        assert!(numbers(&[0, u32::MAX, 0, u32::MAX]).dictionary.is_none());
        assert!(numbers(&[1, 2, 3, 4, 5, 6]).dictionary.is_none());
    }
}
