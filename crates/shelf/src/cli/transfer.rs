//! The arguments of `shelf import`, `shelf export`, `shelf demo` and `shelf tools`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Subcommand)]
pub(crate) enum Import {
    /// Import what `shelf export` wrote, byte for byte, with titles, tags, metadata and times
    Export {
        /// Folder with manifest.jsonl and the files
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// Collection to import into; defaults to the one that was exported
        #[arg(short, long)]
        collection: Option<String>,
    },
    /// Import documents from a file with one JSON object per line
    Jsonl {
        /// File to read; `-` reads from stdin. Each line has title and text, and may have path, tags, metadata,
        /// mime_type, resource_id, collection, created_at and modified_at
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Collection for documents that name none
        #[arg(short, long, default_value = "default")]
        collection: String,
    },
    /// Import the maps in a .resource_maps folder of CiteKit, checked against the real documents
    Citekit {
        /// Folder with one JSON file per resource
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Import every book of a PanaversityFS storage folder
    Panaversityfs {
        /// Folder with registry.yaml and books/, or the folder books itself
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

#[derive(Args)]
pub(crate) struct Export {
    /// Collection to export
    pub collection: String,
    /// Folder to write to; it must be empty or new
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

#[derive(Args)]
pub(crate) struct Demo {
    /// Delete the demo again
    #[arg(long)]
    pub remove: bool,
}

#[derive(Args)]
pub(crate) struct Tools {
    /// Tool to describe; all are listed if omitted
    pub name: Option<String>,
}
