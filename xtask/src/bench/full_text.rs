//! SQLite's full-text search: the usual first choice for adding search to a program.

use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use rusqlite::Connection;

use super::engines::{Engine, TOP};

/// Durability is disabled, since this does not compare waiting for the disk.
const TABLE: &str = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; \
    CREATE VIRTUAL TABLE passages USING fts5(path UNINDEXED, text, tokenize = 'porter unicode61'); BEGIN";

const ADD: &str = "INSERT INTO passages (path, text) VALUES (?1, ?2)";

/// Matches any of the words and returns the best first, like the other engines.
const SEARCH: &str = "SELECT path, snippet(passages, 1, '[', ']', '…', 24) FROM passages \
    WHERE passages MATCH ?1 ORDER BY rank LIMIT ?2";

/// A database with one full-text table.
pub struct FullText {
    connection: Connection,
}

impl Engine for FullText {
    type Maker = Connection;

    const NAME: &'static str = "fts5";

    fn version() -> String {
        format!("SQLite {}, in process, porter stemmer", rusqlite::version())
    }

    fn create(folder: &Path) -> Result<Connection> {
        fs::create_dir_all(folder)?;
        let connection = Connection::open(folder.join("passages.db"))?;
        connection.execute_batch(TABLE)?;
        Ok(connection)
    }

    fn add(connection: &mut Connection, path: &str, passage: &str) -> Result<()> {
        connection.prepare_cached(ADD)?.execute([path, passage])?;
        Ok(())
    }

    fn finish(connection: Connection) -> Result<Self> {
        connection.execute_batch("COMMIT")?;
        Ok(Self { connection })
    }

    fn search(&mut self, query: &str) -> Result<f64> {
        let start = Instant::now();
        let mut statement = self.connection.prepare_cached(SEARCH)?;
        let mut rows = statement.query((any_word(query), TOP as i64))?;
        while let Some(row) = rows.next()? {
            let (path, snippet): (String, String) = (row.get(0)?, row.get(1)?);
            std::hint::black_box((path, snippet));
        }
        Ok(start.elapsed().as_secs_f64() * 1e3)
    }
}

fn any_word(query: &str) -> String {
    query.split(' ').map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" OR ")
}

#[cfg(test)]
mod tests {
    use super::{Engine, FullText};
    use crate::scratch::Scratch;

    #[test]
    fn passages_are_found_by_any_word() {
        assert_eq!(super::any_word("hot tea"), "\"hot\" OR \"tea\"");
        let scratch = Scratch::new("full-text").unwrap();
        let mut connection = FullText::create(scratch.path()).unwrap();
        FullText::add(&mut connection, "a.md", "the tea is hot\n").unwrap();
        let mut made = FullText::finish(connection).unwrap();
        assert!(made.search("hot coffee").unwrap() > 0.0);
    }
}
