//! Folders, counts and recent records.

use std::collections::{BTreeMap, HashMap};

use shelf_base::{Moment, ids::AccountId, ids::SessionId};

use super::{
    Backend, Connection, documents, params, read,
    rows::{Conditions, DOCUMENT, FROM, collect, document, moment},
};
use crate::{
    Browse, Error, Facet, Facets, Filter, Folder, FolderContent, Order, Page, RecentRecords, RecordFilter,
    Result, Scope, SessionRow, Subject,
};

/// Records of the journal that are looked at for one page.
const LOOK_BACK: i64 = 250_000;

/// Whose things a record is about. The rows of deleted collections stay, so this can be told of every record.
const SUBJECT: &str = "CASE
    WHEN j.operation = 'set_map' THEN 'citations'
    WHEN j.operation = 'set_book' OR j.collection IN (SELECT c.uuid FROM collections c WHERE c.kind = 'book') THEN 'books'
    WHEN j.operation IN ('create_collection', 'rename_collection', 'delete_collection', 'create_account', 'update_account',
        'delete_account', 'revoke_session', 'create_token', 'revoke_token', 'rotate_token') THEN 'documents'
    WHEN j.document IS NOT NULL AND j.path LIKE 'documents/________-____-____-____-____________' THEN 'documents'
    ELSE 'store' END";

impl<B: Backend> Browse for B {
    fn folder(&self, scope: &Scope, collection: &str, folder: &str, page: &Page) -> Result<FolderContent> {
        self.view(|connection| content(connection, scope, collection, folder, page))
    }

    fn ends(&self, scope: &Scope, collection: &str, folder: &str) -> Result<Option<(String, String)>> {
        self.view(|connection| ends(connection, scope, collection, folder))
    }

    fn facets(&self, scope: &Scope, filter: &Filter, most: usize) -> Result<Facets> {
        self.view(|connection| facets(connection, scope, filter, most))
    }

    fn recent(&self, scope: &Scope, filter: &RecordFilter, most: usize) -> Result<RecentRecords> {
        self.view(|connection| recent(connection, scope, filter, most))
    }

    fn sessions(&self, account: AccountId, now: Moment) -> Result<Vec<SessionRow>> {
        self.read(|connection| {
            let mut query = connection.prepare_cached(
                "SELECT uuid, created_at, expires_at FROM sessions
                 WHERE account = (SELECT id FROM accounts WHERE uuid = ?1) AND expires_at > ?2
                 ORDER BY created_at DESC",
            )?;
            let rows = query.query(params![account.as_bytes(), now.micros()])?;
            collect(rows, |row| {
                let id = SessionId::from_slice(row.cell(0)?.blob());
                Ok(SessionRow {
                    id: id.ok_or(Error::Unreadable("a session"))?,
                    created_at: moment(row, 1)?,
                    expires_at: moment(row, 2)?,
                })
            })
        })
    }
}

/// Documents of a collection below a folder.
fn below(connection: Connection<'_>, scope: &Scope, collection: &str, folder: &str) -> Result<Conditions> {
    let mut conditions = Conditions::live(connection, scope, Some(collection))?;
    if let Some(stem) = folder.strip_suffix('/') {
        // All paths that begin with "stem/" stand before "stem0", the character after the slash.
        conditions.add("d.path >= ?", folder.to_owned());
        conditions.add("d.path < ?", format!("{stem}0"));
    }
    Ok(conditions)
}

fn ends(
    connection: Connection<'_>,
    scope: &Scope,
    collection: &str,
    folder: &str,
) -> Result<Option<(String, String)>> {
    let inner = below(connection, scope, collection, folder)?;
    let end = |direction: &str| -> Result<Option<String>> {
        let sql = format!(
            "SELECT d.path FROM documents d WHERE {} ORDER BY d.path {direction} LIMIT 1",
            inner.sql()
        );
        let mut query = connection.prepare_cached(&sql)?;
        Ok(collect(query.query(&inner.parameters())?, |row| row.get(0))?.into_iter().next())
    };
    Ok(end("ASC")?.zip(end("DESC")?))
}

fn content(
    connection: Connection<'_>,
    scope: &Scope,
    collection: &str,
    folder: &str,
    page: &Page,
) -> Result<FolderContent> {
    // Positions in SQL are counted in characters, from 1.
    let rest = format!("substr(d.path, {})", folder.chars().count() + 1);
    let inner = below(connection, scope, collection, folder)?;
    let sql = format!(
        "SELECT substr({rest}, 1, instr({rest}, '/') - 1) AS name, COUNT(*), CAST(SUM(d.size) AS BIGINT) FROM documents d
         WHERE {} AND instr({rest}, '/') > 0 GROUP BY name ORDER BY name",
        inner.sql()
    );
    let mut query = connection.prepare_cached(&sql)?;
    let folders = collect(query.query(&inner.parameters())?, |row| {
        Ok(Folder { name: row.get(0)?, documents: row.get(1)?, bytes: row.get(2)? })
    })?;
    let own = format!("{} AND instr({rest}, '/') = 0", inner.sql());
    let count = format!("SELECT COUNT(*) FROM documents d WHERE {own}");
    let total = connection.prepare_cached(&count)?.query_row(&inner.parameters(), |row| row.get(0))?;
    let direction = if page.order == Order::Ascending { "ASC" } else { "DESC" };
    let sql = format!(
        "SELECT {DOCUMENT} FROM {FROM} WHERE {own} ORDER BY {} {direction}, d.id {direction} LIMIT {} OFFSET {}",
        documents::column(page.sort),
        page.limit.min(i64::MAX as usize),
        page.offset.min(i64::MAX as u64)
    );
    let mut query = connection.prepare_cached(&sql)?;
    let documents = collect(query.query(&inner.parameters())?, document)?;
    Ok(FolderContent { folders, documents, total })
}

/// Documents that share a value, and their bytes.
#[derive(Clone, Copy, Default)]
struct Share {
    documents: u64,
    bytes: u64,
}

impl Share {
    const fn add(&mut self, other: Self) {
        self.documents += other.documents;
        self.bytes += other.bytes;
    }
}

/// All documents are looked at once, whatever they are divided by.
fn facets(connection: Connection<'_>, scope: &Scope, filter: &Filter, most: usize) -> Result<Facets> {
    let conditions = documents::filtered(connection, scope, filter)?;
    // A database far away sends sums; one in this process would sort all documents for them.
    let (share, grouped) = connection.pick(
        ("1, d.size", ""),
        ("COUNT(*), CAST(SUM(d.size) AS BIGINT)", "GROUP BY d.collection, d.mime, 3"),
    );
    let sql = format!(
        "SELECT d.collection, d.mime, d.created_at / 86400000000, {share} FROM documents d WHERE {} {grouped}",
        conditions.sql()
    );
    let (mut collections, mut types) = (HashMap::<i64, Share>::new(), HashMap::<String, Share>::new());
    let mut days = BTreeMap::<i64, Share>::new();
    let mut query = connection.prepare_cached(&sql)?;
    let mut rows = query.query(&conditions.parameters())?;
    while let Some(row) = rows.next()? {
        let share = Share { documents: row.get(3)?, bytes: row.get(4)? };
        collections.entry(row.get(0)?).or_default().add(share);
        let mime = row.cell(1)?.text().ok_or(Error::Unreadable("a type"))?;
        match types.get_mut(mime) {
            Some(known) => known.add(share),
            None => drop(types.insert(mime.to_owned(), share)),
        }
        days.entry(row.get(2)?).or_default().add(share);
    }
    Ok(Facets {
        collections: largest(named(connection, collections)?, most),
        types: largest(types, most),
        tags: tags(connection, &conditions, most)?,
        days: days.into_iter().map(|(day, share)| (day, share.documents, share.bytes)).collect(),
    })
}

/// The same by the names of collections, which several accounts may use.
fn named(connection: Connection<'_>, shares: HashMap<i64, Share>) -> Result<HashMap<String, Share>> {
    let ids: Vec<i64> = shares.keys().copied().collect();
    let sql = format!("SELECT c.id, c.name FROM collections c WHERE {}", connection.among("c.id"));
    let mut query = connection.prepare_cached(&sql)?;
    let names = collect(query.query(params![ids[..]])?, |row| Ok((row.get::<i64>(0)?, row.get(1)?)))?;
    let mut found = HashMap::<String, Share>::new();
    for (id, name) in names {
        found.entry(name).or_default().add(shares.get(&id).copied().unwrap_or_default());
    }
    Ok(found)
}

fn tags(connection: Connection<'_>, conditions: &Conditions, most: usize) -> Result<Vec<Facet>> {
    let sql = format!(
        "SELECT t.tag, COUNT(*), CAST(SUM(d.size) AS BIGINT) FROM documents d JOIN tags t ON t.document = d.id
         WHERE {} GROUP BY t.tag ORDER BY 2 DESC, 1 LIMIT {most}",
        conditions.sql()
    );
    let mut query = connection.prepare_cached(&sql)?;
    collect(query.query(&conditions.parameters())?, |row| {
        Ok(Facet { value: row.get(0)?, documents: row.get(1)?, bytes: row.get(2)? })
    })
}

/// The values that most documents share.
fn largest(shares: HashMap<String, Share>, most: usize) -> Vec<Facet> {
    let facet =
        |(value, share): (String, Share)| Facet { value, documents: share.documents, bytes: share.bytes };
    let mut facets: Vec<Facet> = shares.into_iter().map(facet).collect();
    facets.sort_unstable_by(|one, other| {
        other.documents.cmp(&one.documents).then_with(|| one.value.cmp(&other.value))
    });
    facets.truncate(most);
    facets
}

fn recent(
    connection: Connection<'_>,
    scope: &Scope,
    filter: &RecordFilter,
    most: usize,
) -> Result<RecentRecords> {
    let newest = i64::try_from(read::sequence(connection)?).unwrap_or(i64::MAX);
    let before = filter.before.map_or(newest + 1, |before| i64::try_from(before).unwrap_or(i64::MAX));
    let first = before.saturating_sub(LOOK_BACK).max(1);
    let mut conditions = Conditions::default();
    conditions.add("j.sequence < ?", before);
    conditions.add("j.sequence >= ?", first);
    match scope {
        Scope::Library => {}
        Scope::Collection(id) => conditions.add("j.collection = ?", id.as_bytes().to_vec()),
        Scope::Account(id) => conditions.add_many(
            "(j.account = ? OR j.collection IN (SELECT c.uuid FROM collections c
              WHERE c.account = (SELECT id FROM accounts WHERE uuid = ?)))"
                .to_owned(),
            [id.as_bytes().to_vec(), id.as_bytes().to_vec()],
        ),
    }
    if let Some(id) = filter.collection {
        conditions.add("j.collection = ?", id.as_bytes().to_vec());
    }
    if let Some(id) = filter.document {
        conditions.add("j.document = ?", id.as_bytes().to_vec());
    }
    if let Some(id) = filter.by {
        conditions.add("j.account = ?", id.as_bytes().to_vec());
    }
    if !filter.operations.is_empty() {
        let marks = vec!["?"; filter.operations.len()].join(", ");
        let words = filter.operations.iter().map(|operation| operation.word());
        conditions.add_many(format!("j.operation IN ({marks})"), words);
    }
    if let Some(subject) = filter.subject {
        conditions.add(&format!("{SUBJECT} = ?"), subject.word());
    }
    let sql = format!(
        "SELECT sequence, at, account, token, operation, collection, document, path, previous, new, state, seal, {SUBJECT}
         FROM journal j WHERE {} ORDER BY j.sequence DESC LIMIT {most}",
        conditions.sql()
    );
    let mut query = connection.prepare_cached(&sql)?;
    let records = collect(query.query(&conditions.parameters())?, |row| {
        let subject =
            Subject::from_word(&row.get::<String>(12)?).ok_or(Error::Unreadable("a record's subject"))?;
        Ok((read::record(row)?, subject))
    })?;
    let looked_from = match records.last() {
        Some((last, _)) if records.len() >= most => last.sequence,
        _ => u64::try_from(first).unwrap_or(1),
    };
    Ok(RecentRecords { records, next_before: (looked_from > 1).then_some(looked_from) })
}
