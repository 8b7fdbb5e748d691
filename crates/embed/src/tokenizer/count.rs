//! How many tokens a text has that is put together from pieces, without reading the pieces again.
//!
//! A line end parts words, so the tokens of a text of whole lines are those of its pieces. Only what belongs to no token
//! goes across a seam: whitespace and other silent characters count when many of them follow each other.

use super::{SILENT_CHARACTERS, Tokens, UNKNOWN_CHARACTERS, tokenize};
use crate::vocabulary::UNKNOWN;

/// The number of tokens of a text, its unknown words divided. Texts that end with a line end can be joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenCount {
    /// What stands before the first token.
    lead: Silence,
    /// Tokens up to the last stretch.
    closed: usize,
    /// The last token and what follows it.
    last: Option<Stretch>,
}

/// Characters without a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Silence {
    characters: usize,
    /// How many of them are whitespace at the end.
    white: usize,
}

/// A token and what follows it up to the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    /// Characters of the word, if it is unknown.
    unknown: usize,
    /// All other characters.
    rest: usize,
}

impl Silence {
    fn of(text: &str) -> Self {
        let characters = text.chars().count();
        Self { characters, white: characters - text.trim_end().chars().count() }
    }

    const fn tokens(self) -> usize {
        divided(self.characters, SILENT_CHARACTERS)
    }

    fn followed_by(self, next: Self) -> Self {
        let is_white = next.white == next.characters;
        let white = if is_white { self.white + next.white } else { next.white };
        Self { characters: self.characters + next.characters, white }
    }
}

impl Stretch {
    fn of(text: &str, is_unknown: bool) -> Self {
        let word = if is_unknown { text.trim_end() } else { "" };
        let unknown = word.chars().count();
        Self { unknown, rest: text[word.len()..].chars().count() }
    }

    const fn tokens(self) -> usize {
        1 + divided(self.unknown, UNKNOWN_CHARACTERS) + divided(self.rest, SILENT_CHARACTERS)
    }

    fn followed_by(self, next: Silence) -> Self {
        // An unknown word goes on up to the whitespace at the end.
        if self.unknown > 0 && next.white < next.characters {
            return Self {
                unknown: self.unknown + self.rest + next.characters - next.white,
                rest: next.white,
            };
        }
        Self { rest: self.rest + next.characters, ..self }
    }
}

/// Tokens that are added so that none stands for more than `every` characters.
const fn divided(characters: usize, every: usize) -> usize {
    characters.saturating_sub(1) / every
}

impl TokenCount {
    /// Counts the tokens of a text.
    pub fn of(text: &str) -> Self {
        let mut tokens = Tokens::default();
        tokenize(text, &mut tokens);
        let start = |at: usize| tokens.starts.get(at).map_or(text.len(), |start| *start as usize);
        let lead = Silence::of(&text[..start(0)]);
        let Some(before) = tokens.ids.len().checked_sub(1) else { return Self { lead, ..Self::default() } };
        let stretch = Stretch::of(&text[start(before)..], tokens.ids[before] == UNKNOWN);
        tokens.divide_unknown(text);
        let closed = tokens.ids.len() - lead.tokens() - stretch.tokens();
        Self { lead, closed, last: Some(stretch) }
    }

    /// How many tokens there are.
    pub fn tokens(self) -> usize {
        self.lead.tokens() + self.closed + self.last.map_or(0, Stretch::tokens)
    }

    /// The count of this text, which ends with a line end, and `next` after it.
    #[must_use]
    pub fn followed_by(self, next: Self) -> Self {
        let Some(last) = self.last else {
            return Self { lead: self.lead.followed_by(next.lead), ..next };
        };
        let last = last.followed_by(next.lead);
        match next.last {
            None => Self { last: Some(last), ..self },
            Some(_) => Self { closed: self.closed + last.tokens() + next.closed, last: next.last, ..self },
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn whole(text: &str) -> usize {
        let mut tokens = Tokens::default();
        tokenize(text, &mut tokens);
        tokens.divide_unknown(text);
        tokens.ids.len()
    }

    /// Pieces in which everything occurs that counts across a seam.
    fn piece() -> impl Strategy<Value = String> {
        let part = prop_oneof![
            "[a-zA-Z0-9]{1,12}",
            "[ \t\n]{1,50}",
            "[\u{1}\u{200b}\u{301}\u{ad}\u{85}\u{3000} \n]{1,50}",
            "[ก-ฮ]{1,120}",
            "[\u{e000}a-z]{1,130}",
            "[.,!?#=≠\\[\\]]{1,5}",
            "[漢字한국어äöüßŐ]{1,9}",
            "\\PC{0,9}",
        ];
        proptest::collection::vec(part, 0..7).prop_map(|parts| parts.concat() + "\n")
    }

    proptest! {
        #[test]
        fn pieces_count_what_the_whole_counts(pieces in proptest::collection::vec(piece(), 0..9)) {
            let mut count = TokenCount::default();
            let mut text = String::new();
            for piece in pieces {
                prop_assert_eq!(TokenCount::of(&piece).tokens(), whole(&piece), "{:?}", piece);
                text.push_str(&piece);
                count = count.followed_by(TokenCount::of(&piece));
                prop_assert_eq!(count.tokens(), whole(&text), "{:?}", text);
                prop_assert_eq!(count, TokenCount::of(&text), "{:?}", text);
            }
        }
    }
}
