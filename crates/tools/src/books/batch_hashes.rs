//! `batch_hashes`: gives the hashes of many files of a book at once.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "batch_hashes",
    title: "Hashes of many files",
    description: "Give the SHA-256 of many files of a book at once, of all of them when no paths are given. A file that is not there has none.",
    family: Family::Books,
    audience: Audience::Personal,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{"book_id": "ai-native-python", "paths": ["lessons/part-1/chapter-01/lesson-01.md"]}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let Arguments { book_id, paths } = arguments::read(arguments)?;
        let (library, caller) = (context.library, context.caller);
        let (manifest, hashes) = library.book_hashes(caller, &book_id, paths.as_deref(), context.call)?;
        let file = |(path, hash): shelf_engine::PathHash| File {
            path,
            file_hash: hash.map(|hash| hash.to_string()),
        };
        reply(&Reply { manifest_hash: manifest.to_string(), files: hashes.into_iter().map(file).collect() })
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Book identifier
    book_id: String,
    /// Paths within the book; all files when left out
    #[schemars(length(max = 10_000))]
    paths: Option<Vec<String>>,
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// Stands for the present state of the book
    manifest_hash: String,
    /// The files, in the order of the given paths
    files: Vec<File>,
}

#[derive(Serialize, JsonSchema)]
struct File {
    /// Path within the book
    path: String,
    /// SHA-256 of the content; absent when there is no such file
    #[serde(skip_serializing_if = "Option::is_none")]
    file_hash: Option<String>,
}
