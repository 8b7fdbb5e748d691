//! Deterministic random numbers, the same on every machine, so that corpora can be compared.

/// A SplitMix64 generator: one 64-bit state, advanced by a fixed odd step and then mixed.
pub struct Random {
    state: u64,
}

impl Random {
    /// A generator whose output depends only on `seed`.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from zero up to but not including `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        let wide = u128::from(self.bits()) * limit as u128;
        (wide >> 64) as usize
    }

    /// A number from `least` up to and including `most`.
    pub fn between(&mut self, least: usize, most: usize) -> usize {
        least + self.below(most - least + 1)
    }

    /// A number from zero up to but not including one.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True with a probability of `chance` percent.
    pub fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    /// A random element of the list, which must not be empty.
    pub fn pick<'list, T>(&mut self, list: &'list [T]) -> &'list T {
        &list[self.below(list.len())]
    }

    /// A number from the standard normal distribution.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Fills the buffer with incompressible bytes.
    pub fn fill(&mut self, buffer: &mut [u8]) {
        for piece in buffer.chunks_mut(8) {
            let bytes = self.bits().to_le_bytes();
            piece.copy_from_slice(&bytes[..piece.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let mut first = Random::new(7);
        let mut second = Random::new(7);
        assert!((0..100).all(|_| first.bits() == second.bits()));
        assert_ne!(Random::new(1).bits(), Random::new(2).bits());
    }

    #[test]
    fn numbers_stay_in_their_range() {
        let mut random = Random::new(3);
        assert!((0..1000).all(|_| random.below(7) < 7));
        assert!((0..1000).all(|_| (2..=4).contains(&random.between(2, 4))));
        assert!((0..1000).all(|_| (0.0..1.0).contains(&random.unit())));
    }
}
