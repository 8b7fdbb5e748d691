//! Finding documents: by id, by name, by hash, by filter.

use std::collections::VecDeque;

use parking_lot::Mutex;
use serde_json::Value;
use shelf_base::{
    Moment,
    ids::{CollectionId, DocumentId},
};

use super::{
    Connection, OwnedValue, params, read,
    rows::{
        CHUNK, Conditions, DOCUMENT, DOCUMENT_COLUMNS, FROM, chunk, collect, collection_id, digest, document,
        document_id, moment, version_at,
    },
};
use crate::{
    Changed, Changes, Chosen, Chunk, Document, Error, Filter, Listed, Order, Page, Position, Result, Scope,
    SortBy, Source, Version,
};

/// So many documents are looked up one by one; more are faster found by walking the paths.
const FEW_NUMBERS: usize = 8_192;

fn query(connection: Connection<'_>, conditions: &Conditions, tail: &str) -> Result<Vec<Document>> {
    let sql = format!("SELECT {DOCUMENT} FROM {FROM} WHERE {} {tail}", conditions.sql());
    let mut query = connection.prepare_cached(&sql)?;
    collect(query.query(&conditions.parameters())?, document)
}

pub(super) fn by_id(connection: Connection<'_>, scope: &Scope, id: DocumentId) -> Result<Option<Document>> {
    let mut conditions = Conditions::live(connection, scope, None)?;
    conditions.add("d.uuid = ?", id.as_bytes().to_vec());
    Ok(query(connection, &conditions, "")?.into_iter().next())
}

pub(super) fn by_resource(
    connection: Connection<'_>,
    scope: &Scope,
    resource_id: &str,
) -> Result<Option<Document>> {
    // The index on resource ids finds it at once; that on paths would walk through all documents.
    let mut conditions = Conditions::live(connection, scope, None)?.without_index();
    conditions.add("d.resource_id = ?", resource_id.to_owned());
    Ok(query(connection, &conditions, "LIMIT 1")?.into_iter().next())
}

pub(super) fn named(
    connection: Connection<'_>,
    scope: &Scope,
    collection: Option<&str>,
    name: &str,
    most: usize,
) -> Result<Vec<Document>> {
    let tail = format!("ORDER BY d.path, d.id LIMIT {most}");
    let live = || Conditions::live(connection, scope, collection);
    let mut whole = live()?;
    whole.add("d.path = ?", name.to_owned());
    let found = query(connection, &whole, &tail)?;
    if !found.is_empty() {
        return Ok(found);
    }
    if let Some((book, path)) = name.strip_prefix("books/").and_then(|rest| rest.split_once('/')) {
        let mut in_book = live()?;
        in_book.add("d.path = ?", path.to_owned());
        in_book.add("c.kind = 'book' AND c.name = ?", book.to_owned());
        let found = query(connection, &in_book, &tail)?;
        if !found.is_empty() {
            return Ok(found);
        }
    }
    let found = ending(connection, live, name, most)?;
    if !found.is_empty() {
        return Ok(found);
    }
    // Titles that are file names have been looked for above.
    let mut title = live()?.without_index();
    let is_title = connection.pick("d.title = ?", "d.title <> FILE_NAME AND d.title = ?");
    title.add(&is_title.replace("FILE_NAME", FILE_NAME), name.to_owned());
    query(connection, &title, &tail)
}

/// The documents whose path ends with `name`, in the order of their paths. In SQLite most are found by their title, which is the
/// last part of their path.
fn ending(
    connection: Connection<'_>,
    live: impl Fn() -> Result<Conditions>,
    name: &str,
    most: usize,
) -> Result<Vec<Document>> {
    let end = format!("/{}", name.trim_start_matches('/'));
    let last_part = end.rsplit('/').next().unwrap_or_default();
    let named = [format!("{FILE_NAME} = ?")];
    let titled_or_not = ["d.title = ?".to_owned(), format!("{IS_NAMED_OTHERWISE} AND {FILE_NAME} = ?")];
    let mut found = Vec::new();
    for way in connection.pick(&titled_or_not[..], &named[..]) {
        let mut conditions = live()?.without_index();
        conditions.add(way, last_part.to_owned());
        // SUBSTR counts characters, so the length does too.
        conditions.add_many(
            connection.pick("SUBSTR(d.path, -?) = ?", "RIGHT(d.path, ?) = ?").into(),
            [OwnedValue::Integer(end.chars().count() as i64), OwnedValue::Text(end.clone())],
        );
        found.append(&mut query(connection, &conditions, &format!("ORDER BY d.path, d.id LIMIT {most}"))?);
    }
    found.sort_by(|one, other| (&one.path, one.number).cmp(&(&other.path, other.number)));
    found.truncate(most);
    Ok(found)
}

/// The last part of a path, exactly as the indexes over it spell it.
const FILE_NAME: &str = "replace(d.path, rtrim(d.path, replace(d.path, '/', '')), '')";
/// Whether that is not the title, exactly as the index of SQLite spells it.
const IS_NAMED_OTHERWISE: &str =
    "(instr(d.title, '/') > 0 OR substr('/' || d.path, -length(d.title) - 1) <> '/' || d.title)";

pub(super) fn hashed(
    connection: Connection<'_>,
    scope: &Scope,
    prefix: &str,
    most: usize,
) -> Result<Vec<(Document, Version)>> {
    let Some((low, high)) = bounds(prefix) else { return Ok(Vec::new()) };
    let mut conditions = Conditions::live(connection, scope, None)?;
    // A planner that does not see the values takes a range for many rows.
    if low == high {
        conditions.add("vb.hash = ?", low);
    } else {
        conditions.add_many("vb.hash BETWEEN ? AND ?".into(), [low, high]);
    }
    let sql = format!(
        "SELECT {DOCUMENT}, v.number, vb.hash, vb.size, v.modified_at, v.indexed_at, v.mode
         FROM blobs vb CROSS JOIN versions v ON v.blob = vb.id CROSS JOIN documents d ON d.id = v.document
              JOIN collections c ON c.id = d.collection JOIN blobs b ON b.id = d.blob
         WHERE {} AND v.number = (SELECT MAX(o.number) FROM versions o WHERE o.document = d.id AND o.blob = vb.id)
         ORDER BY (b.id = vb.id) DESC, d.path, d.id LIMIT {most}",
        conditions.sql()
    );
    let mut query = connection.prepare_cached(&sql)?;
    collect(query.query(&conditions.parameters())?, |row| {
        Ok((document(row)?, version_at(row, DOCUMENT_COLUMNS)?))
    })
}

/// The smallest and largest hash that begin with the hexadecimal `prefix`.
fn bounds(prefix: &str) -> Option<(Vec<u8>, Vec<u8>)> {
    if prefix.len() > 64 || !prefix.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let low = shelf_base::hex::decode(&format!("{prefix:0<64}"))?;
    let high = shelf_base::hex::decode(&format!("{prefix:f<64}"))?;
    Some((low, high))
}

/// The conditions of a filter, `recent` aside.
pub(super) fn filtered(connection: Connection<'_>, scope: &Scope, filter: &Filter) -> Result<Conditions> {
    let mut conditions = Conditions::live(connection, scope, filter.collection.as_deref())?;
    if let Some(title) = &filter.title {
        conditions.add("d.title = ?", title.clone());
    }
    if let Some(mime) = &filter.mime {
        add_mimes(connection, &mut conditions, std::slice::from_ref(mime));
    }
    add_mimes(connection, &mut conditions, &filter.mime_any);
    if !filter.extensions.is_empty() {
        conditions.add_many(
            format!("d.extension IN ({})", marks(filter.extensions.len())),
            filter.extensions.clone(),
        );
    }
    if let Some(is_text) = filter.is_text {
        conditions.add("d.is_text = ?", is_text);
    }
    add_tags(&mut conditions, filter);
    let times = [
        ("d.created_at", filter.created, Moment::micros as fn(Moment) -> i64),
        ("d.modified_at", filter.modified, Moment::nanos),
        ("d.indexed_at", filter.indexed, Moment::micros),
    ];
    for (column, (after, before), unit) in times {
        if let Some(after) = after {
            conditions.add(&format!("{column} >= ?"), unit(after));
        }
        if let Some(before) = before {
            conditions.add(&format!("{column} < ?"), unit(before));
        }
    }
    if let Some(numbers) = &filter.numbers {
        conditions.add(&connection.among("d.id"), numbers.clone());
    }
    Ok(conditions)
}

fn add_mimes(connection: Connection<'_>, conditions: &mut Conditions, mimes: &[String]) {
    if mimes.is_empty() {
        return;
    }
    // `image/*` and `image/` mean every image type; anything else is a whole type.
    let family = |mime: &str| mime.strip_suffix('*').unwrap_or(mime).strip_suffix('/').map(str::to_owned);
    // Whatever the case, which is what LIKE of SQLite means.
    let like = connection.pick("d.mime LIKE ? || '/%'", "d.mime ILIKE ? || '/%'");
    let parts: Vec<&str> =
        mimes.iter().map(|mime| if family(mime).is_some() { like } else { "d.mime = ?" }).collect();
    let values: Vec<String> = mimes.iter().map(|mime| family(mime).unwrap_or_else(|| mime.clone())).collect();
    conditions.add_many(format!("({})", parts.join(" OR ")), values);
}

fn add_tags(conditions: &mut Conditions, filter: &Filter) {
    let tags = &filter.tags;
    if tags.is_empty() {
        return;
    }
    let needed = if filter.match_all_tags { tags.len() } else { 1 };
    conditions.add_many(
        format!(
            "(SELECT COUNT(*) FROM tags t WHERE t.document = d.id AND t.tag IN ({})) >= {needed}",
            marks(tags.len())
        ),
        tags.clone(),
    );
}

fn marks(count: usize) -> String {
    vec!["?"; count].join(", ")
}

pub(super) const fn column(sort: SortBy) -> &'static str {
    match sort {
        SortBy::Name => "d.path",
        SortBy::Size => "d.size",
        SortBy::Created => "d.created_at",
        SortBy::Modified => "d.modified_at",
        SortBy::Indexed => "d.indexed_at",
    }
}

/// How many documents filters took, at a journal record. Counting all documents of a large library takes longer than
/// reading a page of them, and the count changes only with the journal.
#[derive(Default)]
pub(crate) struct Counts(Mutex<VecDeque<(u64, String, u64)>>);

/// Filters whose counts are kept.
const COUNTS: usize = 32;

impl Counts {
    fn get(&self, sequence: u64, question: &str) -> Option<u64> {
        let kept = self.0.lock();
        kept.iter().find(|(at, known, _)| *at == sequence && known == question).map(|(_, _, count)| *count)
    }

    fn keep(&self, sequence: u64, question: String, count: u64) {
        let mut kept = self.0.lock();
        kept.retain(|(at, known, _)| *at == sequence && *known != question);
        kept.push_front((sequence, question, count));
        kept.truncate(COUNTS);
    }

    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }
}

pub(super) fn list(
    connection: Connection<'_>,
    scope: &Scope,
    filter: &Filter,
    page: &Page,
    counts: &Counts,
) -> Result<Listed> {
    let mut conditions = filtered(connection, scope, filter)?;
    if let Some(recent) = filter.recent {
        narrow_to_recent(connection, &mut conditions, recent)?;
    }
    let total = count(connection, scope, filter, &conditions, counts)?;
    let (column, direction, sign) = match page.order {
        Order::Ascending => (column(page.sort), "ASC", ">"),
        Order::Descending => (column(page.sort), "DESC", "<"),
    };
    if let Some((value, number)) = &page.after {
        let value = match value {
            Value::String(text) => OwnedValue::Text(text.clone()),
            other => OwnedValue::Integer(other.as_i64().ok_or(Error::Unreadable("a cursor"))?),
        };
        conditions.add_many(format!("({column}, d.id) {sign} (?, ?)"), [value, OwnedValue::Integer(*number)]);
    }
    // The page is chosen by number first, so that only its own rows are joined and read whole.
    let order = format!("ORDER BY {column} {direction}, d.id {direction}");
    let sql = format!(
        "SELECT {DOCUMENT} FROM (SELECT d.id AS chosen FROM documents d WHERE {} {order} LIMIT {} OFFSET {}) page
         CROSS JOIN documents d ON d.id = page.chosen
         JOIN collections c ON c.id = d.collection JOIN blobs b ON b.id = d.blob {order}",
        conditions.sql(),
        page.limit.saturating_add(1).min(i64::MAX as usize),
        page.offset.min(i64::MAX as u64)
    );
    let mut query = connection.prepare_cached(&sql)?;
    let mut documents = collect(query.query(&conditions.parameters())?, document)?;
    let more = documents.len() > page.limit;
    documents.truncate(page.limit);
    Ok(Listed { documents, total, more })
}

fn count(
    connection: Connection<'_>,
    scope: &Scope,
    filter: &Filter,
    conditions: &Conditions,
    counts: &Counts,
) -> Result<u64> {
    let (sequence, question) = (read::sequence(connection)?, format!("{scope:?} {filter:?}"));
    if let Some(known) = counts.get(sequence, &question) {
        return Ok(known);
    }
    let sql = format!("SELECT COUNT(*) FROM documents d WHERE {}", conditions.sql());
    let total = connection.prepare_cached(&sql)?.query_row(&conditions.parameters(), |row| row.get(0))?;
    // Names and numbers make long questions that are hardly asked twice.
    if filter.numbers.is_none() {
        counts.keep(sequence, question, total);
    }
    Ok(total)
}

fn narrow_to_recent(connection: Connection<'_>, conditions: &mut Conditions, recent: u64) -> Result<()> {
    let sql = format!(
        "SELECT d.id FROM documents d WHERE {} ORDER BY d.indexed_at DESC, d.id DESC LIMIT {}",
        conditions.sql(),
        i64::try_from(recent).unwrap_or(i64::MAX)
    );
    let mut query = connection.prepare_cached(&sql)?;
    let numbers: Vec<i64> = collect(query.query(&conditions.parameters())?, |row| row.get(0))?;
    drop(query);
    conditions.add(&connection.among("d.id"), numbers);
    Ok(())
}

/// Documents that are chosen, or numbered, at once: many, since each chunk is sorted anew.
const MANY: usize = 65_536;

pub(super) fn choose(
    connection: Connection<'_>,
    scope: &Scope,
    filter: &Filter,
    position: &Position,
) -> Result<Chunk<Chosen>> {
    let mut conditions = filtered(connection, scope, filter)?;
    if filter.numbers.as_ref().is_some_and(|numbers| numbers.len() < FEW_NUMBERS) {
        conditions = conditions.without_index();
    }
    conditions.add_many("(d.collection, d.path) > (?, ?)".into(), position_values(position));
    let sql = format!(
        "SELECT d.id, d.uuid, c.name, d.path, d.version, b.hash, d.size, d.modified_at, d.indexed_at, d.mode,
             d.collection
         FROM {FROM} WHERE {} ORDER BY d.collection, d.path LIMIT {MANY}",
        conditions.sql()
    );
    let mut query = connection.prepare_cached(&sql)?;
    let found = collect(query.query(&conditions.parameters())?, |row| {
        let chosen = Chosen {
            number: row.get(0)?,
            id: document_id(row, 1)?,
            collection_name: row.get(2)?,
            path: row.get(3)?,
            version: version_at(row, 4)?,
        };
        Ok((Position { number: row.get(10)?, text: chosen.path.clone() }, chosen))
    })?;
    Ok(chunk(found, MANY))
}

pub(super) fn paths(
    connection: Connection<'_>,
    scope: &Scope,
    filter: &Filter,
    position: &Position,
) -> Result<Chunk<String>> {
    let mut conditions = filtered(connection, scope, filter)?;
    conditions.add_many("(d.collection, d.path) > (?, ?)".into(), position_values(position));
    // The index over paths answers this alone.
    let sql = format!(
        "SELECT d.collection, d.path FROM documents d WHERE {} ORDER BY d.collection, d.path LIMIT {MANY}",
        conditions.sql()
    );
    let mut query = connection.prepare_cached(&sql)?;
    let found: Vec<(i64, String)> =
        collect(query.query(&conditions.parameters())?, |row| Ok((row.get(0)?, row.get(1)?)))?;
    let is_end = found.len() < MANY;
    let next = found.last().filter(|_| !is_end);
    let next = next.map(|(number, text)| Position { number: *number, text: text.clone() });
    Ok(Chunk { items: found.into_iter().map(|(_, path)| path).collect(), next })
}

/// A place in the order of collections and paths.
pub(super) fn position_values(position: &Position) -> [OwnedValue; 2] {
    [OwnedValue::Integer(position.number), OwnedValue::Text(position.text.clone())]
}

pub(super) fn numbers(
    connection: Connection<'_>,
    scope: &Scope,
    filter: &Filter,
    position: &Position,
) -> Result<Chunk<i64>> {
    let mut conditions = filtered(connection, scope, filter)?;
    // The plus keeps the query with the index that the other conditions choose.
    conditions.add("+d.id > ?", position.number);
    let sql = format!("SELECT d.id FROM documents d WHERE {} ORDER BY d.id LIMIT {MANY}", conditions.sql());
    let mut query = connection.prepare_cached(&sql)?;
    let found = collect(query.query(&conditions.parameters())?, |row| {
        let number = row.get(0)?;
        Ok((Position::at(number), number))
    })?;
    Ok(chunk(found, MANY))
}

pub(super) fn numbered(connection: Connection<'_>, scope: &Scope, numbers: &[i64]) -> Result<Vec<Document>> {
    let mut conditions = Conditions::live(connection, scope, None)?.without_index();
    conditions.add(&connection.among("d.id"), numbers.to_vec());
    query(connection, &conditions, "")
}

pub(super) fn changes(connection: Connection<'_>, after: u64, until: u64) -> Result<Changes> {
    // Those that were forgotten after `until` too: their rows are gone already, so nothing else tells of them.
    let mut query =
        connection.prepare_cached("SELECT number FROM buried WHERE sequence > ?1 ORDER BY number")?;
    let buried = collect(query.query(params![after])?, |row| row.get(0))?;
    Ok(Changes { documents: changed(connection, after, until)?, buried })
}

fn changed(connection: Connection<'_>, after: u64, until: u64) -> Result<Vec<Changed>> {
    let mut query = connection.prepare_cached(
        "SELECT d.id, d.deleted_at IS NULL, c.uuid, d.path, d.title, d.mime, d.is_text, b.hash, d.size, j.renamed
         FROM (SELECT document, MAX(CASE WHEN operation = 'retitle' THEN 1 ELSE 0 END) AS renamed FROM journal
               WHERE sequence > ?1 AND sequence <= ?2 AND operation IN ('add', 'replace', 'delete', 'retitle')
               GROUP BY document) j
         CROSS JOIN documents d ON d.uuid = j.document
         JOIN collections c ON c.id = d.collection JOIN blobs b ON b.id = d.blob ORDER BY d.id",
    )?;
    collect(query.query(params![after as i64, until as i64])?, |row| {
        Ok(Changed {
            number: row.get(0)?,
            is_live: row.get(1)?,
            is_renamed: row.get(9)?,
            collection: collection_id(row, 2)?,
            path: row.get(3)?,
            title: row.get(4)?,
            mime: row.get(5)?,
            is_text: row.get(6)?,
            hash: digest(row, 7)?,
            size: row.get(8)?,
        })
    })
}

pub(super) fn sources(
    connection: Connection<'_>,
    collection: CollectionId,
    folder: &str,
    position: &Position,
) -> Result<Chunk<Source>> {
    // Everything that begins with `folder/`: `0` is the character after `/`.
    let folder = folder.trim_end_matches('/');
    let mut query = connection.prepare_cached(
        "SELECT d.uuid, d.path, d.stat, b.hash, d.size, d.checked_at
         FROM documents d JOIN blobs b ON b.id = d.blob
         WHERE d.collection = (SELECT id FROM collections WHERE uuid = ?1)
           AND d.path > ?2 AND d.path < ?3 AND d.deleted_at IS NULL ORDER BY d.path LIMIT ?4",
    )?;
    let (begin, end) = (format!("{folder}/"), format!("{folder}0"));
    let begin = if position.text.is_empty() { &begin } else { &position.text };
    let found = collect(query.query(params![collection.as_bytes(), begin, end, CHUNK as i64])?, |row| {
        let stat: Option<Vec<u8>> = row.get(2)?;
        let source = Source {
            id: document_id(row, 0)?,
            path: row.get(1)?,
            stat: stat.and_then(|stat| stat.try_into().ok()),
            hash: digest(row, 3)?,
            size: row.get(4)?,
            checked_at: moment(row, 5)?,
        };
        Ok((Position { number: 0, text: source.path.clone() }, source))
    })?;
    Ok(chunk(found, CHUNK))
}

pub(super) fn versions(connection: Connection<'_>, scope: &Scope, id: DocumentId) -> Result<Vec<Version>> {
    let mut conditions = Conditions::live(connection, scope, None)?;
    conditions.add("d.uuid = ?", id.as_bytes().to_vec());
    let sql = format!(
        "SELECT v.number, vb.hash, vb.size, v.modified_at, v.indexed_at, v.mode
         FROM {FROM} JOIN versions v ON v.document = d.id JOIN blobs vb ON vb.id = v.blob
         WHERE {} ORDER BY v.number",
        conditions.sql()
    );
    let mut query = connection.prepare_cached(&sql)?;
    collect(query.query(&conditions.parameters())?, |row| version_at(row, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_path_is_found_by_an_index() {
        let folder = tempfile::tempdir().unwrap();
        drop(crate::sqlite::SqliteCatalog::open(folder.path()).unwrap());
        let connection = rusqlite::Connection::open(folder.path().join("catalog.db")).unwrap();
        let plan = |condition: &str| -> String {
            let sql = format!(
                "EXPLAIN QUERY PLAN SELECT d.id FROM documents d
                 WHERE +d.collection = 1 AND d.deleted_at IS NULL AND {condition} = 'x'"
            );
            connection.query_row(&sql, [], |row| row.get("detail")).unwrap()
        };
        assert!(plan(&format!("{IS_NAMED_OTHERWISE} AND {FILE_NAME}")).contains("INDEX documents_by_name"));
        assert!(plan("d.title").contains("INDEX documents_by_title"));
    }
}
