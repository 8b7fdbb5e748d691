//! Finding citation addresses in a text, and telling whether they hold.

use shelf_base::{CallContext, address::Modality};

use super::{Answer, CitationError, ResolveRequest};
use crate::{Caller, Library};

/// An address in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Citation {
    /// The line it stands on, from 1.
    pub line: u32,
    /// The address as it is written.
    pub address: String,
}

/// Whether an address holds.
#[derive(Clone, Debug)]
pub struct CitationReport {
    /// The address.
    pub citation: Citation,
    /// Why it does not; `None` when it does.
    pub problem: Option<String>,
    /// Whether what it cites has changed since its map was made.
    pub source_changed: bool,
}

/// Every address in a text, in order.
pub fn addresses_in(text: &str) -> Vec<Citation> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let mut from = 0;
        while let Some(at) = line[from..].find("://") {
            let colon = from + at;
            from = colon + 3;
            let Some(start) = scheme_before(&line[..colon]) else { continue };
            let is_virtual = line[start..colon].eq_ignore_ascii_case(Modality::Virtual.scheme());
            let rest = address_end(&line[from..], is_virtual);
            from += rest.len();
            if !rest.is_empty() {
                found.push(Citation { line: number, address: line[start..from].to_owned() });
            }
        }
    }
    found
}

/// Where the scheme of an address begins that a text ends with, in upper or lower case. Other schemes may end like it;
/// letters that no scheme has may stand before it.
fn scheme_before(text: &str) -> Option<usize> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    let length = text.bytes().rev().take_while(is_part).count();
    let scheme = &text[text.len() - length..];
    let is_known = Modality::ALL.into_iter().any(|modality| scheme.eq_ignore_ascii_case(modality.scheme()));
    is_known.then_some(text.len() - length)
}

/// The address that a text goes on with. It ends where another script or a typographic mark begins; only ids of nodes, to
/// which virtual addresses lead, have letters of every script. Punctuation at its end belongs to the sentence.
fn address_end(text: &str, is_virtual: bool) -> &str {
    let is_part = |each: char| match each.is_ascii() {
        true => each.is_ascii_graphic() && !"()[]{}<>\"'`|\\".contains(each),
        false => is_virtual && each.is_alphanumeric(),
    };
    let end = text.find(|each| !is_part(each)).unwrap_or(text.len());
    text[..end].trim_end_matches(['.', ',', ';', ':', '!', '?', '*'])
}

impl Library {
    /// Verifies every citation address in a text against the library.
    pub fn check_citations(
        &self,
        caller: &Caller,
        text: &str,
        call: &CallContext,
    ) -> Answer<Vec<CitationReport>> {
        caller.must_read()?;
        let mut reports = Vec::new();
        for citation in addresses_in(text) {
            call.check()?;
            let request = ResolveRequest {
                address: Some(citation.address.clone()),
                is_virtual: true,
                ..ResolveRequest::default()
            };
            let (problem, source_changed) = match self.resolve(caller, &request, call) {
                Ok(resolved) => (None, resolved.source_changed),
                Err(CitationError::Engine(error)) => return Err(error.into()),
                Err(error) => (Some(error.to_string()), false),
            };
            reports.push(CitationReport { citation, problem, source_changed });
        }
        Ok(reports)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_in_prose() {
        let text = "See [the book](doc://book#pages=12-15), `text://n#lines=3`.\nhttps://x.y and mydoc://no\n\
                    video://v#t=1-2; **image://i#bbox=0,0,1,1**, doc:// nothing\nDOC://x";
        let found: Vec<String> =
            addresses_in(text).into_iter().map(|found| format!("{} {}", found.line, found.address)).collect();
        assert_eq!(
            found,
            [
                "1 doc://book#pages=12-15",
                "1 text://n#lines=3",
                "3 video://v#t=1-2",
                "3 image://i#bbox=0,0,1,1",
                "4 DOC://x",
            ]
        );
    }

    #[test]
    fn addresses_end_where_other_marks_begin() {
        let text = "“text://n#lines=1” and ‘Text://n#lines=2’… 参见text://n#lines=3。doc://b#pages=4—5; x-text://no http+doc://no “virtual://n#введение.имя”";
        let found: Vec<String> = addresses_in(text).into_iter().map(|found| found.address).collect();
        assert_eq!(
            found,
            [
                "text://n#lines=1",
                "Text://n#lines=2",
                "text://n#lines=3",
                "doc://b#pages=4",
                "virtual://n#введение.имя"
            ]
        );
    }
}
