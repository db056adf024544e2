//! Computes the measured values of a message, equal in every encoding: fractions of 15 decimal digits, which
//! a double represents precisely enough that text and binary give the same number.

/// Digits after the decimal point. 10^15 is below 2^53, so the quotient is the double nearest to the decimal
/// number.
pub const DIGITS: usize = 15;
/// The most signals in a message.
pub const MOST: usize = 1000;
const SCALE: u64 = 1_000_000_000_000_000;

/// Returns the fraction of signal `index` in message `seq`, as a whole number of 10^-15 below 10^15. The same
/// arguments give the same value.
pub fn fraction(seq: u64, index: usize) -> u64 {
    // splitmix64 (Steele, Lea and Flood, 2014) gives values that do not compress.
    let mut mixed = seq
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(index as u64);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) % SCALE
}

/// Returns the fraction of signal `index` in message `seq` as a floating-point number.
pub fn value(seq: u64, index: usize) -> f64 {
    fraction(seq, index) as f64 / SCALE as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_number_agree() {
        for seq in 0..1000 {
            let text = format!("0.{:0DIGITS$}", fraction(seq, 3));
            assert_eq!(text.parse(), Ok(value(seq, 3)), "{text}");
        }
        assert_ne!(fraction(1, 0), fraction(1, 1));
        assert_ne!(fraction(1, 0), fraction(2, 0));
    }
}
