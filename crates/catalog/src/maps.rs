//! Resources of the citations family: documents with a resource id, and the maps that people and models gave them.

use shelf_base::{Digest, Moment, ids::DocumentId};

use crate::{Actor, Document, Result, Scope};

/// A map that somebody gave a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenMap {
    /// 1 for the first map of the document, and so on.
    pub number: u32,
    /// The content that it was checked against.
    pub source: Digest,
    /// Who made it: `person`, `model` or `import`.
    pub origin: String,
    /// The map itself, encoded; empty when the document went back to the map that is made of it.
    pub map: Vec<u8>,
    /// When it was given.
    pub created_at: Moment,
}

/// A map to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMap {
    /// The content that it was checked against.
    pub source: Digest,
    /// Who made it.
    pub origin: String,
    /// The map itself, encoded.
    pub map: Vec<u8>,
}

/// The part of the catalog that keeps resources.
pub trait Maps {
    /// The resource ids in scope, sorted, at most `most`.
    fn resource_ids(&self, scope: &Scope, most: usize) -> Result<Vec<String>>;
    /// The document with a resource id.
    fn resource(&self, scope: &Scope, resource_id: &str) -> Result<Option<Document>>;
    /// Gives a document in scope a resource id; `false` when there is no such document, an error when the id is taken.
    fn name_resource(
        &self,
        actor: &Actor,
        scope: &Scope,
        id: DocumentId,
        resource_id: &str,
        now: Moment,
    ) -> Result<bool>;
    /// The number of the newest map of a document in scope.
    fn map_number(&self, scope: &Scope, id: DocumentId) -> Result<Option<u32>>;
    /// The newest map of a document in scope.
    fn newest_map(&self, scope: &Scope, id: DocumentId) -> Result<Option<GivenMap>>;
    /// Keeps a map beside those before it; its number, or `None` when there is no such document.
    fn set_map(
        &self,
        actor: &Actor,
        scope: &Scope,
        id: DocumentId,
        map: NewMap,
        now: Moment,
    ) -> Result<Option<u32>>;
}
