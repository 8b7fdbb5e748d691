//! The command line, as clap sees it.

mod user;
pub(crate) mod workspace;

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
pub(crate) use user::{Update as UserUpdate, User};

/// A library for AI agents and people: store anything once, find it fast, cite it exactly.
#[derive(Parser)]
#[command(name = "shelf", version, propagate_version = true, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Args)]
pub(crate) struct Global {
    /// Folder of the library [env: SHELF_DATA_DIR]
    #[arg(long, global = true, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Settings file [env: SHELF_CONFIG]
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print data as JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// Say nothing but data and errors
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: ColorChoice,
    /// Log level: error, warn, info, debug, trace [env: SHELF_LOG_LEVEL]
    #[arg(long, global = true, value_name = "LEVEL")]
    pub log_level: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum ColorChoice {
    Auto,
    Always,
    Never,
}

/// What to do.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Serve the library to agents: MCP over stdio, or over HTTP with --http
    Serve(Serve),
    /// Store files, folders, or text from stdin
    Add(Add),
    /// Store what an address on the web has
    Download(Download),
    /// Print a document, or write it to a file
    Get(Get),
    /// List documents
    #[command(visible_alias = "ls")]
    List(List),
    /// Search documents in words: by words and by meaning
    Search(Search),
    /// Search the text of documents with a regular expression
    Grep(Grep),
    /// Change metadata and tags of a document
    Update(Update),
    /// Show the figures of the library
    Status(Status),
    /// List collections
    Collections,
    /// Make and list snapshots
    #[command(subcommand)]
    Snapshot(Snapshot),
    /// Write a collection or snapshot back into a folder
    Restore(Restore),
    /// Delete documents; snapshots keep theirs
    #[command(visible_alias = "rm")]
    Delete(Delete),
    /// Call any tool with JSON arguments, as an agent would
    Call(CallTool),
    /// Make, list, change and delete accounts
    #[command(subcommand)]
    User(User),
    /// Read files, keep and query memory in the workspace
    Workspace(workspace::Workspace),
    /// Make, list and revoke tokens for HTTP
    #[command(subcommand)]
    Token(Token),
    /// Verify every block, document, snapshot and journal row
    Check {
        /// Take damaged packs out of use, so that adding the affected files again heals them
        #[arg(long)]
        repair: bool,
        /// Compare the memory files of the workspace with what was appended to them, and nothing else
        #[arg(long, conflicts_with = "repair")]
        memory: bool,
        /// Folder of the workspace, for --memory; without it the configured one, or the working directory
        #[arg(long, value_name = "DIR", requires = "memory")]
        workspace: Option<PathBuf>,
    },
    /// Build the search index anew
    Reindex,
    /// Let a collection be searched with the configured embedding model, and make its vectors
    Embed(Embed),
    /// Measure search on a folder with corpus.jsonl, queries.jsonl and qrels.tsv
    Eval(Eval),
    /// Free what nothing needs; snapshots go only by the rules given here
    Gc(Gc),
    /// Rebuild a lost or damaged catalog from the library's own recovery copy
    Recover {
        /// Go on with the catalog as it is, although the recovery copy knows of more or other records
        #[arg(long, conflicts_with = "force")]
        keep_catalog: bool,
        /// Go back to the copy although the catalog is whole and newer
        #[arg(long)]
        force: bool,
    },
    /// Explain the state of this installation
    Doctor,
    /// Show the settings and where each comes from
    #[command(subcommand)]
    Config(Config),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write manual pages
    Man {
        /// Folder for the pages; without it the main page is printed
        #[arg(value_name = "DIR")]
        folder: Option<PathBuf>,
    },
    /// Render the reference pages
    #[command(hide = true)]
    Docs {
        /// Folder for the pages
        #[arg(long, value_name = "DIR")]
        output: PathBuf,
    },
}

#[derive(Args)]
pub(crate) struct Serve {
    /// Serve HTTP, on ADDR or the configured address
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = "")]
    pub http: Option<String>,
    /// Act as the owner without a token; only on loopback
    #[arg(long, requires = "http")]
    pub no_auth: bool,
    /// Address of Prometheus metrics, or off
    #[arg(long, value_name = "ADDR")]
    pub admin_listen: Option<String>,
    /// Folder of the workspace tools
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    /// Families of tools to offer, separated by commas
    #[arg(long, value_name = "LIST")]
    pub toolsets: Option<String>,
    /// Only these tools, separated by commas
    #[arg(long, value_name = "LIST")]
    pub tools: Option<String>,
    /// Not these tools, separated by commas
    #[arg(long, value_name = "LIST")]
    pub exclude_tools: Option<String>,
    /// Only tools that change nothing
    #[arg(long)]
    pub read_only: bool,
}

#[derive(Args)]
pub(crate) struct Add {
    /// Files and folders; `-` reads text from stdin (give --name)
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Name for content read from stdin
    #[arg(long)]
    pub name: Option<String>,
    /// Collection to add to
    #[arg(short, long)]
    pub collection: Option<String>,
    /// Tag to give; may be repeated
    #[arg(short, long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,
    /// Metadata to give; may be repeated
    #[arg(short, long = "metadata", value_name = "KEY=VALUE")]
    pub metadata: Vec<String>,
    /// Label of the snapshot
    #[arg(short, long)]
    pub label: Option<String>,
    /// Only files that fit this glob; may be repeated
    #[arg(long, value_name = "GLOB")]
    pub include: Vec<String>,
    /// No files that fit this glob; may be repeated
    #[arg(long, value_name = "GLOB")]
    pub exclude: Vec<String>,
    /// Only the first level of a folder
    #[arg(long)]
    pub flat: bool,
    /// MIME type
    #[arg(long, value_name = "TYPE")]
    pub mime_type: Option<String>,
    /// Resource id for citations
    #[arg(long, value_name = "ID")]
    pub resource_id: Option<String>,
    /// Store only; the next search brings the index up to date
    #[arg(long)]
    pub no_index: bool,
}

#[derive(Args)]
pub(crate) struct Download {
    /// Addresses: http or https
    #[arg(required = true, value_name = "URL")]
    pub urls: Vec<String>,
    /// Checksum that the content must have: sha256:…, sha512:…, md5:… or blake3:… (with a single address)
    #[arg(long, value_name = "SUM")]
    pub checksum: Option<String>,
    /// Name to store it under (with a single address)
    #[arg(long)]
    pub name: Option<String>,
    /// Collection to add to
    #[arg(short, long)]
    pub collection: Option<String>,
    /// Tag to give; may be repeated
    #[arg(short, long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,
    /// Metadata to give; may be repeated
    #[arg(short, long = "metadata", value_name = "KEY=VALUE")]
    pub metadata: Vec<String>,
    /// Label of the snapshot
    #[arg(short, long)]
    pub label: Option<String>,
}

#[derive(Args)]
pub(crate) struct Get {
    /// Hash, path, end of a path, or title
    pub document: String,
    /// Write the content to this file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Look only in this collection
    #[arg(short, long)]
    pub collection: Option<String>,
    /// First line to print
    #[arg(long, value_name = "N")]
    pub start_line: Option<u64>,
    /// Last line to print
    #[arg(long, value_name = "N")]
    pub end_line: Option<u64>,
    /// Print facts about the document instead of its content
    #[arg(short, long)]
    pub info: bool,
}

#[derive(Args)]
pub(crate) struct List {
    /// Path pattern: *.md, src/, src/**/*.rs
    pub pattern: Option<String>,
    /// Only this collection
    #[arg(short, long)]
    pub collection: Option<String>,
    /// Only documents with this tag; may be repeated
    #[arg(short, long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,
    /// All tags must be there
    #[arg(long)]
    pub all_tags: bool,
    /// text, binary, image, audio, video, document, archive or code
    #[arg(long, value_name = "KIND")]
    pub r#type: Option<String>,
    /// Extensions, separated by commas
    #[arg(short, long, value_name = "EXT")]
    pub extension: Option<String>,
    /// MIME type or family
    #[arg(long)]
    pub mime: Option<String>,
    /// File modified at or after: 7d, 2026-01-31
    #[arg(long, value_name = "TIME")]
    pub modified_after: Option<String>,
    /// Stored at or after
    #[arg(long, value_name = "TIME")]
    pub indexed_after: Option<String>,
    /// Only the N most recently stored
    #[arg(short, long, value_name = "N")]
    pub recent: Option<u64>,
    /// name, size, created, modified or indexed
    #[arg(short, long, value_name = "KEY")]
    pub sort: Option<String>,
    /// Largest or newest first
    #[arg(long)]
    pub descending: bool,
    /// At most N documents
    #[arg(short = 'n', long, value_name = "N")]
    pub limit: Option<u64>,
    /// Print only paths, one a line
    #[arg(short, long)]
    pub paths: bool,
}

#[derive(Args)]
pub(crate) struct Search {
    /// What to look for; several words need no quotes
    #[arg(required = true)]
    pub query: Vec<String>,
    /// At most N documents
    #[arg(short = 'n', long, value_name = "N", default_value = "10")]
    pub limit: u64,
    /// keyword, semantic or hybrid
    #[arg(short, long, default_value = "hybrid")]
    pub r#type: String,
    /// Correct no typing errors
    #[arg(long)]
    pub no_fuzzy: bool,
    /// How similar a corrected word must be, 0.0 to 1.0
    #[arg(long, value_name = "S", default_value = "0.7")]
    pub similarity: f64,
    /// Content with this hash, whole or its first 8 or more digits
    #[arg(long)]
    pub hash: Option<String>,
    /// Only this collection
    #[arg(long)]
    pub collection: Option<String>,
    /// Only documents whose path fits; may be repeated
    #[arg(short, long = "path", value_name = "GLOB")]
    pub paths: Vec<String>,
    /// Only documents with one of these tags; may be repeated
    #[arg(long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,
    /// Only this extension
    #[arg(short, long)]
    pub extension: Option<String>,
    /// Only this MIME type
    #[arg(long)]
    pub mime: Option<String>,
    /// Only paths
    #[arg(short = 'l', long)]
    pub paths_only: bool,
    /// Lines of context after a match
    #[arg(short = 'A', long, value_name = "N", default_value = "0")]
    pub after_context: u64,
    /// Lines of context before a match
    #[arg(short = 'B', long, value_name = "N", default_value = "0")]
    pub before_context: u64,
    /// Lines of context before and after a match
    #[arg(short = 'C', long, value_name = "N", default_value = "0")]
    pub context: u64,
    /// Show the score of each leg
    #[arg(long)]
    pub explain: bool,
}

#[derive(Args)]
pub(crate) struct Embed {
    /// The collection
    pub collection: String,
    /// Back to the built-in model
    #[arg(long)]
    pub built_in: bool,
}

#[derive(Args)]
pub(crate) struct Eval {
    /// Folders to measure; an average follows when there are several
    #[arg(required = true, value_name = "DIR")]
    pub folders: Vec<PathBuf>,
    /// Only the first N queries
    #[arg(long, value_name = "N")]
    pub queries: Option<usize>,
}

#[derive(Args)]
pub(crate) struct Grep {
    /// The regular expression
    pub pattern: String,
    /// Globs, folders or names; everything when none is given
    pub paths: Vec<String>,
    /// Only this collection
    #[arg(long)]
    pub collection: Option<String>,
    /// Upper and lower case are the same
    #[arg(short, long)]
    pub ignore_case: bool,
    /// Whole words only
    #[arg(short = 'w', long)]
    pub word: bool,
    /// Lines that do not match
    #[arg(short = 'v', long)]
    pub invert: bool,
    /// No line numbers
    #[arg(short = 'N', long)]
    pub no_line_numbers: bool,
    /// No file names
    #[arg(short = 'I', long)]
    pub no_filename: bool,
    /// Only how many lines match, by document
    #[arg(short, long)]
    pub count: bool,
    /// Only documents with a match
    #[arg(short = 'l', long)]
    pub files_with_matches: bool,
    /// Only documents without one
    #[arg(short = 'L', long, conflicts_with = "files_with_matches")]
    pub files_without_match: bool,
    /// Lines of context after a match
    #[arg(short = 'A', long, value_name = "N", default_value = "0")]
    pub after_context: u64,
    /// Lines of context before a match
    #[arg(short = 'B', long, value_name = "N", default_value = "0")]
    pub before_context: u64,
    /// Lines of context before and after a match
    #[arg(short = 'C', long, value_name = "N", default_value = "0")]
    pub context: u64,
    /// Stop after N matching lines of a document
    #[arg(short, long, value_name = "N", default_value = "0")]
    pub max_count: u64,
}

#[derive(Args)]
pub(crate) struct Update {
    /// Hash, path, end of a path, or title
    pub document: String,
    /// Metadata to set; may be repeated
    #[arg(short, long = "metadata", value_name = "KEY=VALUE")]
    pub metadata: Vec<String>,
    /// Tag to add; may be repeated
    #[arg(short, long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,
    /// Tag to remove; may be repeated
    #[arg(long = "untag", value_name = "TAG")]
    pub untags: Vec<String>,
    /// Look only in this collection
    #[arg(short, long)]
    pub collection: Option<String>,
}

#[derive(Args)]
pub(crate) struct Status {
    /// Collections, snapshots and storage as well
    #[arg(short, long)]
    pub detailed: bool,
    /// Breakdown by type as well
    #[arg(short = 't', long)]
    pub file_types: bool,
}

#[derive(Subcommand)]
pub(crate) enum Snapshot {
    /// Freeze a collection as it is now
    Create {
        /// The collection
        #[arg(default_value = "default")]
        collection: String,
        /// Label
        #[arg(short, long)]
        label: Option<String>,
    },
    /// List snapshots, newest first
    List {
        /// Only of this collection
        #[arg(short, long)]
        collection: Option<String>,
    },
}

#[derive(Args)]
pub(crate) struct Restore {
    /// Folder to write into
    #[arg(value_name = "DIR")]
    pub output: PathBuf,
    /// From this collection
    #[arg(short, long)]
    pub collection: Option<String>,
    /// From this snapshot
    #[arg(short, long, value_name = "ID")]
    pub snapshot: Option<String>,
    /// From the newest snapshot with this label
    #[arg(short, long)]
    pub label: Option<String>,
    /// How target paths are made
    #[arg(long, default_value = "{path}", value_name = "TEMPLATE")]
    pub layout: String,
    /// Only what fits; may be repeated
    #[arg(long, value_name = "GLOB")]
    pub include: Vec<String>,
    /// Not what fits; may be repeated
    #[arg(long, value_name = "GLOB")]
    pub exclude: Vec<String>,
    /// Replace files that exist
    #[arg(long)]
    pub overwrite: bool,
    /// Only show what would happen
    #[arg(short = 'd', long)]
    pub dry_run: bool,
}

#[derive(Args)]
pub(crate) struct Delete {
    /// Paths, ends of paths, or titles
    pub names: Vec<String>,
    /// Everything that fits this pattern
    #[arg(short, long)]
    pub pattern: Option<String>,
    /// Only in this collection
    #[arg(short, long)]
    pub collection: Option<String>,
    /// Only show what would go
    #[arg(short = 'd', long)]
    pub dry_run: bool,
}

#[derive(Args)]
pub(crate) struct CallTool {
    /// The tool
    pub tool: String,
    /// Its arguments as a JSON object
    #[arg(default_value = "{}")]
    pub arguments: String,
}

#[derive(Subcommand)]
pub(crate) enum Token {
    /// Make a personal access token for the account local; it is shown once
    Create {
        /// What to call it
        #[arg(long, default_value = "command line")]
        label: String,
        /// Days until it expires
        #[arg(long, value_name = "DAYS")]
        expires_in_days: Option<u32>,
    },
    /// List tokens, without their text
    List,
    /// Revoke a token
    Revoke {
        /// Its id
        id: String,
    },
}

#[derive(Args)]
pub(crate) struct Gc {
    /// Show what would be freed, and free nothing
    #[arg(long)]
    pub plan: bool,
    /// Keep the newest N snapshots of each collection
    #[arg(long, value_name = "N")]
    pub keep_last: Option<u64>,
    /// Keep snapshots younger than DAYS
    #[arg(long, value_name = "DAYS")]
    pub keep_within: Option<u64>,
    /// Keep the newest snapshot of each of the last N days that have one
    #[arg(long, value_name = "N")]
    pub keep_daily: Option<u64>,
    /// Labelled snapshots may go too
    #[arg(long, action = ArgAction::SetTrue)]
    pub drop_labelled: bool,
    /// Wait up to SECONDS for adds that are under way
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub wait: u64,
}

#[derive(Subcommand)]
pub(crate) enum Config {
    /// Print each setting, its value and its origin
    Show,
    /// Print the commented default file
    Default,
}
