//! Reading values out of rows.

use shelf_base::{
    Digest, Moment,
    ids::{AccountId, CollectionId, DocumentId},
};

use super::{AsValue, Connection, OwnedValue, Row, Rows, Value};
use crate::{Chunk, Document, Error, Position, Result, Scope, Version};

/// The columns of [`document`], in its order. `d` is the document, `c` its collection, `b` its blob.
pub(super) const DOCUMENT: &str = "d.id, d.uuid, c.uuid, c.name, d.path, d.title, d.resource_id, d.extension, d.mime, \
     d.is_text, d.version, b.hash, d.size, d.modified_at, d.indexed_at, d.mode, d.created_at, d.tags, d.metadata, d.document_type, \
     d.account_number";
/// How many columns those are.
pub(super) const DOCUMENT_COLUMNS: usize = 21;

/// Rows that a list gives at once.
pub(super) const CHUNK: usize = 4_096;

/// A chunk of rows, each with its own place in the list, of a query for at most so many.
pub(super) fn chunk<T>(rows: Vec<(Position, T)>, most: usize) -> Chunk<T> {
    let is_end = rows.len() < most;
    let next = rows.last().map(|(position, _)| position.clone()).filter(|_| !is_end);
    Chunk { items: rows.into_iter().map(|(_, item)| item).collect(), next }
}

/// The tables of a query over live documents.
pub(super) const FROM: &str =
    "documents d JOIN collections c ON c.id = d.collection JOIN blobs b ON b.id = d.blob";

pub(super) fn document(row: &Row<'_>) -> Result<Document> {
    // One broken value must not hide the document, nor the others of a list.
    let mut damaged = Vec::new();
    let tags = json(row, 17).unwrap_or_else(|| noted(&mut damaged, "tags"));
    let metadata = json(row, 18).unwrap_or_else(|| noted(&mut damaged, "metadata"));
    Ok(Document {
        number: row.get(0)?,
        account_number: row.get(20)?,
        id: document_id(row, 1)?,
        collection: collection_id(row, 2)?,
        collection_name: row.get(3)?,
        path: row.get(4)?,
        title: row.get(5)?,
        resource_id: row.get(6)?,
        extension: row.get(7)?,
        mime: row.get(8)?,
        is_text: row.get(9)?,
        version: version_at(row, 10)?,
        created_at: moment(row, 16)?,
        tags,
        metadata,
        document_type: row.get(19)?,
        damaged,
    })
}

/// A version from six columns: number, hash, size, modified, indexed, mode.
pub(super) fn version_at(row: &Row<'_>, at: usize) -> Result<Version> {
    Ok(Version {
        number: row.get(at)?,
        hash: digest(row, at + 1)?,
        size: row.get(at + 2)?,
        modified_at: Moment::from_nanos(row.get(at + 3)?),
        indexed_at: moment(row, at + 4)?,
        mode: row.get(at + 5)?,
    })
}

pub(super) fn digest(row: &Row<'_>, at: usize) -> Result<Digest> {
    Digest::from_slice(row.cell(at)?.blob()).ok_or(Error::Unreadable("a hash"))
}

pub(super) fn optional_digest(row: &Row<'_>, at: usize) -> Result<Option<Digest>> {
    let bytes: Option<Vec<u8>> = row.get(at)?;
    bytes.map(|bytes| Digest::from_slice(&bytes).ok_or(Error::Unreadable("a hash"))).transpose()
}

pub(super) fn document_id(row: &Row<'_>, at: usize) -> Result<DocumentId> {
    DocumentId::from_slice(row.cell(at)?.blob()).ok_or(Error::Unreadable("a document id"))
}

pub(super) fn collection_id(row: &Row<'_>, at: usize) -> Result<CollectionId> {
    CollectionId::from_slice(row.cell(at)?.blob()).ok_or(Error::Unreadable("a collection id"))
}

pub(super) fn account_id(row: &Row<'_>, at: usize) -> Result<AccountId> {
    AccountId::from_slice(row.cell(at)?.blob()).ok_or(Error::Unreadable("an account id"))
}

pub(super) fn moment(row: &Row<'_>, at: usize) -> Result<Moment> {
    Ok(Moment::from_micros(row.get(at)?))
}

pub(super) fn optional_moment(row: &Row<'_>, at: usize) -> Result<Option<Moment>> {
    Ok(row.get::<Option<i64>>(at)?.map(Moment::from_micros))
}

fn json<T: serde::de::DeserializeOwned>(row: &Row<'_>, at: usize) -> Option<T> {
    serde_json::from_str(row.cell(at).ok()?.text()?).ok()
}

fn noted<T: Default>(damaged: &mut Vec<&'static str>, what: &'static str) -> T {
    damaged.push(what);
    T::default()
}

/// Collects rows with a function that gives this crate's errors.
pub(crate) fn collect<T>(mut rows: Rows<'_>, read: impl Fn(&Row<'_>) -> Result<T>) -> Result<Vec<T>> {
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(&row)?);
    }
    Ok(found)
}

/// Conditions and their parameters, joined by `AND`.
#[derive(Default)]
pub(super) struct Conditions {
    text: Vec<String>,
    values: Vec<OwnedValue>,
}

impl Conditions {
    /// Live documents in scope, in one collection when it is named: every query over documents starts here. The scope's
    /// collections are looked up first, so that the query itself walks the index by path.
    pub(super) fn live(connection: Connection<'_>, scope: &Scope, name: Option<&str>) -> Result<Self> {
        let mut conditions = Self::of_collections(connection, "d.collection", scope, name)?;
        conditions.text.push("d.deleted_at IS NULL".into());
        Ok(conditions)
    }

    /// Rows whose `column` is one of the collections in scope, or the one of that name.
    pub(super) fn of_collections(
        connection: Connection<'_>,
        column: &str,
        scope: &Scope,
        name: Option<&str>,
    ) -> Result<Self> {
        let mut places = Self::in_scope(scope);
        if let Some(name) = name {
            places.add("c.name = ?", name.to_owned());
        }
        let sql = format!("SELECT c.id FROM collections c WHERE {}", places.sql());
        let mut query = connection.prepare_cached(&sql)?;
        let ids: Vec<i64> = collect(query.query(&places.parameters())?, |row| row.get(0))?;
        let place = match ids[..] {
            [] => "1 = 0".to_owned(),
            [only] => format!("{column} = {only}"),
            _ => {
                format!("{column} IN ({})", ids.iter().map(i64::to_string).collect::<Vec<_>>().join(", "))
            }
        };
        Ok(Self { text: vec![place], values: Vec::new() })
    }

    /// The same conditions for a query that begins with numbers: the plus keeps it from walking the paths instead.
    pub(super) fn without_index(mut self) -> Self {
        if let Some(place) = self.text.first_mut() {
            place.insert(0, '+');
        }
        self
    }

    /// Only the scope, over the collection `c`.
    pub(super) fn in_scope(scope: &Scope) -> Self {
        let mut conditions = Self { text: vec!["c.deleted_at IS NULL".into()], values: Vec::new() };
        match scope {
            Scope::Account(id) => {
                conditions
                    .add("c.account = (SELECT id FROM accounts WHERE uuid = ?)", id.as_bytes().to_vec());
            }
            Scope::Collection(id) => conditions.add("c.uuid = ?", id.as_bytes().to_vec()),
            Scope::Library => {}
        }
        conditions
    }

    pub(super) fn add(&mut self, condition: &str, value: impl Into<OwnedValue>) {
        self.text.push(condition.into());
        self.values.push(value.into());
    }

    pub(super) fn add_many(
        &mut self,
        condition: String,
        values: impl IntoIterator<Item = impl Into<OwnedValue>>,
    ) {
        self.text.push(condition);
        self.values.extend(values.into_iter().map(Into::into));
    }

    pub(super) fn sql(&self) -> String {
        self.text.join(" AND ")
    }

    pub(super) fn parameters(&self) -> Vec<Value<'_>> {
        self.values.iter().map(AsValue::as_value).collect()
    }
}
