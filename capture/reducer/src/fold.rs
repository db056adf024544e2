//! Implements a fast hasher for hash tables keyed by addresses and ports.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Hashes by multiplying and folding. The tables are bounded, so speed counts more than resistance to
/// collisions.
#[derive(Default)]
pub struct Fold(u64);

impl Hasher for Fold {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_ne_bytes(word));
        }
    }

    fn write_u64(&mut self, value: u64) {
        let product = u128::from(self.0 ^ value ^ 0x243f_6a88_85a3_08d3) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

pub type FoldMap<K, V> = HashMap<K, V, BuildHasherDefault<Fold>>;
