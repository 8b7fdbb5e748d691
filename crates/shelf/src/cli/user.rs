//! The arguments of `shelf user`.

use clap::{Args, Subcommand};

#[derive(Subcommand)]
pub(crate) enum User {
    /// Make an account; its password is asked for, or read from standard input
    Create {
        /// Username
        username: String,
        /// Email address
        #[arg(long)]
        email: String,
        /// Make it an administrator
        #[arg(long)]
        admin: bool,
    },
    /// List accounts, newest first
    List {
        /// Only those whose username or email holds this
        query: Option<String>,
    },
    /// Show one account
    Show {
        /// Its id, username or email
        user: String,
    },
    /// Change an account
    Update(Update),
    /// Delete an account with everything of its own: collections, documents, snapshots and tokens
    Delete {
        /// Its id, username or email
        user: String,
        /// Delete it; without this, only say what would go
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Args)]
pub(crate) struct Update {
    /// Its id, username or email
    pub user: String,
    /// New email address
    #[arg(long)]
    pub email: Option<String>,
    /// New username
    #[arg(long)]
    pub username: Option<String>,
    /// Ask for a new password, or read it from standard input
    #[arg(long)]
    pub password: bool,
    /// Whether its tokens work
    #[arg(long, value_name = "BOOL")]
    pub active: Option<bool>,
    /// Whether it is an administrator
    #[arg(long, value_name = "BOOL")]
    pub admin: Option<bool>,
}
