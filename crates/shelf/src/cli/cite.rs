//! The arguments of `shelf cite`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Subcommand)]
pub(crate) enum Cite {
    /// Add files and folders as citable resources, and print the tree of each
    Add(Add),
    /// List citable resources
    List,
    /// Print the tree of a resource, or the evidence at an address or node
    Show(Show),
    /// Verify every citation address in text files against the library; exits with 1 if one does not hold
    Check {
        /// Files to read; `-` reads from stdin
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Import the maps in a .resource_maps folder, checked against the real documents
    Import {
        /// Folder with one JSON file per resource
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Print the map of a resource as JSON, or write the maps of all resources to a folder
    Export(Export),
    /// Replace the map of a resource with one made by a person or a model, checked against the real document
    SetMap(SetMap),
}

impl Cite {
    /// Whether a library is made if there is none.
    pub(crate) const fn creates(&self) -> bool {
        matches!(self, Self::Add(_) | Self::Import { .. })
    }
}

#[derive(Args)]
pub(crate) struct Add {
    /// Files and folders to add
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Resource ID; defaults to the file name without its extension (single file only)
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Collection to add to
    #[arg(short, long)]
    pub collection: Option<String>,
}

#[derive(Args)]
pub(crate) struct Show {
    /// Citation address such as doc://book#pages=3-4, or resource ID
    pub target: String,
    /// Node of the resource; without one, the tree is printed
    pub node: Option<String>,
    /// Write the evidence to this file
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Overwrite the file if it exists
    #[arg(long, requires = "output")]
    pub overwrite: bool,
}

#[derive(Args)]
pub(crate) struct Export {
    /// Resource ID; all resources if omitted
    pub resource: Option<String>,
    /// Folder to write RESOURCE.json files to
    #[arg(short, long, value_name = "DIR", required_unless_present = "resource")]
    pub output: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct SetMap {
    /// Resource ID
    pub resource: String,
    /// JSON file with the map, as `shelf cite export` prints it; `-` reads from stdin
    #[arg(value_name = "FILE", required_unless_present = "remove")]
    pub file: Option<PathBuf>,
    /// The map was made by a model
    #[arg(long)]
    pub model: bool,
    /// Go back to the map that is made from the document
    #[arg(long, conflicts_with_all = ["file", "model"])]
    pub remove: bool,
}
