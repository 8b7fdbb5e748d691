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
            let before = &line[..colon];
            let scheme = Modality::ALL.into_iter().find(|modality| {
                let start = before.strip_suffix(modality.scheme());
                start.is_some_and(|start| {
                    !start.ends_with(|each: char| each.is_alphanumeric() || "+-.".contains(each))
                })
            });
            from = colon + 3;
            let Some(scheme) = scheme else { continue };
            let start = colon - scheme.scheme().len();
            let rest = &line[from..];
            let end = rest.find(|each: char| each.is_whitespace() || "()[]{}<>\"'`|\\".contains(each));
            let rest =
                rest[..end.unwrap_or(rest.len())].trim_end_matches(['.', ',', ';', ':', '!', '?', '*']);
            from += rest.len();
            if !rest.is_empty() {
                found.push(Citation { line: number, address: line[start..from].to_owned() });
            }
        }
    }
    found
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
            ]
        );
    }
}
