//! `audit_journal`: verifies the chain of the journal.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "audit_journal",
    title: "Verify the journal",
    description: "Verify that the records of the journal form an unbroken chain and that the catalog says what they vouch \
                  for. Run shelf check to verify stored content too. For administrators.",
    family: Family::Store,
    audience: Audience::Administrators,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: "{}",
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let Arguments {} = arguments::read(arguments)?;
        let (records, findings) = context.library.audit_for(context.caller, context.call)?;
        let truncated = findings.len() > MOST;
        reply(&Reply {
            sound: findings.is_empty(),
            records,
            findings: findings.into_iter().take(MOST).collect(),
            truncated,
        })
    },
};

/// Findings that are listed.
const MOST: usize = 200;

#[derive(Deserialize, JsonSchema)]
struct Arguments {}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// Whether nothing is wrong
    sound: bool,
    /// Number of records that were verified
    records: u64,
    /// What is wrong
    findings: Vec<String>,
    /// Whether more is wrong than is listed
    truncated: bool,
}
