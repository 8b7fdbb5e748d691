//! `plan_build`: tells what changed in a book since a state of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shelf_base::Digest;

use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "plan_build",
    title: "Plan a build",
    description: "Tell what changed in a book since it had a manifest_hash: which files were added, modified and deleted. Without one, or with one that the book's recent history does not contain, everything is listed as added.",
    family: Family::Books,
    audience: Audience::Personal,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{"book_id": "ai-native-python"}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let Arguments { book_id, manifest_hash } = arguments::read(arguments)?;
        let (library, caller) = (context.library, context.caller);
        let plan = library.book_plan(caller, &book_id, manifest_hash.as_deref(), context.call)?;
        let file = |(path, hash): (String, Digest)| File { path, file_hash: hash.to_string() };
        reply(&Reply {
            manifest_hash: plan.manifest.map(|hash| hash.to_string()).unwrap_or_default(),
            complete: !plan.is_known,
            added: plan.added.into_iter().map(file).collect(),
            modified: plan.modified.into_iter().map(file).collect(),
            deleted: plan.deleted,
            unchanged: plan.unchanged,
        })
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Book identifier
    book_id: String,
    /// The manifest_hash of the last build
    manifest_hash: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// Stands for the present state; give it to the next plan
    manifest_hash: String,
    /// Whether everything has to be built because the given state is not known
    complete: bool,
    /// New files
    added: Vec<File>,
    /// Files with new content
    modified: Vec<File>,
    /// Paths of files that are gone
    deleted: Vec<String>,
    /// Number of files that stayed as they were
    unchanged: u64,
}

#[derive(Serialize, JsonSchema)]
struct File {
    /// Path within the book
    path: String,
    /// SHA-256 of the content
    file_hash: String,
}
