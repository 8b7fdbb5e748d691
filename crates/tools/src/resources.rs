//! Resources: documents, collections and snapshots by URI, for clients that read resources rather than call tools.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::json;
use shelf_base::{
    CallContext, ErrorInfo, Kind,
    ids::{CollectionId, DocumentId},
};
use shelf_engine::{
    Caller, Changes, CitationError, Document, Error, Filter, GetRequest, Library, ListRequest, Order, SortBy,
    Window,
};

use crate::policy::{self, Selection, Verdict};

const DOCUMENTS: &str = "shelf://documents/";
const COLLECTIONS: &str = "shelf://collections/";
const SNAPSHOTS: &str = "shelf://snapshots/";
const EVIDENCE: &str = "shelf://evidence/";

/// URI template of a document.
pub const DOCUMENT_TEMPLATE: &str = "shelf://documents/{document_id}";
/// URI template of a collection.
pub const COLLECTION_TEMPLATE: &str = "shelf://collections/{collection_id}";
/// URI template of a snapshot.
pub const SNAPSHOT_TEMPLATE: &str = "shelf://snapshots/{snapshot_id}";
/// URI template of evidence: a citation address, percent-encoded.
pub const EVIDENCE_TEMPLATE: &str = "shelf://evidence/{address}";
/// Resources on one page.
const PAGE: usize = 100;
/// Documents that the resource of a collection names.
const DOCUMENTS_NAMED: usize = 500;
/// Most values in one completion.
pub(crate) const COMPLETIONS: usize = 100;
/// Number of newest snapshots considered for a completion.
const COMPLETED_FROM: usize = 1_000;

/// A resource in a list.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Its URI.
    pub uri: String,
    /// Its name: the path.
    pub name: String,
    /// Its title.
    pub title: String,
    /// MIME type.
    pub mime: String,
    /// Size in bytes.
    pub size: u64,
}

/// The content of a resource.
#[derive(Clone, Debug)]
pub struct Read {
    /// MIME type.
    pub mime: String,
    /// Text, or base64.
    pub content: String,
    /// Whether `content` is base64.
    pub is_base64: bool,
}

/// Whether the caller may read resources: the policy is that of the tools that read the same data.
pub fn allowed(caller: &Caller, selection: &Selection) -> bool {
    may_call(caller, selection, "get") || may_call(caller, selection, "get_document_tool")
}

/// Whether the caller may read this resource, or those of this template: each kind gives what some tools give, to those
/// who may call one of them.
pub fn may_read(caller: &Caller, selection: &Selection, uri: &str) -> bool {
    let begins = |start| uri.starts_with(start);
    let may_call_one = |names: &[&str]| names.iter().any(|name| may_call(caller, selection, name));
    allowed(caller, selection)
        && (begins(DOCUMENTS)
            || begins(COLLECTIONS) && may_call_one(&["list", "list_documents_tool"])
            || begins(SNAPSHOTS) && may_call_one(&["list_snapshots"])
            || begins(EVIDENCE) && may_call_one(&["resolve"]))
}

fn may_call(caller: &Caller, selection: &Selection, name: &str) -> bool {
    crate::find(name).is_some_and(|tool| policy::verdict(&caller.pass, selection, tool) == Verdict::Allowed)
}

/// A page of the caller's documents.
pub fn list(
    library: &Library,
    caller: &Caller,
    cursor: Option<String>,
    call: &CallContext,
) -> Result<(Vec<Listed>, Option<String>), Error> {
    let request = ListRequest {
        limit: PAGE,
        cursor,
        sort: SortBy::Name,
        order: Order::Ascending,
        ..ListRequest::default()
    };
    let page = library.list(caller, &request, call)?;
    let next = match page.documents.last() {
        Some(last) if page.more => Some(library.cursor_after(caller, &request, last)?),
        _ => None,
    };
    Ok((page.documents.iter().map(listed).collect(), next))
}

fn listed(document: &Document) -> Listed {
    Listed {
        uri: format!("{DOCUMENTS}{}", document.id),
        name: document.path.clone(),
        title: document.title.clone(),
        mime: document.mime.clone(),
        size: document.version.size,
    }
}

/// Reads a resource; `None` when the caller has no such resource.
pub fn read(
    library: &Library,
    caller: &Caller,
    selection: &Selection,
    uri: &str,
    call: &CallContext,
) -> Result<Option<Read>, Error> {
    if !may_read(caller, selection, uri) {
        return Ok(None);
    }
    if let Some(id) = uri.strip_prefix(DOCUMENTS) {
        return read_document(library, caller, id, call);
    }
    if let Some(id) = uri.strip_prefix(COLLECTIONS) {
        let counts_snapshots = may_read(caller, selection, SNAPSHOTS);
        return read_collection(library, caller, id, counts_snapshots, call);
    }
    if let Some(address) = uri.strip_prefix(EVIDENCE) {
        return read_evidence(library, caller, address, call);
    }
    match uri.strip_prefix(SNAPSHOTS) {
        Some(id) => read_snapshot(library, caller, id, call),
        None => Ok(None),
    }
}

fn read_document(
    library: &Library,
    caller: &Caller,
    id: &str,
    call: &CallContext,
) -> Result<Option<Read>, Error> {
    let Ok(id) = id.parse::<DocumentId>() else { return Ok(None) };
    let Some(document) = library.document(caller, id)? else { return Ok(None) };
    let request = GetRequest {
        name: Some(document.path.clone()),
        collection: Some(document.collection_name.clone()),
        include_content: true,
        window: Window::default(),
        ..GetRequest::default()
    };
    let got = library.get(caller, &request, call)?;
    if got.as_ref().and_then(|got| got.content.as_ref()).is_some_and(|content| content.truncated) {
        return Err(Error::TooLarge {
            what: "the document".into(),
            limit: "one reply: use the tool get with offset and length".into(),
        });
    }
    Ok(got.and_then(|got| got.content).map(|content| Read {
        mime: document.mime,
        is_base64: content.encoding == "base64",
        content: content.text,
    }))
}

fn read_collection(
    library: &Library,
    caller: &Caller,
    id: &str,
    counts_snapshots: bool,
    call: &CallContext,
) -> Result<Option<Read>, Error> {
    let Ok(id) = id.parse::<CollectionId>() else { return Ok(None) };
    let Some(found) = library.collection(caller, id)? else { return Ok(None) };
    let collection = found.collection;
    let request = ListRequest {
        filter: Filter { collection: Some(collection.name.clone()), ..Filter::default() },
        limit: DOCUMENTS_NAMED,
        ..ListRequest::default()
    };
    let page = library.list(caller, &request, call)?;
    let documents: Vec<_> = page
        .documents
        .iter()
        .map(|document| json!({ "uri": format!("{DOCUMENTS}{}", document.id), "path": document.path }))
        .collect();
    let mut content = json!({
        "collection_id": collection.id.to_string(),
        "name": collection.name,
        "kind": collection.kind.word(),
        "created_at": collection.created_at.to_string(),
        "updated_at": found.updated_at.map(|at| at.to_string()),
        "document_count": found.documents,
        "bytes": found.bytes,
        "documents": documents,
        "truncated": page.more,
    });
    if counts_snapshots {
        content["snapshot_count"] = found.snapshots.into();
    }
    Ok(Some(Read { mime: "application/json".into(), content: content.to_string(), is_base64: false }))
}

/// What a client may subscribe to: the resources that change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A document.
    Document(DocumentId),
    /// A collection, with the documents in it.
    Collection(CollectionId),
}

impl Subject {
    /// The subject of a URI, whether or not it exists; `None` for resources that never change and for other URIs.
    pub fn of(uri: &str) -> Option<Self> {
        if let Some(id) = uri.strip_prefix(DOCUMENTS) {
            return id.parse().ok().map(Self::Document);
        }
        uri.strip_prefix(COLLECTIONS)?.parse().ok().map(Self::Collection)
    }

    /// Whether the caller can read it now.
    pub fn is_visible(
        self,
        library: &Library,
        caller: &Caller,
        selection: &Selection,
    ) -> Result<bool, Error> {
        Ok(match self {
            Self::Document(id) => {
                may_read(caller, selection, DOCUMENTS) && library.document(caller, id)?.is_some()
            }
            Self::Collection(id) => {
                may_read(caller, selection, COLLECTIONS) && library.collection(caller, id)?.is_some()
            }
        })
    }

    /// Whether it is among what changed.
    pub fn is_in(self, changes: &Changes) -> bool {
        changes.is_everything
            || match self {
                Self::Document(id) => changes.documents.contains(&id),
                Self::Collection(id) => changes.collections.contains(&id),
            }
    }
}

/// The URI of the evidence at an address.
pub(crate) fn evidence_uri(address: &str) -> String {
    let mut uri = String::from(EVIDENCE);
    for byte in address.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}

/// Undoes percent signs; `None` when they are wrong.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first == b'%' {
            let digits = str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

fn read_evidence(
    library: &Library,
    caller: &Caller,
    address: &str,
    call: &CallContext,
) -> Result<Option<Read>, Error> {
    let Some(address) = decoded(address) else { return Ok(None) };
    let (mime, bytes) = match library.evidence(caller, &address, call) {
        Ok(found) => found,
        Err(CitationError::Engine(error)) => return Err(error),
        Err(error) if error.kind() == Kind::NotFound => return Ok(None),
        Err(error) => return Err(Error::invalid("address", error.to_string())),
    };
    let is_text = mime.starts_with("text/");
    Ok(Some(match String::from_utf8(bytes) {
        Ok(content) if is_text => Read { mime, content, is_base64: false },
        Ok(content) => Read { mime, content: STANDARD.encode(content), is_base64: true },
        Err(error) => Read { mime, content: STANDARD.encode(error.into_bytes()), is_base64: true },
    }))
}

fn read_snapshot(
    library: &Library,
    caller: &Caller,
    id: &str,
    call: &CallContext,
) -> Result<Option<Read>, Error> {
    let Some(snapshot) = library.snapshot(caller, id)? else { return Ok(None) };
    let listing = library.listing(&snapshot, call)?;
    let links: Vec<_> = listing
        .entries
        .iter()
        .filter_map(|entry| Some(json!({ "path": entry.path, "target": entry.link.as_ref()? })))
        .collect();
    let files: Vec<_> = listing
        .files()
        .map(|entry| json!({ "path": entry.path, "hash": entry.hash, "size": entry.size, "modified_at": entry.modified_at }))
        .collect();
    let content = json!({
        "snapshot_id": id,
        "label": snapshot.draft.label,
        "collection": snapshot.collection_name,
        "root": snapshot.draft.root,
        "hash": snapshot.draft.merkle,
        "files": files,
        "links": links,
    });
    Ok(Some(Read { mime: "application/json".into(), content: content.to_string(), is_base64: false }))
}

/// Completions for the argument of a template: ids that start with the text, and ids of documents whose path contains
/// it. For a template that the caller may not read there are none.
pub fn complete(
    library: &Library,
    caller: &Caller,
    selection: &Selection,
    template: &str,
    argument: &str,
    text: &str,
) -> Result<(Vec<String>, Option<u64>), Error> {
    let mut complete = true;
    let values: Vec<String> = match (template, argument) {
        _ if !may_read(caller, selection, template) => Vec::new(),
        (SNAPSHOT_TEMPLATE, "snapshot_id") => {
            let newest = library.snapshots_after(caller, None, None, COMPLETED_FROM)?;
            complete = newest.len() < COMPLETED_FROM;
            let ids = newest.into_iter().map(|snapshot| snapshot.at.with_micros());
            ids.filter(|id| id.starts_with(text)).collect()
        }
        (DOCUMENT_TEMPLATE, "document_id") => {
            let (found, is_all) = documents_like(library, caller, text)?;
            complete = is_all;
            found.into_iter().map(|document| document.id.to_string()).collect()
        }
        (COLLECTION_TEMPLATE, "collection_id") => {
            let named = |name: &str, id: &str| id.starts_with(text) || name.contains(text);
            let all = library.collections(caller)?.into_iter().map(|found| found.collection);
            let known = all.map(|collection| (collection.name, collection.id.to_string()));
            known.filter(|(name, id)| named(name, id)).map(|(_, id)| id).collect()
        }
        _ => Vec::new(),
    };
    let total = complete.then_some(values.len() as u64);
    Ok((values.into_iter().take(COMPLETIONS).collect(), total))
}

/// Documents whose id starts with the text or whose path contains it, among the first ten thousand; and whether there
/// are no more than those.
pub(crate) fn documents_like(
    library: &Library,
    caller: &Caller,
    text: &str,
) -> Result<(Vec<Document>, bool), Error> {
    let request = ListRequest { filter: Filter::default(), limit: 10_000, ..ListRequest::default() };
    let page = library.list(caller, &request, &CallContext::new())?;
    let mut documents = page.documents;
    documents.retain(|document| document.id.to_string().starts_with(text) || document.path.contains(text));
    Ok((documents, !page.more))
}
