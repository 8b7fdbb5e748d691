//! `check_memory`: whether the memory files are what was written to them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shelf_engine::{MemoryFault, MemoryFinding, MemoryReport};

use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

/// Findings of a file that are listed.
const MOST: usize = 100;

pub(crate) const TOOL: Tool = Tool {
    name: "check_memory",
    title: "Check memory",
    description: "Compare the memory files of the workspace with the chain of hashes that every write_memory_entry adds to, \
                  and list lines that were changed, removed or added in another way. Use query_memory to read entries.",
    family: Family::Workspace,
    audience: Audience::Personal,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: "{}",
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let Arguments {} = arguments::read(arguments)?;
        let reports = context.library.check_memory(context.caller)?;
        let files: Vec<FileView> = reports.into_iter().map(view).collect();
        reply(&Reply { sound: files.iter().all(|file| file.sound), files })
    },
};

/// A file, with edits before what was merely added.
fn view(mut report: MemoryReport) -> FileView {
    report.findings.sort_by_key(|finding| !finding.fault.is_edit());
    let is_added = |finding: &&MemoryFinding| finding.fault == MemoryFault::Added;
    FileView {
        file: report.file.to_owned(),
        sound: !report.findings.iter().any(|finding| finding.fault.is_edit()),
        entry_count: report.entry_count,
        chained: report.known,
        added: report.findings.iter().filter(is_added).count() as u64,
        truncated: report.findings.len() > MOST,
        findings: report.findings.iter().take(MOST).map(sentence).collect(),
    }
}

fn sentence(finding: &MemoryFinding) -> String {
    match finding.line {
        Some(line) => format!("line {line}: {}", finding.what),
        None => finding.what.clone(),
    }
}

#[derive(Deserialize, JsonSchema)]
struct Arguments {}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// Whether all chains hold
    sound: bool,
    /// The memory files
    files: Vec<FileView>,
}

#[derive(Serialize, JsonSchema)]
struct FileView {
    /// File name
    file: String,
    /// Whether nothing that was written is changed, moved or gone
    sound: bool,
    /// Number of valid entries
    entry_count: u64,
    /// Number of lines that the chain knows
    chained: u64,
    /// Number of lines that were not written through this library
    added: u64,
    /// What differs from what was written, lines that others added included
    findings: Vec<String>,
    /// Whether more differs than is listed
    truncated: bool,
}
