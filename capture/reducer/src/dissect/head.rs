//! Collects a header of fixed size that may arrive in pieces.

/// A header of `N` bytes, of which the first `have` have arrived.
#[derive(Clone, Copy, Debug)]
pub struct Head<const N: usize> {
    bytes: [u8; N],
    have: usize,
}

impl<const N: usize> Default for Head<N> {
    fn default() -> Self {
        Self {
            bytes: [0; N],
            have: 0,
        }
    }
}

impl<const N: usize> Head<N> {
    /// Returns whether a part of a header has arrived.
    pub fn begun(&self) -> bool {
        self.have > 0
    }

    /// Moves missing header bytes from the front of `data`. Returns the header once it is complete, else
    /// None, and the number of moved bytes.
    pub fn take(&mut self, data: &mut &[u8]) -> (Option<[u8; N]>, u32) {
        let step = data.len().min(N - self.have);
        self.bytes[self.have..self.have + step].copy_from_slice(&data[..step]);
        self.have += step;
        *data = &data[step..];
        let whole = self.have == N;
        if whole {
            self.have = 0;
        }
        (whole.then_some(self.bytes), step as u32)
    }
}
