//! The arguments of `shelf workspace`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Args)]
pub(crate) struct Workspace {
    /// Workspace folder; defaults to the configured one, or the working directory
    #[arg(long, global = true, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    #[command(subcommand)]
    pub action: Action,
}

#[derive(Subcommand)]
pub(crate) enum Action {
    /// Print a workspace file, under the same access rules as for agents
    Read(Read),
    /// Append an event or a decision to memory
    Log(Log),
    /// Query memory entries
    Query(Query),
    /// Check the memory files against what was appended to them
    Check,
}

#[derive(Args)]
pub(crate) struct Read {
    /// Path relative to the workspace root
    pub path: String,
    /// First line to print
    #[arg(long, value_name = "N")]
    pub start_line: Option<u64>,
    /// Last line to print
    #[arg(long, value_name = "N")]
    pub end_line: Option<u64>,
    /// Print only the last N lines
    #[arg(short = 'n', long, value_name = "N")]
    pub tail: Option<u64>,
}

#[derive(Args)]
pub(crate) struct Log {
    /// What happened or was decided; multiple words need no quotes
    #[arg(required_unless_present = "entry", value_name = "TEXT")]
    pub words: Vec<String>,
    /// Log a decision to decisions.jsonl instead of an event to progress_log.jsonl
    #[arg(long)]
    pub decision: bool,
    /// Additional field; VALUE is JSON if it parses as such, text otherwise; may be repeated
    #[arg(short, long = "field", value_name = "KEY=VALUE")]
    pub fields: Vec<String>,
    /// Time of the entry, as ISO 8601; defaults to now
    #[arg(long, value_name = "TIME")]
    pub at: Option<String>,
    /// The whole entry as a JSON object, instead of TEXT, --field and --at
    #[arg(long, value_name = "JSON", conflicts_with_all = ["words", "fields", "at"])]
    pub entry: Option<String>,
    /// Idempotency key: repeating the same key and entry adds nothing
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
}

#[derive(Args)]
pub(crate) struct Query {
    /// Text that entries must contain, ignoring case
    #[arg(value_name = "TEXT")]
    pub words: Vec<String>,
    /// Query decisions instead of events
    #[arg(long)]
    pub decision: bool,
    /// Field value to match; VALUE is JSON if it parses as such, text otherwise; may be repeated
    #[arg(short, long = "field", value_name = "KEY=VALUE")]
    pub fields: Vec<String>,
    /// Only entries at or after TIME: 7d, 2026-01-31, 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Only entries before TIME; a date includes that whole day
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Show only the last N entries
    #[arg(short = 'n', long, value_name = "N", default_value = "20")]
    pub last: u64,
}
