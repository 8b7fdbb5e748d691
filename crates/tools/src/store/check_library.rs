//! `check_library`: verifies everything that the library holds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

/// Findings that are listed.
const MOST: usize = 200;

pub(crate) const TOOL: Tool = Tool {
    name: "check_library",
    title: "Check the library",
    description: "Read and verify everything that the library holds: blocks, documents, snapshots, and the chain of the \
                  journal. Changes nothing, takes as long as reading all of it, and can be cancelled. Use audit_journal \
                  for the journal alone, and `shelf check --repair` on the machine of the library to repair. For \
                  administrators.",
    family: Family::Store,
    audience: Audience::Administrators,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: "{}",
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let Arguments {} = arguments::read(arguments)?;
        let report = context.library.check_for(context.caller, context.call)?;
        let truncated = report.findings.len() > MOST;
        let findings = report.findings.into_iter().take(MOST).map(|finding| FindingView {
            place: finding.place,
            what: finding.what,
            affects: finding.affects,
        });
        let findings: Vec<FindingView> = findings.collect();
        reply(&Reply {
            sound: findings.is_empty(),
            packs: report.packs,
            blocks: report.blocks,
            contents: report.blobs,
            versions: report.versions,
            snapshots: report.snapshots,
            records: report.journal,
            findings,
            truncated,
        })
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// Whether nothing is wrong
    sound: bool,
    /// Number of packs that were read
    packs: u64,
    /// Number of blocks that were compared with their hashes
    blocks: u64,
    /// Number of contents that were compared with their hashes
    contents: u64,
    /// Number of versions
    versions: u64,
    /// Number of snapshots whose listing was read
    snapshots: u64,
    /// Number of records of the journal that were verified
    records: u64,
    /// What is wrong
    findings: Vec<FindingView>,
    /// Whether more is wrong than is listed
    truncated: bool,
}

#[derive(Serialize, JsonSchema)]
struct FindingView {
    /// Where: a pack, a content, a snapshot, a record
    place: String,
    /// What is wrong with it
    what: String,
    /// Documents and snapshots that it affects
    affects: Vec<String>,
}
