//! The table of a font that maps its codes to characters.
//!
//! It is a small PostScript program, which every producer writes slightly differently. Only two of its operators
//! matter, so it is read as a stream of words rather than by a grammar. Ranges are not expanded, because a dozen bytes
//! can describe four billion codes.

use std::collections::HashMap;

/// Characters by code.
#[derive(Debug, Default)]
pub(super) struct CharacterMap {
    single: HashMap<u32, String>,
    /// First code, last code and the characters of the first code; ascending.
    ranges: Vec<(u32, u32, Vec<u16>)>,
}

enum Operand {
    Bytes(Vec<u8>),
    List(Vec<Vec<u8>>),
}

impl CharacterMap {
    pub(super) fn read(program: &[u8]) -> Self {
        let mut map = Self::default();
        let mut operands = Vec::new();
        let mut words = Words { rest: program };
        while let Some(word) = words.next() {
            match word {
                Word::Bytes(bytes) => operands.push(Operand::Bytes(bytes)),
                Word::Opening => operands.push(Operand::List(words.list())),
                Word::Operator(operator) => {
                    match operator {
                        b"endbfchar" => map.take_singles(&operands),
                        b"endbfrange" => map.take_ranges(&operands),
                        _ => {}
                    }
                    operands.clear();
                }
                Word::Closing => {}
            }
        }
        map.ranges.sort_by_key(|(first, ..)| *first);
        map
    }

    fn take_singles(&mut self, operands: &[Operand]) {
        for pair in operands.chunks_exact(2) {
            if let [Operand::Bytes(code), Operand::Bytes(characters)] = pair {
                self.single.insert(number(code), characters_of(&units(characters)));
            }
        }
    }

    fn take_ranges(&mut self, operands: &[Operand]) {
        for triple in operands.chunks_exact(3) {
            match triple {
                [Operand::Bytes(first), Operand::Bytes(last), Operand::Bytes(characters)] => {
                    self.ranges.push((number(first), number(last), units(characters)));
                }
                [Operand::Bytes(first), Operand::Bytes(_), Operand::List(list)] => {
                    let codes = number(first)..=u32::MAX;
                    self.single.extend(codes.zip(list.iter().map(|each| characters_of(&units(each)))));
                }
                _ => {}
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.single.is_empty() && self.ranges.is_empty()
    }

    /// Writes the characters of a code; returns whether it has any.
    pub(super) fn write(&self, code: u32, out: &mut String) -> bool {
        if let Some(characters) = self.single.get(&code) {
            out.push_str(characters);
            return true;
        }
        let before = self.ranges.partition_point(|(first, ..)| *first <= code);
        match before.checked_sub(1).and_then(|index| self.ranges.get(index)) {
            Some((first, last, units)) if code <= *last => {
                let mut units = units.clone();
                if let Some(unit) = units.last_mut() {
                    *unit = unit.wrapping_add((code - first) as u16);
                }
                out.push_str(&characters_of(&units));
                true
            }
            _ => false,
        }
    }
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn units(bytes: &[u8]) -> Vec<u16> {
    match bytes {
        [single] => vec![u16::from(*single)],
        _ => bytes.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect(),
    }
}

fn characters_of(units: &[u16]) -> String {
    char::decode_utf16(units.iter().copied()).map(|each| each.unwrap_or('\u{fffd}')).collect()
}

enum Word<'a> {
    Bytes(Vec<u8>),
    Opening,
    Closing,
    Operator(&'a [u8]),
}

struct Words<'a> {
    rest: &'a [u8],
}

impl<'a> Words<'a> {
    fn next(&mut self) -> Option<Word<'a>> {
        loop {
            self.rest = self.rest.trim_ascii_start();
            let (first, rest) = self.rest.split_first()?;
            match first {
                b'%' => {
                    self.take_while(|byte| !matches!(byte, b'\n' | b'\r'));
                }
                b'<' if rest.first() != Some(&b'<') => {
                    self.rest = rest;
                    let digits = self.take_while(|byte| byte != b'>');
                    self.rest = self.rest.get(1..).unwrap_or_default();
                    return Some(Word::Bytes(hexadecimal(digits)));
                }
                // Dictionaries contain nothing of interest, so their delimiters are skipped.
                b'<' => self.rest = rest.get(1..).unwrap_or_default(),
                b'[' | b']' => {
                    self.rest = rest;
                    return Some(if *first == b'[' { Word::Opening } else { Word::Closing });
                }
                byte if byte.is_ascii_alphanumeric() => {
                    return Some(Word::Operator(self.take_while(|byte| byte.is_ascii_alphanumeric())));
                }
                _ => self.rest = rest,
            }
        }
    }

    fn list(&mut self) -> Vec<Vec<u8>> {
        let mut list = Vec::new();
        while let Some(Word::Bytes(bytes)) = self.next() {
            list.push(bytes);
        }
        list
    }

    fn take_while(&mut self, wanted: impl Fn(u8) -> bool) -> &'a [u8] {
        let end = self.rest.iter().position(|byte| !wanted(*byte)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }
}

fn hexadecimal(digits: &[u8]) -> Vec<u8> {
    let digits: Vec<u8> =
        digits.iter().filter_map(|digit| char::from(*digit).to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair.get(1).unwrap_or(&0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(map: &CharacterMap, code: u32, expect: Option<&str>) {
        let mut out = String::new();
        let found = map.write(code, &mut out);
        assert_eq!(found.then_some(out.as_str()), expect, "{code:x}");
    }

    #[test]
    fn singles_ranges_and_lists() {
        let map = CharacterMap::read(
            b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CIDSystemInfo << /Registry (A) >> def\n\
              1 begincodespacerange <00><FF> endcodespacerange % remark\n\
              2 beginbfchar <01> <0041> <02><00660069> endbfchar\n\
              3 beginbfrange <10> <1f> <0061> <0020><0022>[<0078><0079> <D834DD1E>] <00000100> <FFFFFFFF> <0400>\n\
              endbfrange endcmap",
        );
        check(&map, 1, Some("A"));
        check(&map, 2, Some("fi"));
        check(&map, 0x12, Some("c"));
        check(&map, 0x21, Some("y"));
        check(&map, 0x22, Some("𝄞"));
        check(&map, 0x101, Some("Ё"));
        check(&map, 0x30, None);
    }

    #[test]
    fn damage_is_skipped() {
        for program in
            ["<", "[<", "beginbfchar <01> endbfchar", "<01> [ <02", "<zz> <> endbfchar", "<<<<", "%"]
        {
            CharacterMap::read(program.as_bytes());
        }
        assert!(CharacterMap::read(b"nothing here").is_empty());
    }
}
