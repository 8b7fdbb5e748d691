//! A vocabulary with the skew of natural language: compressors and indexes behave differently on uniform words.

use std::collections::HashSet;

use super::random::Random;

/// The number of made-up words: names and terms that are in no list.
const MADE_UP: usize = 6_000;

/// The built-in model's vocabulary: English words, the frequent ones first. Made-up words alone would produce twice as
/// many tokens as real ones.
const VOCABULARY: &str = include_str!("../../../crates/embed/model/vocab.txt");

/// Flattens the top of the distribution, as in real texts.
const SHIFT: f64 = 2.7;

/// Common English words, the most frequent first.
const COMMON: &str = "the of and to a in is that for it as was with be by on not he his but at are this have from \
    or had an they which one you were all her she there would their we him been has when who will no more if out so \
    up said what its about than into them can only other time new some could these two may first then do any like my \
    now over such our man me even most made after also did many off before must well back through years where much \
    your way down should because long each just state those people too mr how little good world make very year still \
    see work life men day get here between both under never same another know while last might us great old file \
    value number system page line table part name list order server client request error path version key data user";

const STARTS: [&str; 24] = [
    "b", "br", "c", "ch", "d", "dr", "f", "g", "gr", "h", "j", "k", "l", "m", "n", "p", "pl", "qu", "r", "s",
    "st", "t", "v", "w",
];
const MIDDLES: [&str; 10] = ["a", "e", "i", "o", "u", "ai", "ea", "io", "ou", "y"];
const ENDS: [&str; 12] = ["", "", "", "n", "r", "s", "l", "m", "nd", "st", "x", "ck"];

/// Words by rank, with cumulative weights for drawing them.
pub struct Words {
    words: Vec<String>,
    sums: Vec<f64>,
    common: usize,
}

impl Words {
    /// The vocabulary shared by all corpora.
    pub fn new() -> Self {
        let mut random = Random::new(0x5eed_0001);
        let mut words: Vec<String> = COMMON.split_whitespace().map(str::to_owned).collect();
        let known: HashSet<String> = words.iter().cloned().collect();
        let english =
            VOCABULARY.lines().filter(|word| word.len() >= 3 && word.bytes().all(|b| b.is_ascii_lowercase()));
        words.extend(english.filter(|word| !known.contains(*word)).map(str::to_owned));
        words.extend((0..MADE_UP).map(|_| made_up(&mut random)));
        let mut sum = 0.0;
        let sums = (1..=words.len())
            .map(|rank| {
                sum += 1.0 / (rank as f64 + SHIFT);
                sum
            })
            .collect();
        Self { words, sums, common: known.len() }
    }

    /// Draws a word: the word of rank `n` occurs about `1/n` times as often as the first.
    pub fn draw(&self, random: &mut Random) -> &str {
        let total = self.sums.last().copied().unwrap_or_default();
        let point = random.unit() * total;
        let rank = self.sums.partition_point(|sum| *sum <= point);
        &self.words[rank.min(self.words.len() - 1)]
    }

    /// Draws a word uniformly from all but the most common ones, for use in names.
    pub fn name(&self, random: &mut Random) -> &str {
        &self.words[self.common + random.below(self.words.len() - self.common)]
    }
}

fn made_up(random: &mut Random) -> String {
    let mut word = String::new();
    for _ in 0..random.between(1, 4) {
        word.push_str(random.pick::<&str>(&STARTS));
        word.push_str(random.pick::<&str>(&MIDDLES));
    }
    word.push_str(random.pick::<&str>(&ENDS));
    word
}

#[cfg(test)]
mod tests {
    use super::{Random, Words};

    #[test]
    fn the_first_word_leads_and_the_tail_is_reached() {
        let words = Words::new();
        let mut random = Random::new(5);
        let drawn: Vec<&str> = (0..20_000).map(|_| words.draw(&mut random)).collect();
        let of_first = drawn.iter().filter(|word| **word == "the").count();
        assert!((300..1_000).contains(&of_first), "{of_first}");
        let distinct: std::collections::HashSet<_> = drawn.into_iter().collect();
        assert!(distinct.len() > 4_000);
    }
}
