//! Changing a piece of a text document.

use shelf_base::{CallContext, Digest, bounds};

use crate::{
    Caller, Document, Error, Library, Result,
    commit::{Content, EditDraft},
};

/// A request to replace a piece of a text.
#[derive(Clone, Debug)]
pub struct EditRequest {
    /// The document: a name or its id.
    pub name: String,
    /// Only in this collection.
    pub collection: Option<String>,
    /// The exact piece to replace.
    pub old_text: String,
    /// What to put in its place.
    pub new_text: String,
    /// Replace every occurrence instead of requiring a single one.
    pub replace_all: bool,
    /// Only if the document has this content.
    pub expected: Option<String>,
}

/// What an edit did.
#[derive(Clone, Debug)]
pub struct EditReply {
    /// The document as it is now.
    pub document: Document,
    /// Its content before.
    pub previous: Digest,
    /// How often the piece was replaced.
    pub replaced: u64,
    /// Line of the first replacement, from 1.
    pub line: u64,
}

impl Library {
    /// Replaces an exact piece of a text document. The change takes effect only if nobody else has changed the document
    /// meanwhile.
    pub fn edit(&self, caller: &Caller, request: &EditRequest, call: &CallContext) -> Result<EditReply> {
        // Whether a piece of text occurs is something that is read.
        caller.must_read()?;
        caller.must_write()?;
        call.check()?;
        if request.old_text.is_empty() {
            return Err(Error::invalid("old_text", "must not be empty; use add to store a new document"));
        }
        if request.old_text == request.new_text {
            return Err(Error::invalid("new_text", "is the same as old_text; there is nothing to change"));
        }
        let expected = request.expected.as_deref().map(expected_hash).transpose()?;
        let collection = request.collection.as_deref();
        let document = self
            .one_named(caller, collection, &request.name)?
            .ok_or_else(|| self.no_document(caller, collection, &request.name))?;
        let previous = document.version.hash;
        if expected.is_some_and(|expected| expected != previous) {
            return Err(shelf_catalog::Error::ContentChanged { current: Some(previous) }.into());
        }
        let text = self.editable_text(&document, call)?;
        let (replaced, line) = occurrences(&text, request, &document.path)?;
        let changed = text.replace(&request.old_text, &request.new_text);
        must_fit(changed.len() as u64)?;
        let draft = EditDraft {
            actor: caller.pass.actor(),
            scope: caller.pass.scope(),
            id: document.id,
            expected: Some(previous),
            title: None,
            r#type: None,
            metadata: None,
            content: Some(Content::Bytes(changed.as_bytes())),
        };
        let document =
            self.commit(draft, call)?.ok_or_else(|| Error::missing("document", request.name.clone()))?;
        Ok(EditReply { document, previous, replaced, line })
    }

    fn editable_text(&self, document: &Document, call: &CallContext) -> Result<String> {
        must_fit(document.version.size)?;
        let _share = self.budget.take(document.version.size, call)?;
        let bytes = self.blobs.read_blob(call, &document.version.hash)?;
        String::from_utf8(bytes).map_err(|_| {
            Error::invalid(
                "name",
                format!("'{}' is not UTF-8 text, which alone can be edited", document.path),
            )
        })
    }
}

/// How often the piece occurs, and the line of its first occurrence.
fn occurrences(text: &str, request: &EditRequest, path: &str) -> Result<(u64, u64)> {
    let Some(first) = text.find(&request.old_text) else {
        let why =
            format!("does not occur in '{path}'; it must match exactly, spaces and line breaks included");
        return Err(Error::invalid("old_text", why));
    };
    let count = text.matches(&request.old_text).count() as u64;
    if count > 1 && !request.replace_all {
        let why =
            format!("occurs {count} times in '{path}'; give more of the text around it, or set replace_all");
        return Err(Error::invalid("old_text", why));
    }
    Ok((count, 1 + text[..first].matches('\n').count() as u64))
}

fn expected_hash(text: &str) -> Result<Digest> {
    text.to_lowercase().parse().map_err(|_| {
        Error::invalid("expected_hash", "must be the 64 hexadecimal digits that get returns as hash")
    })
}

fn must_fit(size: u64) -> Result<()> {
    let most = bounds::REQUEST_BYTES as u64;
    if size <= most {
        return Ok(());
    }
    Err(Error::TooLarge {
        what: "the document".into(),
        limit: format!("{} MiB, which can be edited", most >> 20),
    })
}
