//! The arguments of `shelf user`.

use clap::{Args, Subcommand};

#[derive(Subcommand)]
pub(crate) enum User {
    /// Create an account; the password is prompted for, or read from stdin
    Create {
        /// Username
        username: String,
        /// Email address
        #[arg(long)]
        email: String,
        /// Make the account an administrator
        #[arg(long)]
        admin: bool,
    },
    /// List accounts, newest first
    List {
        /// Only accounts whose username or email contains this text
        query: Option<String>,
    },
    /// Show one account
    Show {
        /// ID, username or email of the account
        user: String,
    },
    /// Change an account
    Update(Update),
    /// Delete an account and everything it owns: collections, documents, snapshots and tokens
    Delete {
        /// ID, username or email of the account
        user: String,
        /// Confirm the deletion; without this flag, nothing is deleted
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Args)]
pub(crate) struct Update {
    /// ID, username or email of the account
    pub user: String,
    /// New email address
    #[arg(long)]
    pub email: Option<String>,
    /// New username
    #[arg(long)]
    pub username: Option<String>,
    /// Prompt for a new password, or read it from stdin
    #[arg(long)]
    pub password: bool,
    /// Whether the account is active; tokens of inactive accounts do not work
    #[arg(long, value_name = "BOOL")]
    pub active: Option<bool>,
    /// Whether the account is an administrator
    #[arg(long, value_name = "BOOL")]
    pub admin: Option<bool>,
}
