//! The schema, as steps that are walked forward one at a time. A step that has shipped is never edited.

use rusqlite::{Connection, TransactionBehavior};
use shelf_base::ids::{LOCAL_ACCOUNT, LOCAL_ACCOUNT_NAME};

use crate::{Error, Result};

/// Each step brings the schema from version N to N + 1.
const STEPS: &[&str] = &[
    // 1: the first schema.
    "
    CREATE TABLE secrets (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;

    CREATE TABLE accounts (
        id INTEGER PRIMARY KEY,
        uuid BLOB NOT NULL UNIQUE,
        username TEXT NOT NULL UNIQUE,
        is_superuser INTEGER NOT NULL,
        is_active INTEGER NOT NULL,
        created_at INTEGER NOT NULL
    );

    CREATE TABLE collections (
        id INTEGER PRIMARY KEY,
        uuid BLOB NOT NULL UNIQUE,
        account INTEGER NOT NULL REFERENCES accounts (id),
        name TEXT NOT NULL,
        kind TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        UNIQUE (account, name)
    );

    CREATE TABLE tokens (
        id INTEGER PRIMARY KEY,
        uuid BLOB NOT NULL UNIQUE,
        account INTEGER NOT NULL REFERENCES accounts (id),
        collection INTEGER REFERENCES collections (id),
        label TEXT NOT NULL,
        hash BLOB NOT NULL UNIQUE,
        scopes INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        expires_at INTEGER,
        revoked_at INTEGER
    );

    CREATE TABLE blobs (
        id INTEGER PRIMARY KEY,
        hash BLOB NOT NULL UNIQUE,
        size INTEGER NOT NULL,
        manifest BLOB NOT NULL
    );

    CREATE TABLE documents (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        uuid BLOB NOT NULL UNIQUE,
        collection INTEGER NOT NULL REFERENCES collections (id),
        path TEXT NOT NULL,
        title TEXT NOT NULL,
        resource_id TEXT,
        extension TEXT NOT NULL,
        mime TEXT NOT NULL,
        is_text INTEGER NOT NULL,
        blob INTEGER NOT NULL REFERENCES blobs (id),
        size INTEGER NOT NULL,
        version INTEGER NOT NULL,
        modified_at INTEGER NOT NULL,
        indexed_at INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        checked_at INTEGER NOT NULL,
        mode INTEGER NOT NULL,
        stat BLOB,
        tags TEXT NOT NULL,
        metadata TEXT NOT NULL,
        deleted_at INTEGER
    );
    CREATE UNIQUE INDEX documents_by_path ON documents (collection, path) WHERE deleted_at IS NULL;
    CREATE INDEX documents_by_resource ON documents (resource_id) WHERE resource_id IS NOT NULL;

    CREATE TABLE versions (
        document INTEGER NOT NULL REFERENCES documents (id),
        number INTEGER NOT NULL,
        blob INTEGER NOT NULL REFERENCES blobs (id),
        modified_at INTEGER NOT NULL,
        indexed_at INTEGER NOT NULL,
        mode INTEGER NOT NULL,
        PRIMARY KEY (document, number)
    ) WITHOUT ROWID;
    CREATE INDEX versions_by_blob ON versions (blob);

    CREATE TABLE tags (
        tag TEXT NOT NULL,
        document INTEGER NOT NULL REFERENCES documents (id),
        PRIMARY KEY (tag, document)
    ) WITHOUT ROWID;
    CREATE INDEX tags_by_document ON tags (document);

    CREATE TABLE account_blocks (
        account INTEGER NOT NULL,
        block INTEGER NOT NULL,
        PRIMARY KEY (account, block)
    ) WITHOUT ROWID;

    CREATE TABLE loose_blocks (
        id BLOB PRIMARY KEY,
        bytes BLOB NOT NULL
    ) WITHOUT ROWID;

    CREATE TABLE snapshots (
        at INTEGER PRIMARY KEY,
        collection INTEGER NOT NULL REFERENCES collections (id),
        label TEXT,
        root TEXT NOT NULL,
        listing BLOB NOT NULL,
        merkle BLOB NOT NULL,
        files INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        git_commit TEXT,
        git_branch TEXT
    );

    CREATE TABLE journal (
        sequence INTEGER PRIMARY KEY,
        at INTEGER NOT NULL,
        account BLOB NOT NULL,
        token TEXT,
        operation TEXT NOT NULL,
        collection BLOB,
        document BLOB,
        path TEXT NOT NULL,
        previous BLOB,
        new BLOB,
        seal BLOB NOT NULL
    );
    ",
    // 2: the embedding model that a collection is searched with; NULL is the built-in one.
    "ALTER TABLE collections ADD COLUMN model TEXT;",
    // 3: people with passwords, sessions, tokens that are rotated, types that authors give, and collections and
    // accounts that leave a stone behind, because deleted documents and the journal still point at them.
    "
    ALTER TABLE accounts ADD COLUMN email TEXT;
    ALTER TABLE accounts ADD COLUMN password TEXT;
    ALTER TABLE accounts ADD COLUMN deleted_at INTEGER;
    CREATE UNIQUE INDEX accounts_by_email ON accounts (email COLLATE NOCASE) WHERE email IS NOT NULL;
    CREATE UNIQUE INDEX accounts_by_username ON accounts (username COLLATE NOCASE);

    ALTER TABLE collections ADD COLUMN deleted_at INTEGER;
    ALTER TABLE documents ADD COLUMN document_type TEXT;

    ALTER TABLE tokens ADD COLUMN lifetime INTEGER;
    ALTER TABLE tokens ADD COLUMN last_used_at INTEGER;
    UPDATE tokens SET lifetime = expires_at - created_at WHERE expires_at IS NOT NULL;
    CREATE INDEX tokens_by_account ON tokens (account);
    CREATE INDEX tokens_by_collection ON tokens (collection) WHERE collection IS NOT NULL;

    CREATE TABLE sessions (
        id INTEGER PRIMARY KEY,
        uuid BLOB NOT NULL UNIQUE,
        account INTEGER NOT NULL REFERENCES accounts (id),
        refresh BLOB NOT NULL,
        created_at INTEGER NOT NULL,
        expires_at INTEGER NOT NULL
    );
    CREATE INDEX sessions_by_account ON sessions (account);
    ",
    // 4: what a document or snapshot is after a change, as a hash in the journal; and the numbers of deleted documents
    // that garbage collection forgot, for indexes that have not heard of the deletion yet.
    "
    ALTER TABLE journal ADD COLUMN state BLOB;
    CREATE TABLE buried (number INTEGER PRIMARY KEY, sequence INTEGER NOT NULL);
    CREATE INDEX snapshots_by_collection ON snapshots (collection);
    ",
    // 5: numbers of documents that each account counts for itself, and indexes for finding a document by the end of its
    // path and by a title that is not its file name.
    "
    ALTER TABLE accounts ADD COLUMN documents_numbered INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE documents ADD COLUMN account_number INTEGER NOT NULL DEFAULT 0;
    UPDATE documents SET account_number = counted.number
        FROM (SELECT d.id AS id, ROW_NUMBER() OVER (PARTITION BY c.account ORDER BY d.id) AS number
              FROM documents d JOIN collections c ON c.id = d.collection) AS counted
        WHERE counted.id = documents.id;
    UPDATE accounts SET documents_numbered =
        (SELECT COUNT(*) FROM documents d JOIN collections c ON c.id = d.collection WHERE c.account = accounts.id);
    CREATE INDEX documents_by_name ON documents (replace(path, rtrim(path, replace(path, '/', '')), ''))
        WHERE deleted_at IS NULL;
    CREATE INDEX documents_by_title ON documents (title)
        WHERE deleted_at IS NULL AND title <> replace(path, rtrim(path, replace(path, '/', '')), '');
    ",
    // 6: titles, status and visibility of books, and the uploads that were completed.
    "
    ALTER TABLE collections ADD COLUMN title TEXT;
    ALTER TABLE collections ADD COLUMN status TEXT NOT NULL DEFAULT 'active';
    ALTER TABLE collections ADD COLUMN is_public INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX collections_by_book ON collections (name) WHERE kind = 'book' AND deleted_at IS NULL;
    CREATE TABLE used_uploads (id BLOB PRIMARY KEY, expires_at INTEGER NOT NULL) WITHOUT ROWID;
    ",
    // 7: maps that people and models gave documents.
    "
    CREATE TABLE maps (
        document INTEGER NOT NULL REFERENCES documents (id),
        number INTEGER NOT NULL,
        source BLOB NOT NULL,
        origin TEXT NOT NULL,
        map BLOB NOT NULL,
        created_at INTEGER NOT NULL,
        PRIMARY KEY (document, number)
    );
    ",
    // 8: loose blocks in the order in which they came. Ordered by their ids, which are random, each of them split or shifted
    // pages of the others.
    "
    ALTER TABLE loose_blocks RENAME TO scattered_blocks;
    CREATE TABLE loose_blocks (number INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, bytes BLOB NOT NULL);
    INSERT INTO loose_blocks (id, bytes) SELECT id, bytes FROM scattered_blocks;
    DROP TABLE scattered_blocks;
    ",
    // 9: short listings lie with their snapshots. A blob for each cost an eighth of a small write.
    "ALTER TABLE snapshots ADD COLUMN entries BLOB;",
    // 10: all titles are indexed, and the last part of a path only where it is not the title. To find it takes SQLite as long as
    // compressing a document.
    "
    DROP INDEX documents_by_name;
    DROP INDEX documents_by_title;
    CREATE INDEX documents_by_title ON documents (title) WHERE deleted_at IS NULL;
    CREATE INDEX documents_by_name ON documents (replace(path, rtrim(path, replace(path, '/', '')), ''))
        WHERE deleted_at IS NULL
              AND (instr(title, '/') > 0 OR substr('/' || path, -length(title) - 1) <> '/' || title);
    ",
];

/// The newest version that this program knows.
pub(super) const KNOWN: u32 = STEPS.len() as u32;

/// The version a database has.
pub(super) fn version(connection: &Connection) -> Result<u32> {
    Ok(connection.pragma_query_value(None, "user_version", |row| row.get(0))?)
}

/// Walks the schema forward to the newest version, one committed step at a time.
pub(super) fn migrate(connection: &mut Connection) -> Result<()> {
    walk_to(connection, KNOWN)
}

/// Walks the schema forward to a version.
pub(super) fn walk_to(connection: &mut Connection, target: u32) -> Result<()> {
    loop {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let found = version(&transaction)?;
        if found > KNOWN {
            return Err(Error::TooNew { found, known: KNOWN });
        }
        let Some(step) = STEPS.get(found as usize).filter(|_| found < target) else { return Ok(()) };
        transaction.execute_batch(step)?;
        if found == 0 {
            make_local_account(&transaction)?;
        }
        transaction.pragma_update(None, "user_version", found + 1)?;
        transaction.commit()?;
    }
}

fn make_local_account(connection: &Connection) -> Result<()> {
    connection.execute(
        "INSERT INTO accounts (uuid, username, is_superuser, is_active, created_at) VALUES (?1, ?2, 1, 1, 0)",
        (LOCAL_ACCOUNT.as_bytes(), LOCAL_ACCOUNT_NAME),
    )?;
    Ok(())
}
