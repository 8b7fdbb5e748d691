//! Errors of commands: a message, hints and an exit code.

use shelf_base::{ErrorInfo, Kind};
use shelf_tools::{ErrorReply, Family, Tool};

use crate::output::Output;

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct CliError {
    pub code: &'static str,
    pub message: String,
    pub hints: Vec<String>,
    /// What went wrong with each of several things; in JSON only, since it was said before.
    pub details: Vec<String>,
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
        Self {
            code: row.code,
            message: message.into(),
            hints: Vec::new(),
            details: Vec::new(),
            exit: row.exit,
            body: None,
            is_notice: false,
        }
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

/// What went wrong with some of several things, of which one that fails does not stop the others.
pub(crate) struct Setbacks {
    of: usize,
    all: Vec<(String, CliError)>,
}

impl Setbacks {
    /// For so many things.
    pub(crate) const fn new(of: usize) -> Self {
        Self { of, all: Vec::new() }
    }

    /// Takes in a failure and reports it, unless all is said in one JSON document at the end. A single thing simply fails,
    /// and so does everything when the user wants to stop.
    pub(crate) fn take(&mut self, name: &str, error: CliError, output: &Output) -> Outcome {
        if self.of == 1 || error.code == Kind::Cancelled.row().code {
            return Err(error);
        }
        if !output.json {
            output.error(&error);
        }
        self.all.push((name.to_owned(), error));
        Ok(())
    }

    /// The failure of the whole, if there is one, with the names of what failed.
    pub(crate) fn end(self, what: &str) -> Outcome {
        let Some((_, last)) = self.all.last() else { return Ok(()) };
        let (code, exit) = (last.code, last.exit);
        let names: Vec<&str> = self.all.iter().map(|(name, _)| name.as_str()).collect();
        let message = format!("{what}: {}", names.join(", "));
        let details = self.all.iter().map(|(_, error)| error.message.clone()).collect();
        Err(CliError { code, message, hints: Vec::new(), details, exit, body: None, is_notice: false })
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

/// Why the system refused something, in lower-case words and without its number.
pub(crate) fn reason(error: &std::io::Error) -> String {
    let whole = error.to_string();
    let words = whole.split(" (os error").next().unwrap_or(&whole);
    let mut signs = words.chars();
    match (signs.next(), signs.next()) {
        (Some(first), Some(second)) if second.is_lowercase() => {
            first.to_lowercase().chain(words.chars().skip(1)).collect()
        }
        _ => words.to_owned(),
    }
}

impl From<std::io::Error> for CliError {
    fn from(error: std::io::Error) -> Self {
        Self::new(Kind::of_io(&error), reason(&error))
    }
}

impl From<anyhow::Error> for CliError {
    fn from(error: anyhow::Error) -> Self {
        Self::new(Kind::Invalid, format!("{error:#}"))
    }
}
