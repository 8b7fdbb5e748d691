//! Citation addresses in any text: `doc://textbook#pages=12-15`.

use std::collections::HashSet;

use memchr::memmem;
use shelf_base::address::{Address, Modality};

use crate::facts::{Facts, LONGEST_NAME, LineCounter, Link, LinkKind, MOST_FACTS, beginning};

/// Adds the addresses in a text to its links. What a link already leads to is not repeated.
pub(crate) fn citations(text: &str, facts: &mut Facts) {
    let mut known = HashSet::new();
    for link in &mut facts.links {
        if is_address(&link.target) {
            link.kind = LinkKind::Citation;
            known.insert((link.line, link.target.clone()));
        }
    }
    let (mut lines, bytes) = (LineCounter::new(text), text.as_bytes());
    for at in memmem::find_iter(bytes, b"://") {
        let Some(start) = scheme_start(bytes, at) else { continue };
        let rest = beginning(&text[start..], LONGEST_NAME);
        let Some(address) = address_at(rest) else { continue };
        let line = lines.line(start);
        if !known.insert((line, address.to_owned())) {
            continue;
        }
        if facts.links.len() >= MOST_FACTS {
            facts.is_cut = true;
            return;
        }
        facts.links.push(Link {
            kind: LinkKind::Citation,
            target: address.to_owned(),
            text: String::new(),
            title: String::new(),
            line,
        });
    }
}

fn is_address(target: &str) -> bool {
    let at = target.find("://");
    at.is_some_and(|at| scheme_start(target.as_bytes(), at) == Some(0)) && target.parse::<Address>().is_ok()
}

/// Where the scheme before `://` begins, if it is one of ours.
fn scheme_start(bytes: &[u8], at: usize) -> Option<usize> {
    Modality::ALL.into_iter().find_map(|modality| {
        let scheme = modality.scheme().as_bytes();
        let start = at.checked_sub(scheme.len())?;
        let is_scheme = bytes[start..at].eq_ignore_ascii_case(scheme);
        let is_whole = start == 0 || !bytes[start - 1].is_ascii_alphanumeric();
        (is_scheme && is_whole).then_some(start)
    })
}

/// The longest address at the beginning of a text. A full stop or bracket after it belongs to the sentence.
fn address_at(rest: &str) -> Option<&str> {
    let ends = |letter: char| letter.is_whitespace() || "<>\"'`|\\^{}".contains(letter);
    let mut found = &rest[..rest.find(ends).unwrap_or(rest.len())];
    for _ in 0..8 {
        if found.parse::<Address>().is_ok()
            && !found.ends_with(['.', ',', ';', ':', '!', '?', ')', ']', '*', '_'])
        {
            return Some(found);
        }
        let last = found.chars().next_back()?;
        found = &found[..found.len() - last.len_utf8()];
    }
    None
}
