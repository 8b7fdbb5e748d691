//! The command-line interface, defined with clap.

pub(crate) mod books;
pub(crate) mod cite;
pub(crate) mod examples;
pub(crate) mod find;
pub(crate) mod graph;
mod names;
pub(crate) mod setup;
pub(crate) mod transfer;
mod upkeep;
mod usage;
mod user;
pub(crate) mod workspace;

use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
pub(crate) use upkeep::{Config, Gc, Token};
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

impl Arguments {
    /// Reads the command line.
    pub(crate) fn read() -> Self {
        let command = examples::with_examples(<Self as clap::CommandFactory>::command());
        let matches = command.try_get_matches().unwrap_or_else(|error| usage::exit(error));
        <Self as clap::FromArgMatches>::from_arg_matches(&matches).unwrap_or_else(|error| usage::exit(error))
    }
}

/// The heading of the options that every command has.
const GLOBAL: &str = "Global options";

/// Options shared by all commands.
#[derive(Args)]
pub(crate) struct Global {
    /// Library folder [env: SHELF_DATA_DIR]
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Database that holds the catalog, such as postgres://shelf@db/shelf [env: SHELF_CATALOG]
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "ADDRESS")]
    pub catalog: Option<String>,
    /// Settings file [env: SHELF_CONFIG]
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print data as JSON
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub json: bool,
    /// Print only data and errors
    #[arg(short, long, global = true, help_heading = GLOBAL)]
    pub quiet: bool,
    /// When to use colours
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "WHEN", default_value = "auto")]
    pub color: ColorChoice,
    /// Log level: error, warn, info, debug, trace [env: SHELF_LOG_LEVEL]
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "LEVEL")]
    pub log_level: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum ColorChoice {
    Auto,
    Always,
    Never,
}

/// The subcommands.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Serve the library to agents: MCP over stdio, or over HTTP with --http
    Serve(Serve),
    /// Set up the clients that agents run in, such as Claude Code, Cursor or VS Code
    #[command(subcommand)]
    Client(setup::Client),
    /// Open the web console in a browser, signed in; serves the library if nothing does yet
    Open {
        /// Only print the link, which works once and for half a minute
        #[arg(long)]
        print: bool,
    },
    /// Store files, folders, or content from stdin
    Add(Add),
    /// Keep folders and the library in step: store what is new or changed, forget what is gone
    Watch(Watch),
    /// Download URLs and store their content
    Download(Download),
    /// Print a document, or write it to a file
    Get(Get),
    /// List documents
    #[command(visible_alias = "ls")]
    List(List),
    /// Search documents by keywords and by meaning
    Search(find::Search),
    /// Search the text of documents with a regular expression
    Grep(find::Grep),
    /// Cite documents exactly: trees, evidence, and checks of citations
    #[command(subcommand)]
    Cite(cite::Cite),
    /// Show what is connected to a document, and why
    Graph(graph::Graph),
    /// Change the metadata and tags of a document
    Update(Update),
    /// Show statistics about the library
    Status(Status),
    /// List collections
    Collections,
    /// Create and list snapshots
    #[command(subcommand)]
    Snapshot(Snapshot),
    /// Restore a collection or snapshot into a folder
    Restore(Restore),
    /// Delete documents; snapshots keep their content
    #[command(visible_alias = "rm")]
    Delete(Delete),
    /// Import documents, books and maps from other programs, or what `shelf export` wrote
    #[command(subcommand)]
    Import(transfer::Import),
    /// Write a collection to a folder, with a manifest of titles, tags, metadata and times
    Export(transfer::Export),
    /// Load a small sample library and show what to try
    Demo(transfer::Demo),
    /// List the tools that agents are offered, or describe one
    Tools(transfer::Tools),
    /// Call any tool with JSON arguments, as an agent would
    Call(CallTool),
    /// Create, list, update and delete accounts
    #[command(subcommand)]
    User(User),
    /// Create, import, export and look back at books
    #[command(subcommand)]
    Books(books::Books),
    /// Read workspace files, and append to and query workspace memory
    Workspace(workspace::Workspace),
    /// Create, list and revoke tokens for HTTP access
    #[command(subcommand)]
    Token(Token),
    /// Verify every block, document, snapshot and journal row
    Check {
        /// Take damaged packs out of use, so that adding the affected files again repairs them
        #[arg(long)]
        repair: bool,
        /// Only check the workspace's memory files against what was appended to them
        #[arg(long, conflicts_with = "repair")]
        memory: bool,
        /// Only verify the chain of journal records and the rows that they vouch for
        #[arg(long, conflicts_with_all = ["repair", "memory"])]
        audit: bool,
        /// Workspace folder for --memory; defaults to the configured one, or the working directory
        #[arg(long, value_name = "DIR", requires = "memory")]
        workspace: Option<PathBuf>,
    },
    /// Rebuild the search index
    Reindex,
    /// Search a collection with the configured embedding model, and create its vectors
    Embed(Embed),
    /// Give passages the better vectors of the built-in deep model now, instead of waiting until the server is idle
    Deepen {
        /// Collection to deepen; everything when not given
        collection: Option<String>,
    },
    /// Measure search quality on folders with corpus.jsonl, queries.jsonl and qrels.tsv
    Eval(Eval),
    /// Free unused storage; snapshots are kept unless a retention rule is given
    Gc(Gc),
    /// Rebuild a lost or damaged catalog from the library's own recovery copy
    Recover {
        /// Keep the current catalog, even though the recovery copy has more or different records
        #[arg(long, conflicts_with = "force")]
        keep_catalog: bool,
        /// Go back to the recovery copy, even though the catalog is intact and newer
        #[arg(long)]
        force: bool,
    },
    /// Write the whole library to one file, verified, while others may go on using it
    Backup {
        /// File to create; nothing is overwritten
        file: PathBuf,
    },
    /// Make a library from a backup, verified; use --data-dir to say where
    RestoreLibrary {
        /// File that `shelf backup` made
        file: PathBuf,
    },
    /// Move the packs or the catalog of the library to another place, verified
    Migrate {
        /// Where to: s3://bucket/prefix or folder for the packs, postgres://user@host/database or sqlite for the catalog
        #[arg(long, value_name = "PLACE")]
        to: String,
        /// Delete packs, index segments and library.id at the old place when all has arrived
        #[arg(long)]
        delete_old: bool,
    },
    /// Diagnose this installation
    Doctor,
    /// Serve over HTTP in the background, as a systemd unit
    #[command(subcommand)]
    Service(setup::Service),
    /// Show the settings and where each value comes from
    #[command(subcommand)]
    Config(Config),
    /// Print shell completions
    Completions {
        /// Shell to generate completions for
        shell: Shell,
    },
    /// Generate manual pages
    Man {
        /// Folder to write the pages to; prints the main page if omitted
        #[arg(value_name = "DIR")]
        folder: Option<PathBuf>,
    },
    /// Render the reference pages
    #[command(hide = true)]
    Docs {
        /// Folder to write the pages to
        #[arg(long, value_name = "DIR")]
        output: PathBuf,
    },
}

#[derive(Args, Default)]
pub(crate) struct Serve {
    /// Serve over HTTP, on ADDR or the configured address
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = "")]
    pub http: Option<String>,
    /// Require no token and treat every caller as the owner; loopback only
    #[arg(long, requires = "http")]
    pub no_auth: bool,
    /// Address for Prometheus metrics, or `off`
    #[arg(long, value_name = "ADDR")]
    pub admin_listen: Option<String>,
    /// Workspace folder
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    /// Toolsets to offer, comma-separated
    #[arg(long, value_name = "LIST")]
    pub toolsets: Option<String>,
    /// Offer only these tools, comma-separated
    #[arg(long, value_name = "LIST")]
    pub tools: Option<String>,
    /// Tools not to offer, comma-separated
    #[arg(long, value_name = "LIST")]
    pub exclude_tools: Option<String>,
    /// Offer only read-only tools
    #[arg(long)]
    pub read_only: bool,
}

#[derive(Args)]
pub(crate) struct Add {
    /// Files and folders to add; `-` reads from stdin (requires --name)
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Name for content read from stdin
    #[arg(long)]
    pub name: Option<String>,
    /// Collection to add to
    #[arg(short, long)]
    pub collection: Option<String>,
    /// Tag to add; may be repeated
    #[arg(short, long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,
    /// Metadata to set; may be repeated
    #[arg(short, long = "metadata", value_name = "KEY=VALUE")]
    pub metadata: Vec<String>,
    /// Snapshot label
    #[arg(short, long)]
    pub label: Option<String>,
    /// Add only files that match this glob; may be repeated
    #[arg(long, value_name = "GLOB")]
    pub include: Vec<String>,
    /// Skip files that match this glob; may be repeated
    #[arg(long, value_name = "GLOB")]
    pub exclude: Vec<String>,
    /// Also delete documents of a folder whose files are gone; snapshots keep them
    #[arg(long)]
    pub prune: bool,
    /// Do not descend into subfolders
    #[arg(long)]
    pub flat: bool,
    /// MIME type, overriding detection
    #[arg(long, value_name = "TYPE")]
    pub mime_type: Option<String>,
    /// Resource ID for citations
    #[arg(long, value_name = "ID")]
    pub resource_id: Option<String>,
    /// Do not index now; the next search updates the index
    #[arg(long)]
    pub no_index: bool,
}

#[derive(Args)]
pub(crate) struct Watch {
    /// Folders to watch; .gitignore is honoured
    #[arg(required = true, value_name = "DIR")]
    pub folders: Vec<PathBuf>,
    /// Collection to add to
    #[arg(short, long)]
    pub collection: Option<String>,
    /// Keep documents whose files are gone
    #[arg(long)]
    pub keep: bool,
    /// Bring the library up to date once and exit
    #[arg(long)]
    pub once: bool,
}

#[derive(Args)]
pub(crate) struct Download {
    /// URLs to download (http or https)
    #[arg(required = true, value_name = "URL")]
    pub urls: Vec<String>,
    /// Expected checksum: sha256:…, sha512:…, md5:… or blake3:… (single URL only)
    #[arg(long, value_name = "SUM")]
    pub checksum: Option<String>,
    /// Name to store the document under (single URL only)
    #[arg(long)]
    pub name: Option<String>,
    /// Collection to add to
    #[arg(short, long)]
    pub collection: Option<String>,
    /// Tag to add; may be repeated
    #[arg(short, long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,
    /// Metadata to set; may be repeated
    #[arg(short, long = "metadata", value_name = "KEY=VALUE")]
    pub metadata: Vec<String>,
    /// Snapshot label
    #[arg(short, long)]
    pub label: Option<String>,
}

#[derive(Args)]
pub(crate) struct Get {
    /// Hash, path, end of the path, title, ID or citation address of the document; several are printed one after another
    #[arg(required = true, value_name = "DOCUMENT", value_parser = names::parser())]
    pub documents: Vec<String>,
    /// Write the content to this file instead of stdout (single document only)
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Overwrite the file if it exists
    #[arg(long, requires = "output")]
    pub overwrite: bool,
    /// Look only in this collection
    #[arg(short, long)]
    pub collection: Option<String>,
    /// First line to print
    #[arg(long, value_name = "N")]
    pub start_line: Option<u64>,
    /// Last line to print
    #[arg(long, value_name = "N")]
    pub end_line: Option<u64>,
    /// Print information about the document instead of its content
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
    /// Require all of the tags
    #[arg(long)]
    pub all_tags: bool,
    /// Type of document: text, binary, image, audio, video, document, archive or code
    #[arg(long, value_name = "KIND")]
    pub r#type: Option<String>,
    /// File extensions, comma-separated
    #[arg(short, long, value_name = "EXT")]
    pub extension: Option<String>,
    /// MIME type, or a family such as image/*
    #[arg(long)]
    pub mime: Option<String>,
    /// Only files modified at or after TIME, such as 7d or 2026-01-31
    #[arg(long, value_name = "TIME")]
    pub modified_after: Option<String>,
    /// Only documents stored at or after TIME
    #[arg(long, value_name = "TIME")]
    pub indexed_after: Option<String>,
    /// Only the N most recently stored documents
    #[arg(short, long, value_name = "N")]
    pub recent: Option<u64>,
    /// Sort key: name, size, created, modified or indexed
    #[arg(short, long, value_name = "KEY")]
    pub sort: Option<String>,
    /// Sort in descending order
    #[arg(long)]
    pub descending: bool,
    /// Show at most N documents
    #[arg(short = 'n', long, value_name = "N")]
    pub limit: Option<u64>,
    /// Print only paths, one per line
    #[arg(short, long)]
    pub paths: bool,
}

#[derive(Args)]
pub(crate) struct Embed {
    /// Collection to switch
    pub collection: String,
    /// Switch back to the built-in model
    #[arg(long)]
    pub built_in: bool,
}

#[derive(Args)]
pub(crate) struct Eval {
    /// Folders to measure; multiple folders are also averaged
    #[arg(required = true, value_name = "DIR")]
    pub folders: Vec<PathBuf>,
    /// Run only the first N queries
    #[arg(long, value_name = "N")]
    pub queries: Option<usize>,
    /// Give this share of the passages vectors of the deep model first
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub deepen: Option<u8>,
    /// Store documents one by one with their titles, as store_document_tool does, instead of adding files
    #[arg(long)]
    pub stored: bool,
}

#[derive(Args)]
pub(crate) struct Update {
    /// Hash, path, end of the path, or title of the document
    #[arg(value_parser = names::parser())]
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
    /// Include collections, snapshots and storage
    #[arg(long)]
    pub detailed: bool,
    /// Include a breakdown by file type
    #[arg(long)]
    pub file_types: bool,
}

#[derive(Subcommand)]
pub(crate) enum Snapshot {
    /// Create a snapshot of a collection as it is now
    Create {
        /// Collection to snapshot
        #[arg(default_value = "default")]
        collection: String,
        /// Snapshot label
        #[arg(short, long)]
        label: Option<String>,
    },
    /// List snapshots, newest first
    List {
        /// Only snapshots of this collection
        #[arg(short, long)]
        collection: Option<String>,
    },
}

#[derive(Args)]
#[command(group = ArgGroup::new("source").required(true).multiple(true).args(["collection", "snapshot", "label"]))]
pub(crate) struct Restore {
    /// Folder to restore into
    #[arg(value_name = "DIR")]
    pub output: PathBuf,
    /// Restore from this collection
    #[arg(short, long)]
    pub collection: Option<String>,
    /// Restore from this snapshot
    #[arg(long, value_name = "ID")]
    pub snapshot: Option<String>,
    /// Restore from the newest snapshot with this label
    #[arg(short, long)]
    pub label: Option<String>,
    /// Template for target paths
    #[arg(long, default_value = "{path}", value_name = "TEMPLATE")]
    pub layout: String,
    /// Restore only files that match this glob; may be repeated
    #[arg(long, value_name = "GLOB")]
    pub include: Vec<String>,
    /// Skip files that match this glob; may be repeated
    #[arg(long, value_name = "GLOB")]
    pub exclude: Vec<String>,
    /// Overwrite existing files
    #[arg(long)]
    pub overwrite: bool,
    /// Show what would be restored without writing anything
    #[arg(short = 'd', long)]
    pub dry_run: bool,
}

#[derive(Args)]
pub(crate) struct Delete {
    /// Paths, ends of paths, or titles of the documents
    #[arg(required_unless_present = "pattern", value_parser = names::parser())]
    pub names: Vec<String>,
    /// Delete every document whose path matches this pattern
    #[arg(short = 'g', long, value_name = "GLOB")]
    pub pattern: Option<String>,
    /// Only in this collection
    #[arg(short, long)]
    pub collection: Option<String>,
    /// Show what would be deleted without deleting anything
    #[arg(short = 'd', long)]
    pub dry_run: bool,
}

#[derive(Args)]
pub(crate) struct CallTool {
    /// Tool name
    pub tool: String,
    /// Tool arguments, as a JSON object
    #[arg(default_value = "{}")]
    pub arguments: String,
}
