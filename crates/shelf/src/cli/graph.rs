//! Arguments of `shelf graph`.

use std::path::PathBuf;

use clap::Args;

/// `shelf graph`.
#[derive(Args)]
pub(crate) struct Graph {
    /// Document to begin at: its path, the end of its path, its title, or a node key such as tag:NAME
    #[arg(required_unless_present_any = ["stats", "read_only"])]
    pub file: Option<String>,
    /// How many steps to go, from 1 to 5
    #[arg(long, value_name = "N", default_value = "2")]
    pub depth: u64,
    /// Follow incoming edges: who links to it, imports or calls it
    #[arg(long)]
    pub reverse: bool,
    /// Follow only this relation; may be repeated
    #[arg(long, value_name = "NAME")]
    pub relation: Vec<String>,
    /// Only documents of this snapshot, as it has them
    #[arg(long, value_name = "ID")]
    pub snapshot: Option<String>,
    /// Maximum number of nodes
    #[arg(long, value_name = "N", default_value = "200")]
    pub limit: u64,
    /// Print a graph for Graphviz
    #[arg(long, conflicts_with = "mermaid")]
    pub dot: bool,
    /// Print a Mermaid diagram
    #[arg(long)]
    pub mermaid: bool,
    /// Read the facts of every file of a folder without storing anything, and print how many bytes they take
    #[arg(long, value_name = "DIR", hide = true)]
    pub read_only: Option<PathBuf>,
    /// Show the most connected documents, those without connections, and broken links
    #[arg(long, conflicts_with_all = ["file", "reverse", "relation", "snapshot", "dot", "mermaid"])]
    pub stats: bool,
}
