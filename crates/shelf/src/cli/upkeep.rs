//! The arguments of `shelf token`, `shelf gc` and `shelf config`.

use clap::{ArgAction, Args, Subcommand};

#[derive(Subcommand)]
pub(crate) enum Token {
    /// Create a personal access token for the `local` account; it is shown only once
    Create {
        /// Token label
        #[arg(long, default_value = "command line")]
        label: String,
        /// Days until the token expires
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..))]
        expires_in_days: Option<u32>,
    },
    /// List tokens, without their secret text
    List,
    /// Revoke a token
    Revoke {
        /// Token ID
        id: String,
    },
}

impl Token {
    /// Whether a library is made if there is none.
    pub(crate) const fn creates(&self) -> bool {
        matches!(self, Self::Create { .. })
    }
}

#[derive(Args)]
pub(crate) struct Gc {
    /// Show what would be freed without freeing anything
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
    /// Apply the retention rules to labelled snapshots too
    #[arg(long, action = ArgAction::SetTrue)]
    pub drop_labelled: bool,
    /// Do not ask before deleting every snapshot of a collection
    #[arg(short, long)]
    pub yes: bool,
    /// Wait up to SECONDS for running adds to finish
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub wait: u64,
}

#[derive(Subcommand)]
pub(crate) enum Config {
    /// Print each setting, its value and its origin
    Show,
    /// Print the default settings file, with comments
    Default,
}
