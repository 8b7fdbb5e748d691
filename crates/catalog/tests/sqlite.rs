//! SQLite shows the behaviour every catalog must show, and its own: many openers, migrations, group commit.

use std::path::Path;
use std::{os::unix::fs::PermissionsExt, sync::Arc};

use shelf_base::{ErrorInfo, Kind, Moment};
use shelf_catalog::{
    Accounts, Actor, Catalog, CopyNote, Error, Filter, Order, Page, Scope, SortBy, sqlite::SqliteCatalog,
    suite,
};

#[test]
fn the_common_suite() {
    let folders = tempfile::tempdir().unwrap();
    let count = std::cell::Cell::new(0);
    suite::run(|| {
        count.set(count.get() + 1);
        Arc::new(SqliteCatalog::open(&folders.path().join(count.get().to_string())).unwrap())
    });
}

#[test]
fn two_openers_see_each_other_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) =
        (SqliteCatalog::open(folder.path()).unwrap(), SqliteCatalog::open(folder.path()).unwrap());
    for number in 0..50 {
        let (writer, reader) = if number % 2 == 0 { (&one, &two) } else { (&two, &one) };
        let made =
            writer.ensure_collection(&Actor::local(), &format!("c{number}"), Moment::default()).unwrap();
        assert_eq!(reader.sequence().unwrap(), number + 1);
        assert_eq!(
            reader.ensure_collection(&Actor::local(), &format!("c{number}"), Moment::default()).unwrap().id,
            made.id
        );
    }
}

#[test]
fn a_library_of_a_newer_program_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    drop(SqliteCatalog::open(folder.path()).unwrap());
    let connection = rusqlite::Connection::open(folder.path().join("catalog.db")).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    match SqliteCatalog::open(folder.path()) {
        Err(error @ Error::TooNew { found: 99, .. }) => assert_eq!(error.kind(), Kind::Unavailable),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("opened a newer library"),
    }
}

#[test]
fn no_text_of_an_error_shows_sql_or_paths() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("catalog.db"), "this is not a database, it only has the name of one")
        .unwrap();
    let error = SqliteCatalog::open(folder.path()).map(|_| ()).unwrap_err();
    let text = error.to_string();
    assert_eq!(error.kind(), Kind::Corrupt);
    assert!(!text.contains("SELECT") && !text.contains("PRAGMA") && !text.contains('/'), "{text}");
}

/// Every way in which a row can differ from what the journal sealed is named.
#[test]
fn an_audit_names_what_was_changed_behind_the_journals_back() {
    let cases = [
        ("UPDATE documents SET path = 'moved' WHERE path = 'one'", "document one: its path has become moved"),
        ("UPDATE documents SET title = 'other' WHERE path = 'one'", "document one: its title, type, tags"),
        ("UPDATE documents SET tags = '[]' WHERE path = 'tagged'", "document tagged: its title, type, tags"),
        ("UPDATE documents SET metadata = '{\"key\":1}' WHERE path = 'tagged'", "document tagged: its title"),
        ("UPDATE documents SET metadata = '{' WHERE path = 'tagged'", "its tags or metadata cannot be read"),
        (
            "UPDATE documents SET blob = (SELECT blob FROM documents WHERE path = 'tagged') WHERE path = 'one'",
            "document one: it points at other content",
        ),
        ("UPDATE documents SET deleted_at = NULL WHERE path = 'gone'", "document gone: it is there although"),
        ("UPDATE documents SET deleted_at = 1 WHERE path = 'one'", "document one: it is marked as deleted"),
        (
            "DELETE FROM tags WHERE document IN (SELECT id FROM documents WHERE path = 'one');
          DELETE FROM versions WHERE document IN (SELECT id FROM documents WHERE path = 'one');
          DELETE FROM documents WHERE path = 'one'",
            "document one: it is missing",
        ),
        ("DELETE FROM tags WHERE tag = 'a'", "document tagged: it is not filed under all of its tags"),
        ("DELETE FROM snapshots", "it is missing from the catalog"),
        ("UPDATE snapshots SET label = 'x'", "it is not as it was recorded"),
        ("DELETE FROM journal WHERE sequence > 3", "the journal has no record of it"),
        (
            "DELETE FROM journal WHERE sequence = (SELECT MAX(sequence) FROM journal)",
            "document one: its title",
        ),
    ];
    for (change, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        let catalog = SqliteCatalog::open(folder.path()).unwrap();
        suite::furnish(&catalog);
        assert_eq!(catalog.audit().unwrap(), [""; 0]);
        suite::tamper(folder.path(), change);
        let found = catalog.audit().unwrap();
        assert!(found.iter().any(|line| line.contains(expected)), "{change}: {found:?}");
        // The owner may take it for the truth; a cut journal goes on from where it ends.
        assert!(catalog.accept(&Actor::local(), Moment::default()).unwrap() > 0 || change.contains("tags"));
        assert_eq!(catalog.audit().unwrap(), [""; 0], "{change}");
    }
}

fn page() -> Page {
    Page { sort: SortBy::Name, order: Order::Ascending, limit: 10, offset: 0, after: None }
}

#[test]
fn one_broken_value_hides_no_document() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = SqliteCatalog::open(folder.path()).unwrap();
    let count = suite::furnish(&catalog);
    suite::tamper(folder.path(), "UPDATE documents SET metadata = '{\"key' WHERE path = 'tagged'");
    let listed = catalog.list(&Scope::Library, &Filter::default(), &page()).unwrap();
    assert_eq!((listed.total, listed.documents.len() as u64), (count, count));
    let broken: Vec<_> = listed.documents.iter().filter(|one| !one.damaged.is_empty()).collect();
    assert_eq!((broken.len(), broken[0].path.as_str()), (1, "tagged"));
    assert_eq!(broken[0].damaged, ["metadata"]);
}

/// The highest numbers that SQLite gave.
fn counted(folder: &Path) -> Vec<(String, i64)> {
    let connection = rusqlite::Connection::open(folder.join("catalog.db")).unwrap();
    let mut query = connection.prepare("SELECT name, seq FROM sqlite_sequence ORDER BY name, seq").unwrap();
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

/// A catalog that is rebuilt from its copy says the same as the one that was lost, and goes on from there.
#[test]
fn a_lost_catalog_comes_back_from_its_copy() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("catalog.copy");
    let (before, note, secret, counters) = {
        let catalog = SqliteCatalog::open(folder.path()).unwrap();
        suite::furnish(&catalog);
        // The newest documents were deleted and collected: their numbers are not given again.
        suite::tamper(folder.path(), "UPDATE sqlite_sequence SET seq = seq + 5 WHERE name = 'documents'");
        let secret = catalog.secret("cursor", [7; 32]).unwrap();
        let note = catalog.write_copy(&copy).unwrap();
        let listed = catalog.list(&Scope::Library, &Filter::default(), &page()).unwrap();
        (listed, note, secret, counted(folder.path()))
    };
    assert_eq!(CopyNote::read(&copy).unwrap(), Some(note));
    let modes = std::fs::metadata(&copy).unwrap().permissions().mode() & 0o777;
    assert_eq!(modes, 0o600);
    for name in ["catalog.db", "catalog.db-wal", "catalog.db-shm"] {
        let _ = std::fs::remove_file(folder.path().join(name));
    }
    let again =
        SqliteCatalog::rebuild(folder.path(), &copy, Moment::default(), |_| vec![1], || Ok(())).unwrap();
    assert_eq!(again, note);
    let catalog = SqliteCatalog::open(folder.path()).unwrap();
    assert_eq!(catalog.list(&Scope::Library, &Filter::default(), &page()).unwrap(), before);
    assert_eq!(catalog.secret("cursor", [9; 32]).unwrap(), secret);
    assert_eq!(catalog.sequence().unwrap(), note.sequence + 1);
    assert_eq!(catalog.audit().unwrap(), [""; 0]);
    assert!(catalog.integrity().unwrap().is_empty());
    assert_eq!(counted(folder.path()), counters);
    suite::furnish(&catalog);
    let left: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains(".part"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

/// What earlier programs wrote: the tables in an SQLite database.
#[test]
fn an_earlier_copy_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("catalog.copy");
    let plain = folder.path().join("plain.db");
    let catalog = SqliteCatalog::open(folder.path()).unwrap();
    suite::furnish(&catalog);
    let before = catalog.list(&Scope::Library, &Filter::default(), &page()).unwrap();
    let note = catalog.write_copy(&copy).unwrap();
    let mut head = std::fs::read(&copy).unwrap()[..52].to_vec();
    head[..8].copy_from_slice(b"SHELFRC1");
    let connection = rusqlite::Connection::open(folder.path().join("catalog.db")).unwrap();
    connection.execute("ATTACH DATABASE ?1 AS copy", [plain.display().to_string()]).unwrap();
    let journal = "sequence, at, account, token, operation, collection, document, path, previous, new, state";
    for table in
        ["secrets", "accounts", "collections", "tokens", "sessions", "blobs", "documents", "versions", "tags"]
    {
        connection
            .execute_batch(&format!("CREATE TABLE copy.{table} AS SELECT * FROM main.{table}"))
            .unwrap();
    }
    connection
        .execute_batch(&format!(
            "CREATE TABLE copy.loose_blocks AS SELECT * FROM main.loose_blocks;
             CREATE TABLE copy.snapshots AS SELECT * FROM main.snapshots;
             CREATE TABLE copy.journal AS SELECT {journal} FROM main.journal;
             CREATE TABLE copy.counters AS SELECT name, seq FROM main.sqlite_sequence;
             DETACH copy"
        ))
        .unwrap();
    head.extend(zstd::encode_all(std::fs::File::open(&plain).unwrap(), 3).unwrap());
    std::fs::write(&copy, head).unwrap();
    let other = tempfile::tempdir().unwrap();
    let again = SqliteCatalog::rebuild(other.path(), &copy, Moment::default(), |_| vec![1], || Ok(()));
    assert_eq!(again.unwrap(), note);
    let catalog = SqliteCatalog::open(other.path()).unwrap();
    assert_eq!(counted(other.path()), counted(folder.path()));
    assert_eq!(catalog.list(&Scope::Library, &Filter::default(), &page()).unwrap(), before);
    assert_eq!(catalog.audit().unwrap(), [""; 0]);
    assert!(catalog.integrity().unwrap().is_empty());
}

/// A copy that was damaged is refused; it does not become a catalog with other content.
#[test]
fn a_damaged_copy_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("catalog.copy");
    let catalog = SqliteCatalog::open(folder.path()).unwrap();
    suite::furnish(&catalog);
    catalog.write_copy(&copy).unwrap();
    let bytes = std::fs::read(&copy).unwrap();
    let places = (0..60).map(|part| 70 + (bytes.len() - 71) * part / 60);
    // The head says how far the copy goes, from byte 12 on.
    for at in [0, 12, 15, 19, 30, 60, bytes.len() - 1].into_iter().chain(places) {
        let mut changed = bytes.clone();
        changed[at] ^= 0x10;
        std::fs::write(&copy, changed).unwrap();
        let other = tempfile::tempdir().unwrap();
        let outcome =
            SqliteCatalog::rebuild(other.path(), &copy, Moment::default(), |_| Vec::new(), || Ok(()));
        assert_eq!(outcome.unwrap_err().kind(), Kind::Corrupt, "byte {at}");
        assert!(!other.path().join("catalog.db").exists());
    }
}
