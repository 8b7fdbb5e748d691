//! The tokenizer: uncased WordPiece, as used to train the model.
//!
//! The rules are those of BERT's uncased vocabulary: control characters are removed, letters are lowercased and lose
//! their accents, punctuation and ideographs are separate words, and each word is split greedily into the longest known
//! pieces. Almost all text is ASCII, where a word is a run of letters and digits that is lowercased byte by byte; only
//! words with other characters are decomposed character by character.

mod count;

pub use count::TokenCount;
use unicode_normalization::char::decompose_canonical;

use crate::{
    characters::{is_accent, is_ideograph, is_punctuation, is_removed},
    vocabulary::{SPARE, UNKNOWN, Vocabulary},
};

/// Words with more characters are unknown.
const WORD_CHARACTERS: usize = 100;
/// Characters per token when an unknown word is divided.
const UNKNOWN_CHARACTERS: usize = 4;
/// Characters per token when a long run of whitespace, control characters or accents is divided.
const SILENT_CHARACTERS: usize = 32;
/// Maximum length in bytes of a word of [`WORD_CHARACTERS`] characters.
const WORD_BYTES: usize = WORD_CHARACTERS * 4;

/// The tokens of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// The model row of each token; 100 for an unknown word.
    pub ids: Vec<u16>,
    /// The byte offset of each token in the text, always a character boundary, so that the text can be split there.
    /// Offsets are ascending; two are equal only where one character became several tokens, as with Korean syllables.
    pub starts: Vec<u32>,
}

impl Tokens {
    fn push(&mut self, id: u16, start: u32) {
        self.ids.push(id);
        self.starts.push(start);
    }

    /// Divides unknown words into unknown tokens of a few characters each. The model ignores an unknown word, so a
    /// single token is enough for it whatever the word's length. But when a text is measured by its tokens, a megabyte
    /// without a space or a page of Thai must not count as a single one. Long runs without any tokens, such as
    /// whitespace, are divided too.
    pub fn divide_unknown(&mut self, text: &str) {
        let ends = |at: usize| self.starts.get(at + 1).map_or(text.len(), |next| *next as usize);
        let is_wide = |at: usize, start: u32| ends(at) - start as usize > SILENT_CHARACTERS;
        let first = self.starts.first().map_or(text.len(), |start| *start as usize);
        let plain = first <= SILENT_CHARACTERS
            && self
                .ids
                .iter()
                .zip(&self.starts)
                .enumerate()
                .all(|(at, (id, start))| *id != UNKNOWN && !is_wide(at, *start));
        if plain {
            return;
        }
        let whole = std::mem::take(self);
        self.divide(&text[..first], 0, SILENT_CHARACTERS);
        for (at, (id, start)) in whole.ids.iter().zip(&whole.starts).enumerate() {
            let end = whole.starts.get(at + 1).map_or(text.len(), |next| *next as usize);
            let stretch = text.get(*start as usize..end).unwrap_or_default();
            let word = if *id == UNKNOWN { stretch.trim_end() } else { "" };
            self.push(*id, *start);
            self.divide(word, *start, UNKNOWN_CHARACTERS);
            self.divide(&stretch[word.len()..], start + word.len() as u32, SILENT_CHARACTERS);
        }
    }

    /// Adds an unknown token after every `every` characters.
    fn divide(&mut self, text: &str, start: u32, every: usize) {
        if text.len() > every {
            let places = text.char_indices().step_by(every).skip(1);
            places.for_each(|(offset, _)| self.push(UNKNOWN, start + offset as u32));
        }
    }

    fn truncate(&mut self, length: usize) {
        self.ids.truncate(length);
        self.starts.truncate(length);
    }
}

/// Splits `text` into tokens, which replace the contents of `tokens`. Text beyond 4 GiB is ignored.
pub fn tokenize(text: &str, tokens: &mut Tokens) {
    tokenize_first(text, usize::MAX, tokens);
}

/// Like [`tokenize`], but stops soon after the first `count` tokens, so that the beginning of a long text is cheap.
pub(crate) fn tokenize_first(text: &str, count: usize, tokens: &mut Tokens) {
    tokens.truncate(0);
    let text = &text[..text.floor_char_boundary(u32::MAX as usize)];
    let mut reader = Reader { text, count, vocabulary: Vocabulary::get(), word: Word::new(), tokens };
    let mut at = 0;
    while !reader.is_done()
        && let Some(&byte) = text.as_bytes().get(at)
    {
        at = match CLASSES[byte as usize] {
            Class::Nothing => at + 1,
            Class::Alone => reader.alone(at, byte),
            Class::Wide => reader.wide_words(at),
            Class::Word(_) => reader.plain_word(at),
        };
    }
}

/// The meaning of a byte where a word may begin.
#[derive(Clone, Copy)]
enum Class {
    /// Whitespace, or a control character that is removed.
    Nothing,
    /// ASCII punctuation, a token by itself.
    Alone,
    /// A letter or digit, lowercased.
    Word(u8),
    /// Part of a non-ASCII character.
    Wide,
}

const CLASSES: [Class; 256] = {
    let mut classes = [Class::Nothing; 256];
    let mut byte = 0;
    while byte < 256 {
        let character = byte as u8;
        if !character.is_ascii() {
            classes[byte] = Class::Wide;
        } else if character.is_ascii_alphanumeric() {
            classes[byte] = Class::Word(character.to_ascii_lowercase());
        } else if character.is_ascii_punctuation() {
            classes[byte] = Class::Alone;
        }
        byte += 1;
    }
    classes
};

/// Whether a byte separates words. Removed control characters do not: the text on both sides of one is a single word.
fn parts_words(byte: u8) -> bool {
    byte.is_ascii_punctuation() || matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

struct Reader<'a> {
    text: &'a str,
    /// How many tokens are wanted.
    count: usize,
    vocabulary: &'static Vocabulary,
    word: Word,
    tokens: &'a mut Tokens,
}

impl Reader<'_> {
    fn is_done(&self) -> bool {
        self.tokens.ids.len() >= self.count
    }

    fn alone(&mut self, at: usize, byte: u8) -> usize {
        self.tokens.push(self.vocabulary.single(byte), at as u32);
        at + 1
    }

    /// Reads the ASCII word that begins at `at` and returns where it ends.
    fn plain_word(&mut self, at: usize) -> usize {
        let rest = &self.text.as_bytes()[at..];
        let mut length = 0;
        for &byte in rest {
            let Class::Word(lowered) = CLASSES[byte as usize] else { break };
            if let Some(place) = self.word.bytes.get_mut(length) {
                *place = lowered;
            }
            length += 1;
        }
        if rest.get(length).is_some_and(|&byte| !parts_words(byte)) {
            return self.wide_words(at);
        }
        let start = at as u32;
        if length > WORD_CHARACTERS {
            self.tokens.push(UNKNOWN, start);
        } else {
            cut(&self.word.bytes, length, |piece| start + piece as u32, self.vocabulary, self.tokens);
        }
        at + length
    }

    /// Reads words of any characters from `at` and returns where the next ASCII separator is.
    fn wide_words(&mut self, at: usize) -> usize {
        self.word.clear();
        for (offset, character) in self.text[at..].char_indices() {
            let origin = at + offset;
            if self.is_done() {
                return origin;
            }
            if character.is_ascii() && parts_words(character as u8) {
                self.end_word();
                return origin;
            }
            if !is_removed(character) {
                self.normalise(character, origin as u32);
            }
        }
        self.end_word();
        self.text.len()
    }

    fn normalise(&mut self, character: char, origin: u32) {
        if character.is_ascii() {
            return self.word.push(character.to_ascii_lowercase(), origin);
        }
        decompose_canonical(character, |part| {
            for lowered in part.to_lowercase() {
                self.take(lowered, origin);
            }
        });
    }

    /// Takes one character of the normalised text. Characters are classified only here, because decomposition can turn
    /// a letter-like character into punctuation: `≠` is `=` with an accent.
    fn take(&mut self, character: char, origin: u32) {
        if is_accent(character) {
            return;
        }
        if character.is_whitespace() {
            self.end_word();
        } else if is_punctuation(character) || is_ideograph(character) {
            self.end_word();
            self.word.push(character, origin);
            self.end_word();
        } else {
            self.word.push(character, origin);
        }
    }

    fn end_word(&mut self) {
        let Word { bytes, length, characters, origins } = &self.word;
        if *characters > WORD_CHARACTERS {
            self.tokens.push(UNKNOWN, origins[0]);
        } else if *length > 0 {
            cut(bytes, *length, |piece| origins[piece], self.vocabulary, self.tokens);
        }
        self.word.clear();
    }
}

/// Splits a word into the longest known pieces; the whole word is unknown when any part of it is.
fn cut(
    word: &[u8; WORD_BYTES + SPARE],
    length: usize,
    origin: impl Fn(usize) -> u32,
    vocabulary: &Vocabulary,
    tokens: &mut Tokens,
) {
    let before = tokens.ids.len();
    let mut at = 0;
    while at < length {
        let Some((id, taken)) = vocabulary.longest(&word[at..], length - at, at > 0) else {
            tokens.truncate(before);
            return tokens.push(UNKNOWN, origin(0));
        };
        tokens.push(id, origin(at));
        at += taken;
    }
}

/// A normalised word, with the offset in the text that each of its bytes came from.
struct Word {
    bytes: [u8; WORD_BYTES + SPARE],
    length: usize,
    characters: usize,
    origins: [u32; WORD_BYTES],
}

impl Word {
    const fn new() -> Self {
        Self { bytes: [0; WORD_BYTES + SPARE], length: 0, characters: 0, origins: [0; WORD_BYTES] }
    }

    fn clear(&mut self) {
        (self.length, self.characters) = (0, 0);
    }

    /// Adds a character. Characters beyond the maximum are only counted.
    fn push(&mut self, character: char, origin: u32) {
        self.characters += 1;
        if self.characters <= WORD_CHARACTERS {
            let end = self.length + character.len_utf8();
            character.encode_utf8(&mut self.bytes[self.length..end]);
            self.origins[self.length..end].fill(origin);
            self.length = end;
        }
    }
}

/// Whether a text is one word of the model's vocabulary as a whole: an English word, a common name.
pub fn is_word(text: &str) -> bool {
    let mut tokens = Tokens::default();
    tokenize(text, &mut tokens);
    matches!(tokens.ids[..], [id] if id != UNKNOWN)
}

#[cfg(test)]
mod tests;
