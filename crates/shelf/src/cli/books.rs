//! The arguments of `shelf books`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Subcommand)]
pub(crate) enum Books {
    /// Create an empty book
    Create(Create),
    /// List books
    #[command(visible_alias = "ls")]
    List,
    /// Change the title, status or visibility of a book
    Set(Set),
    /// Import a folder or ZIP file of Markdown and media as a book
    Import(Import),
    /// Write a book to a folder, with every file where it was when it was imported
    Export(Export),
    /// Show who changed what in a book, or in one of its files
    History(History),
    /// Show how a file differs from an earlier version of it
    Diff(Diff),
    /// Bring back an earlier version of a file
    Restore(Restore),
    /// Write a whole book to a ZIP file
    Archive(Archive),
    /// Sign the URLs of assets, uploads and archives with a new key
    RotateUrls {
        /// Make URLs that were given out before stop working at once, instead of at the next rotation
        #[arg(long)]
        now: bool,
    },
}

impl Books {
    /// Whether a library is made if there is none.
    pub(crate) const fn creates(&self) -> bool {
        matches!(self, Self::Create(_) | Self::Import(_))
    }
}

#[derive(Args)]
pub(crate) struct Create {
    /// Book identifier: lowercase letters, digits and hyphens
    pub book: String,
    /// Title
    #[arg(long)]
    pub title: Option<String>,
}

#[derive(Args)]
pub(crate) struct Set {
    /// Book identifier
    pub book: String,
    /// New title
    #[arg(long)]
    pub title: Option<String>,
    /// New status; a book that is archived or migrating takes no writes
    #[arg(long, value_parser = ["active", "archived", "migrating"])]
    pub status: Option<String>,
    /// Whether anyone may download its assets without a signed URL
    #[arg(long, value_name = "BOOL")]
    pub public: Option<bool>,
}

#[derive(Args)]
pub(crate) struct Import {
    /// Book identifier; the book is created if it does not exist
    pub book: String,
    /// Folder or ZIP file to import
    pub folder: PathBuf,
    /// Title
    #[arg(long)]
    pub title: Option<String>,
}

#[derive(Args)]
pub(crate) struct Export {
    /// Book identifier
    pub book: String,
    /// Folder to write to; other files in it stay
    pub folder: PathBuf,
    /// Replace files that are there with other content
    #[arg(long)]
    pub overwrite: bool,
}

#[derive(Args)]
pub(crate) struct History {
    /// Book identifier
    pub book: String,
    /// Path within the book
    pub path: Option<String>,
    /// Show only the newest N changes
    #[arg(short = 'n', long, value_name = "N", default_value = "50")]
    pub limit: usize,
}

#[derive(Args)]
pub(crate) struct Diff {
    /// Book identifier
    pub book: String,
    /// Path within the book
    pub path: String,
    /// Hash of the older version, or its beginning; defaults to the version before the newest
    pub old: Option<String>,
    /// Hash of the newer version, or its beginning; defaults to the newest
    pub new: Option<String>,
}

#[derive(Args)]
pub(crate) struct Restore {
    /// Book identifier
    pub book: String,
    /// Path within the book
    pub path: String,
    /// Hash of the version, or its beginning; `shelf books history` shows them
    pub hash: String,
}

#[derive(Args)]
pub(crate) struct Archive {
    /// Book identifier
    pub book: String,
    /// File to write; defaults to BOOK.zip
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Overwrite the file if it exists
    #[arg(long)]
    pub overwrite: bool,
}
