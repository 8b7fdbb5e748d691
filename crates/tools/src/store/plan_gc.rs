//! `plan_gc`: what garbage collection would free.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "plan_gc",
    title: "Plan garbage collection",
    description: "Tell what garbage collection would free if all snapshots are kept, without freeing anything. Run shelf gc \
                  on the machine of the library to free it. For administrators.",
    family: Family::Store,
    audience: Audience::Administrators,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: "{}",
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let Arguments {} = arguments::read(arguments)?;
        let plan = context.library.gc_plan_for(context.caller, context.call)?;
        reply(&Reply {
            kept_snapshots: plan.kept_snapshots,
            contents: plan.blobs,
            content_bytes: plan.blob_bytes,
            packs_deleted: plan.packs.delete.len() as u64,
            packs_rewritten: plan.packs.rewrite.len() as u64,
            freed_bytes: plan.packs.freed_bytes,
        })
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// Number of snapshots, all of which are kept
    kept_snapshots: u64,
    /// Number of contents that nothing needs
    contents: u64,
    /// Their size in bytes
    content_bytes: u64,
    /// Number of packs that would be deleted
    packs_deleted: u64,
    /// Number of packs that would be rewritten
    packs_rewritten: u64,
    /// Bytes of disk that would become free, about
    freed_bytes: u64,
}
