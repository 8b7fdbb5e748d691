//! SQLite shows the behaviour every catalog must show, and its own: many openers, migrations, group commit.

use std::sync::Arc;

use shelf_base::{Fault, Kind, Moment};
use shelf_catalog::{Actor, Catalog, Error, sqlite::SqliteCatalog, suite};

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
