//! Errors of commands: a message, hints and an exit code.

use shelf_base::{ErrorInfo, Kind};
use shelf_tools::{ErrorReply, Family, Tool};

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct CliError {
    pub code: &'static str,
    pub message: String,
    pub hints: Vec<String>,
    pub exit: u8,
    /// What is printed as JSON instead, by a command whose errors have a form of their own.
    pub body: Option<String>,
    /// Whether nothing went wrong and only the exit code tells something, such as that nothing matched.
    pub is_notice: bool,
}

pub(crate) type Outcome<T = ()> = Result<T, CliError>;

impl CliError {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        let row = kind.row();
        let (code, message, exit) = (row.code, message.into(), row.exit);
        Self { code, message, hints: Vec::new(), exit, body: None, is_notice: false }
    }

    /// Not a failure: exit code 1 and a plain message, as when nothing matches.
    pub(crate) fn notice(message: impl Into<String>) -> Self {
        Self { exit: 1, is_notice: true, ..Self::new(Kind::NotFound, message) }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The failure of a call, which tools of some families tell in a form of their own.
    pub(crate) fn of_call(tool: &Tool, failure: ErrorReply) -> Self {
        let body = (tool.family == Family::Books).then(|| failure.text.clone());
        Self { body, ..Self::from(failure) }
    }

    pub(crate) fn of(fault: &dyn ErrorInfo) -> Self {
        Self { hints: fault.hints(), ..Self::new(fault.kind(), fault.to_string()) }
    }
}

impl From<ErrorReply> for CliError {
    fn from(failure: ErrorReply) -> Self {
        Self { hints: failure.hints, ..Self::new(failure.kind, failure.message) }
    }
}

impl From<shelf_engine::Error> for CliError {
    fn from(error: shelf_engine::Error) -> Self {
        Self::of(&error)
    }
}

impl From<std::io::Error> for CliError {
    fn from(error: std::io::Error) -> Self {
        Self::new(Kind::of_io(&error), error.to_string())
    }
}

impl From<anyhow::Error> for CliError {
    fn from(error: anyhow::Error) -> Self {
        Self::new(Kind::Invalid, format!("{error:#}"))
    }
}
