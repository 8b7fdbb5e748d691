//! A bit set.

/// A set of numbers below a bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bits {
    words: Vec<u64>,
    length: usize,
}

impl Bits {
    /// The empty set of numbers below `length`.
    pub fn none(length: usize) -> Self {
        Self { words: vec![0; length.div_ceil(64)], length }
    }

    /// All numbers below `length`.
    pub fn all(length: usize) -> Self {
        let mut bits = Self { words: vec![u64::MAX; length.div_ceil(64)], length };
        if let (Some(last), rest @ 1..) = (bits.words.last_mut(), length % 64) {
            *last = (1 << rest) - 1;
        }
        bits
    }

    /// Adds a number; numbers beyond the bound are ignored.
    pub fn set(&mut self, at: usize) {
        if at < self.length {
            self.words[at / 64] |= 1 << (at % 64);
        }
    }

    /// Removes a number.
    pub fn clear(&mut self, at: usize) {
        if at < self.length {
            self.words[at / 64] &= !(1 << (at % 64));
        }
    }

    /// Whether the number is in the set.
    pub fn has(&self, at: usize) -> bool {
        self.words.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    /// The number of elements in the set.
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The bound.
    pub const fn length(&self) -> usize {
        self.length
    }

    /// Removes the numbers that are not in `other`.
    pub fn intersect(&mut self, other: &Self) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= other;
        }
    }

    /// Removes the numbers of `other`.
    pub fn remove(&mut self, other: &Self) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= !other;
        }
    }

    /// Adds the numbers of `other`.
    pub fn unite(&mut self, other: &Self) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word |= other;
        }
    }

    /// Adds the numbers of a bitmap, lowest bit of the first byte first; numbers beyond the bound are ignored.
    pub fn unite_bytes(&mut self, bytes: &[u8]) {
        for (word, eight) in self.words.iter_mut().zip(bytes.chunks(8)) {
            let mut whole = [0; 8];
            whole[..eight.len()].copy_from_slice(eight);
            *word |= u64::from_le_bytes(whole);
        }
        if let (Some(last), rest @ 1..) = (self.words.last_mut(), self.length % 64) {
            *last &= (1 << rest) - 1;
        }
    }

    /// The numbers in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(at, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                (rest != 0).then(|| {
                    let bit = rest.trailing_zeros() as usize;
                    rest &= rest - 1;
                    at * 64 + bit
                })
            })
        })
    }
}

impl FromIterator<usize> for Bits {
    fn from_iter<T: IntoIterator<Item = usize>>(numbers: T) -> Self {
        let numbers: Vec<usize> = numbers.into_iter().collect();
        let mut bits = Self::none(numbers.iter().max().map_or(0, |most| most + 1));
        numbers.into_iter().for_each(|number| bits.set(number));
        bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_behave() {
        let mut bits = Bits::none(130);
        [0, 64, 129, 500].into_iter().for_each(|at| bits.set(at));
        assert_eq!(bits.iter().collect::<Vec<_>>(), [0, 64, 129]);
        assert!(bits.has(64) && !bits.has(1) && !bits.has(500));
        assert_eq!(Bits::all(130).count(), 130);
        let mut other = Bits::all(130);
        other.clear(64);
        bits.intersect(&other);
        assert_eq!(bits.count(), 2);
        bits.unite(&Bits::all(130));
        assert_eq!(bits.count(), 130);
        let mut bytes = Bits::none(70);
        bytes.unite_bytes(&[0b101, 0, 0, 0, 0, 0, 0, 0, 0xFF]);
        assert_eq!(bytes.iter().collect::<Vec<_>>(), [0, 2, 64, 65, 66, 67, 68, 69]);
    }
}
