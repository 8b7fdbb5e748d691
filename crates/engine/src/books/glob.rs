//! Globs over paths of books: `**`, `*`, `?`, `{a,b}`, `[a-z]` and `[!a]`, character by character whatever the script.
//!
//! A glob becomes a regular expression over a whole path: braces are written out first, so that what stands before and after
//! them counts in every alternative. Nothing but `**` ever crosses `/`, classes included.

use std::{fmt::Write as _, iter::Peekable, str::Chars};

use regex::bytes::{Regex, RegexBuilder};

/// Braces within braces.
const DEPTH: usize = 16;
/// Globs that one with braces may stand for.
const ALTERNATIVES: usize = 4_096;
/// What `*` stands for: bytes will do, since the path is valid UTF-8 and `/` is one byte.
const WITHIN_PART: &str = "(?-u:[^/]*)";

/// A compiled glob.
#[derive(Debug)]
pub(super) struct Glob(Regex);

impl Glob {
    /// Compiles a glob, within a bound of bytes. The error says what is wrong with it.
    pub(super) fn new(glob: &str, bytes: usize) -> Result<Self, String> {
        let alternatives = Expansion::of(glob)?;
        let patterns: Vec<String> =
            alternatives.iter().map(|glob| Translation::of(glob)).collect::<Result<_, _>>()?;
        let pattern = format!(r"\A(?:{})\z", patterns.join("|"));
        let built = RegexBuilder::new(&pattern).size_limit(bytes).dfa_size_limit(bytes).build();
        built.map(Self).map_err(|_| "it is too large".into())
    }

    /// Whether the whole path fits.
    pub(super) fn fits(&self, path: &str) -> bool {
        self.0.is_match(path.as_bytes())
    }
}

/// A glob whose braces are being written out.
struct Expansion<'a>(Peekable<Chars<'a>>);

impl Expansion<'_> {
    /// The globs without braces that a glob stands for.
    fn of(glob: &str) -> Result<Vec<String>, String> {
        Expansion(glob.chars().peekable()).sequence(0)
    }

    /// What stands up to the end, or up to the `,` or `}` that ends an alternative of the brace it is in.
    fn sequence(&mut self, depth: usize) -> Result<Vec<String>, String> {
        let mut globs = vec![String::new()];
        while let Some(letter) = self.0.next_if(|letter| depth == 0 || !matches!(letter, ',' | '}')) {
            match letter {
                '{' if depth == DEPTH => return Err(format!("more than {DEPTH} braces are nested")),
                '{' => globs = product(&globs, &self.brace(depth + 1)?)?,
                '}' => return Err("a '}' closes no '{'; write [}] for the character itself".into()),
                '[' => push(&mut globs, &self.class()),
                '\\' => push(&mut globs, &['\\'].into_iter().chain(self.0.next()).collect::<String>()),
                other => globs.iter_mut().for_each(|glob| glob.push(other)),
            }
        }
        Ok(globs)
    }

    /// The alternatives of a brace, of which the opening sign has been read.
    fn brace(&mut self, depth: usize) -> Result<Vec<String>, String> {
        let mut all = Vec::new();
        loop {
            all.extend(self.sequence(depth)?);
            if all.len() > ALTERNATIVES {
                return Err(too_many());
            }
            match self.0.next() {
                Some(',') => {}
                Some(_) => return Ok(all),
                None => return Err("a '{' is not closed; write [{] for the character itself".into()),
            }
        }
    }

    /// A class as it stands, of which the opening bracket has been read: signs in it mean themselves.
    fn class(&mut self) -> String {
        let mut text = String::from("[");
        text.extend(self.0.next_if(|letter| matches!(letter, '!' | '^')));
        text.extend(self.0.next_if_eq(&']'));
        while let Some(letter) = self.0.next() {
            text.push(letter);
            match letter {
                ']' => break,
                '\\' => text.extend(self.0.next()),
                _ => {}
            }
        }
        text
    }
}

fn push(globs: &mut [String], text: &str) {
    globs.iter_mut().for_each(|glob| glob.push_str(text));
}

fn product(before: &[String], after: &[String]) -> Result<Vec<String>, String> {
    if before.len() * after.len() > ALTERNATIVES {
        return Err(too_many());
    }
    Ok(before.iter().flat_map(|one| after.iter().map(move |other| format!("{one}{other}"))).collect())
}

fn too_many() -> String {
    format!("its braces stand for more than {ALTERNATIVES} globs")
}

/// A glob without braces that is being translated.
struct Translation<'a> {
    rest: Peekable<Chars<'a>>,
    pattern: String,
    /// Whether a part of the path begins here.
    is_start: bool,
}

impl Translation<'_> {
    fn of(glob: &str) -> Result<String, String> {
        let rest = glob.chars().peekable();
        let mut translation = Translation { rest, pattern: String::new(), is_start: true };
        while let Some(letter) = translation.rest.next() {
            translation.take(letter)?;
        }
        Ok(translation.pattern)
    }

    fn take(&mut self, letter: char) -> Result<(), String> {
        let was_start = std::mem::take(&mut self.is_start);
        match letter {
            '*' => self.stars(was_start),
            '?' => self.pattern.push_str("[^/]"),
            '[' => self.class()?,
            '\\' => {
                let escaped = self.rest.next().ok_or("a '\\' stands at the end; it escapes nothing")?;
                self.literal(escaped);
            }
            '/' => {
                self.pattern.push('/');
                self.is_start = true;
            }
            other => self.literal(other),
        }
        Ok(())
    }

    /// One star or more. Two that are a whole part stand for any number of parts; elsewhere they are as one.
    fn stars(&mut self, was_start: bool) {
        let mut count = 1;
        while self.rest.next_if_eq(&'*').is_some() {
            count += 1;
        }
        let is_part_end = self.rest.peek().is_none_or(|next| *next == '/');
        if count != 2 || !was_start || !is_part_end {
            self.pattern.push_str(WITHIN_PART);
        } else if self.rest.next_if_eq(&'/').is_some() {
            self.pattern.push_str("(?s-u:.*/)?");
            self.is_start = true;
        } else {
            // At the end: everything below, and not the folder itself.
            self.pattern.push_str("(?s-u:.+)");
        }
    }

    /// A class, of which the opening bracket has been read.
    fn class(&mut self) -> Result<(), String> {
        const OPEN: &str = "a '[' is not closed; write [[] for the character itself";
        let is_negated = self.rest.next_if(|letter| matches!(letter, '!' | '^')).is_some();
        let mut members = String::new();
        let mut is_first = true;
        loop {
            let mut from = self.rest.next().ok_or(OPEN)?;
            if from == ']' && !is_first {
                break;
            }
            is_first = false;
            if from == '\\' {
                from = self.rest.next().ok_or(OPEN)?;
            }
            let mut ahead = self.rest.clone();
            let is_range = ahead.next() == Some('-') && ahead.peek().is_some_and(|letter| *letter != ']');
            let to = if is_range {
                self.rest.next();
                let mut to = self.rest.next().ok_or(OPEN)?;
                if to == '\\' {
                    to = self.rest.next().ok_or(OPEN)?;
                }
                to
            } else {
                from
            };
            if from > to {
                return Err(format!("the range {from}-{to} runs backwards"));
            }
            let _ = write!(members, r"\x{{{:x}}}-\x{{{:x}}}", u32::from(from), u32::from(to));
        }
        let negation = if is_negated { "^" } else { "" };
        let _ = write!(self.pattern, "[[{negation}{members}]&&[^/]]");
        Ok(())
    }

    fn literal(&mut self, letter: char) {
        let mut bytes = [0; 4];
        self.pattern.push_str(&regex::escape(letter.encode_utf8(&mut bytes)));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn compile(glob: &str) -> Result<Glob, String> {
        Glob::new(glob, 4 << 20)
    }

    /// What a glob means, spelt out: part by part, character by character.
    fn fits(pattern: &[&str], path: &[&str]) -> bool {
        match pattern {
            [] => path.is_empty(),
            // At the end, everything below; elsewhere, any number of parts.
            ["**"] => !path.is_empty(),
            ["**", rest @ ..] => (0..=path.len()).any(|skipped| fits(rest, &path[skipped..])),
            [part, rest @ ..] => match path {
                [first, others @ ..] => {
                    let letters: Vec<char> = first.chars().collect();
                    fits_part(&part.chars().collect::<Vec<_>>(), &letters) && fits(rest, others)
                }
                [] => false,
            },
        }
    }

    fn fits_part(pattern: &[char], text: &[char]) -> bool {
        match (pattern, text) {
            ([], []) => true,
            (['*', rest @ ..], _) => {
                fits_part(rest, text) || (!text.is_empty() && fits_part(pattern, &text[1..]))
            }
            (['?', rest @ ..], [_, others @ ..]) => fits_part(rest, others),
            ([letter, rest @ ..], [first, others @ ..]) => letter == first && fits_part(rest, others),
            _ => false,
        }
    }

    #[test]
    fn globs_know_alternatives_and_classes() {
        for (pattern, path, is_match) in [
            ("*.{md,png}", "a.png", true),
            ("*.{md,png}", "a.txt", false),
            ("{lessons/**,assets/*}", "lessons/a/b.md", true),
            ("{lessons/**,assets/*}", "assets/images/b.png", false),
            ("x{a,{b,c}}", "xc", true),
            ("a{,b}.md", "a.md", true),
            ("{lessons/,chapters/}**", "chapters/a/b.md", true),
            ("{lessons/,chapters/}**", "lessons/b.md", true),
            ("lessons/{p/,}**/*.md", "lessons/b.md", true),
            ("lessons/{p/,}**/*.md", "lessons/p/q/b.md", true),
            ("{a,**}[a-c]", "x/c", false),
            ("{a,**}[a-c]", "xc", true),
            ("{**}/a", "x/y/a", true),
            ("{[,}],b}.md", "}.md", true),
            ("{a\\,b}c", "a,bc", true),
            ("a,b", "a,b", true),
            ("[a-c]*.md", "beta.md", true),
            ("[!a-c]*.md", "beta.md", false),
            ("[^a]b", "cb", true),
            ("[]a]b", "]b", true),
            ("[a-]b", "-b", true),
            ("a[*]b", "a*b", true),
            ("a\\*b", "axb", false),
            ("*.md", ".summary.md", true),
            ("*.md", "a/b.md", false),
            ("a?b", "a/b", false),
            ("a[!x]b", "a/b", false),
            ("a[+-9]b", "a/b", false),
            ("a[/]b", "a/b", false),
            ("**/*.md", "a.md", true),
            ("a/**", "a", false),
            ("a/**/b", "a/b", true),
            ("a**b", "axyb", true),
            ("a**b", "ax/yb", false),
            ("chapters/chapter-01/*", "chapters/chapter-01/.summary.md", true),
            ("a.b", "axb", false),
        ] {
            assert_eq!(compile(pattern).unwrap().fits(path), is_match, "{pattern} {path}");
        }
    }

    #[test]
    fn a_character_of_any_script_is_one_character() {
        for (pattern, path, is_match) in [
            ("**/?.png", "assets/images/ü.png", true),
            ("**/[ü].png", "assets/images/ü.png", true),
            ("**/[à-ÿ].png", "assets/images/ü.png", true),
            ("**/[!a].png", "assets/images/ü.png", true),
            ("**/[!à-ÿ].png", "assets/images/ü.png", false),
            ("**/??.png", "assets/images/ü.png", false),
            ("**/ü*.png", "assets/images/übung.png", true),
            ("**/{ü,图}.png", "assets/images/图.png", true),
        ] {
            assert_eq!(compile(pattern).unwrap().fits(path), is_match, "{pattern} {path}");
        }
    }

    #[test]
    fn what_is_no_glob_is_refused() {
        let deep = "{".repeat(DEPTH + 1);
        let many = "{a,b}".repeat(13);
        for wrong in ["[a", "[", "[]", "{a", "a}", "[b-a]", "a\\", "{a\\", deep.as_str(), many.as_str()] {
            assert!(compile(wrong).is_err(), "{wrong}");
        }
        assert!(compile(&"?".repeat(1_000)).is_ok());
    }

    proptest! {
        #[test]
        fn globs_mean_what_the_reference_says(
            pattern in proptest::collection::vec("(\\*\\*|[abü.?*]{1,4})", 1..5),
            path in proptest::collection::vec("[abü.]{1,4}", 1..5),
        ) {
            // Two stars within a part are not a part of two stars.
            let is_plain = |part: &String| part == "**" || !part.contains("**");
            let pattern: Vec<String> = pattern.into_iter().filter(is_plain).collect();
            prop_assume!(!pattern.is_empty());
            let parts: Vec<&str> = pattern.iter().map(String::as_str).collect();
            let steps: Vec<&str> = path.iter().map(String::as_str).collect();
            let glob = compile(&pattern.join("/")).unwrap();
            prop_assert_eq!(glob.fits(&path.join("/")), fits(&parts, &steps), "{:?} {:?}", pattern, path);
        }

        #[test]
        fn any_text_is_a_glob_or_an_error(glob in "\\PC{0,40}", path in "\\PC{0,20}") {
            if let Ok(glob) = compile(&glob) {
                glob.fits(&path);
            }
        }
    }
}
