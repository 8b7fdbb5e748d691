//! `shelf workspace`, as clap sees it.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Args)]
pub(crate) struct Workspace {
    /// Folder of the workspace; without it the configured one, or the working directory
    #[arg(long, global = true, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    #[command(subcommand)]
    pub action: Action,
}

#[derive(Subcommand)]
pub(crate) enum Action {
    /// Print a file of the workspace, within the rules that agents have
    Read(Read),
    /// Append an event or a decision to memory
    Log(Log),
    /// Find entries of memory
    Query(Query),
    /// Compare the memory files with what was appended to them
    Check,
}

#[derive(Args)]
pub(crate) struct Read {
    /// Path from the root of the workspace
    pub path: String,
    /// First line to print
    #[arg(long, value_name = "N")]
    pub start_line: Option<u64>,
    /// Last line to print
    #[arg(long, value_name = "N")]
    pub end_line: Option<u64>,
    /// Only the last N lines
    #[arg(short = 'n', long, value_name = "N")]
    pub tail: Option<u64>,
}

#[derive(Args)]
pub(crate) struct Log {
    /// What happened, or what was decided; several words need no quotes
    #[arg(required_unless_present = "entry", value_name = "TEXT")]
    pub words: Vec<String>,
    /// It is a decision, for decisions.jsonl; otherwise an event, for progress_log.jsonl
    #[arg(short, long)]
    pub decision: bool,
    /// Further field; VALUE is taken as JSON where it is some; may be repeated
    #[arg(short, long = "field", value_name = "KEY=VALUE")]
    pub fields: Vec<String>,
    /// When it was, as ISO 8601; otherwise now
    #[arg(long, value_name = "TIME")]
    pub at: Option<String>,
    /// The whole entry as a JSON object instead
    #[arg(long, value_name = "JSON", conflicts_with_all = ["words", "fields", "at"])]
    pub entry: Option<String>,
    /// The same key and entry again add nothing
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
}

#[derive(Args)]
pub(crate) struct Query {
    /// Text that the entry must hold, in any case of letters
    #[arg(value_name = "TEXT")]
    pub words: Vec<String>,
    /// Decisions instead of events
    #[arg(short, long)]
    pub decision: bool,
    /// Field and the value it must have; VALUE is taken as JSON where it is some; may be repeated
    #[arg(short, long = "field", value_name = "KEY=VALUE")]
    pub fields: Vec<String>,
    /// From here on: 7d, 2026-01-31, 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Before this; a date includes that day
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Only the last N
    #[arg(short = 'n', long, value_name = "N", default_value = "20")]
    pub last: u64,
}
