//! What the console needs of the server that it runs in.

use serde_json::Value;
use shelf_tools::{Answer, ErrorReply};

/// Who looks at the pages.
#[derive(Clone, Debug, Default)]
pub struct Visitor {
    /// A name to greet with: of the account, or the label of the token.
    pub name: String,
    /// What kind of identity it is, in words: "owner", "account", "personal token", "collection token".
    pub kind: &'static str,
    /// Whether it may write.
    pub may_write: bool,
    /// Whether it may administer.
    pub may_administer: bool,
    /// Whether it is a person, who manages personal tokens and has sessions.
    pub is_person: bool,
    /// Whether there is a session to sign out of.
    pub can_sign_out: bool,
    /// What forms carry to prove that they come from a page of this visitor.
    pub proof: String,
}

/// What a person does with an account; everything else is a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountAction {
    /// Lists personal tokens.
    Tokens,
    /// Makes a personal token.
    CreateToken {
        /// What its owner calls it.
        label: String,
        /// What it may do: READ, WRITE, ADMIN.
        scopes: Vec<String>,
        /// After how many days it stops working.
        days: Option<u64>,
    },
    /// Replaces the text of a personal token.
    RotateToken(String),
    /// Revokes a personal token.
    RevokeToken(String),
    /// The account itself.
    Profile,
    /// How much it uses.
    Usage,
    /// Lists sessions.
    Sessions,
    /// Ends a session.
    EndSession(String),
    /// Changes the password.
    ChangePassword {
        /// The present one.
        current: String,
        /// The new one.
        new: String,
    },
}

/// The server, as one visitor may use it.
pub trait Host {
    /// Who looks.
    fn visitor(&self) -> &Visitor;
    /// Whether the policy table lets the visitor call a tool.
    fn may(&self, tool: &str) -> bool;
    /// Calls a tool as the visitor.
    fn call(&self, tool: &str, arguments: Value) -> Result<Answer, ErrorReply>;
    /// Does something with the visitor's account.
    fn account(&self, action: AccountAction) -> Result<Value, ErrorReply>;
}
