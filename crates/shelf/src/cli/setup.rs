//! The arguments of `shelf client` and `shelf service`.

use clap::{Args, Subcommand, ValueEnum};

#[derive(Subcommand)]
pub(crate) enum Client {
    /// Write the settings with which a client uses this library, or print them
    Add(Add),
    /// List the clients that can be set up, which are installed, and whether their settings work
    #[command(visible_alias = "ls")]
    List {
        /// Only look at the settings; do not start the server that they name
        #[arg(long)]
        no_check: bool,
    },
}

#[derive(Args)]
pub(crate) struct Add {
    /// Clients to set up
    #[arg(required = true, value_enum, value_name = "CLIENT")]
    pub clients: Vec<ClientName>,
    /// Print the settings instead of writing them
    #[arg(long, conflicts_with = "remove")]
    pub print: bool,
    /// Remove the settings again
    #[arg(long)]
    pub remove: bool,
    /// Connect over HTTP, to URL or the configured address, instead of letting the client start its own server
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "")]
    pub http: Option<String>,
    /// Token to connect with; a new one is created if omitted
    #[arg(long, requires = "http")]
    pub token: Option<String>,
    /// Name of the server in the client
    #[arg(long, default_value = "shelfmark")]
    pub name: String,
    /// Write to this folder's own settings instead of yours, for clients that have some
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = ".")]
    pub project: Option<std::path::PathBuf>,
}

/// The clients that can be set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClientName {
    ClaudeCode,
    ClaudeDesktop,
    Cursor,
    Vscode,
    Codex,
    GeminiCli,
    Zed,
    Windsurf,
    Opencode,
    LmStudio,
}

#[derive(Subcommand)]
pub(crate) enum Service {
    /// Install a systemd unit that serves the library over HTTP, and start it
    Install(Install),
    /// Stop the unit and remove it
    Uninstall {
        /// Remove the unit of the whole machine, not of your account
        #[arg(long)]
        system: bool,
    },
    /// Show whether the unit is installed and running
    Status {
        /// The unit of the whole machine, not of your account
        #[arg(long)]
        system: bool,
    },
}

#[derive(Args)]
pub(crate) struct Install {
    /// Print the unit instead of installing it
    #[arg(long)]
    pub print: bool,
    /// Install for the whole machine, to run as a user of its own; needs root
    #[arg(long)]
    pub system: bool,
    /// Address to listen on; defaults to the configured one
    #[arg(long, value_name = "ADDR")]
    pub http: Option<String>,
    /// Install without starting it
    #[arg(long)]
    pub no_start: bool,
}
