//! The tool families and the error shape of each.

use serde_json::json;
use shelf_base::{
    ErrorInfo, Kind,
    bounds::{ADDRESS_BYTES, MESSAGE_BYTES},
    clipped,
};
use shelf_engine::{BookError, CitationError, WorkspaceError, book_error_name};

use crate::policy::WRITE_NEEDED;

/// A tool family: one of the contracts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// The content store.
    Store,
    /// Documents, collections, tokens and users.
    Documents,
    /// Repository files and memory.
    Workspace,
    /// Books of lessons.
    Books,
    /// Citations and evidence.
    Citations,
}

/// Why a tool call failed, before its family formats the error.
#[derive(Debug)]
pub(crate) enum ToolError {
    /// The engine failed.
    Engine(shelf_engine::Error),
    /// A book refused.
    Book(BookError),
    /// Something could not be cited.
    Citation(CitationError),
    /// The workspace refused.
    Workspace(WorkspaceError),
    /// The arguments could not be read.
    Unread(Kind, String),
    /// An argument is wrong.
    Argument {
        /// What is wrong.
        message: String,
        /// What to do.
        hints: Vec<String>,
    },
    /// Too many calls.
    RateLimited {
        /// The tool.
        tool: &'static str,
        /// Calls per minute.
        per_minute: u32,
        /// When to try again.
        retry_after_seconds: u64,
    },
    /// The policy table refuses the call.
    Refused(&'static str),
    /// A defect in the program.
    Defect,
}

impl ToolError {
    pub(crate) fn argument(message: impl Into<String>) -> Self {
        Self::Argument { message: message.into(), hints: Vec::new() }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Engine(error) => error.kind(),
            Self::Book(error) => error.kind(),
            Self::Citation(error) => error.kind(),
            Self::Workspace(error) => error.kind(),
            Self::Unread(kind, _) => *kind,
            Self::Argument { .. } => Kind::Invalid,
            Self::RateLimited { .. } => Kind::RateLimited,
            Self::Refused(_) => Kind::Denied,
            Self::Defect => Kind::Internal,
        }
    }

    fn message(&self) -> String {
        match self {
            Self::Engine(error) => error.to_string(),
            Self::Book(error) => error.message(),
            Self::Citation(error) => error.to_string(),
            Self::Workspace(error) => error.to_string(),
            Self::Unread(_, message) | Self::Argument { message, .. } => message.clone(),
            Self::RateLimited { tool, per_minute, retry_after_seconds } => {
                format!(
                    "{tool} may be called {per_minute} times per minute; try again in {retry_after_seconds} s"
                )
            }
            Self::Refused(sentence) => (*sentence).to_owned(),
            Self::Defect => "the tool failed unexpectedly; see the server's log for details".into(),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Engine(error) => error.hints(),
            Self::Argument { hints, .. } => hints.clone(),
            Self::Book(BookError::Engine { error, .. }) => error.hints(),
            Self::Citation(error) => error.hints(),
            Self::Book(_)
            | Self::Workspace(_)
            | Self::Unread(..)
            | Self::RateLimited { .. }
            | Self::Refused(_)
            | Self::Defect => Vec::new(),
        }
    }
}

impl From<shelf_engine::Error> for ToolError {
    fn from(error: shelf_engine::Error) -> Self {
        Self::Engine(error)
    }
}

impl From<BookError> for ToolError {
    fn from(error: BookError) -> Self {
        Self::Book(error)
    }
}

impl From<CitationError> for ToolError {
    fn from(error: CitationError) -> Self {
        Self::Citation(error)
    }
}

impl From<WorkspaceError> for ToolError {
    fn from(error: WorkspaceError) -> Self {
        Self::Workspace(error)
    }
}

/// An error as a caller sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorReply {
    /// Its kind.
    pub kind: Kind,
    /// The text of an error result, in the family's shape.
    pub text: String,
    /// The plain message.
    pub message: String,
    /// What to do next.
    pub hints: Vec<String>,
    /// Seconds after which the call may be retried.
    pub retry_after: Option<u64>,
}

/// The names that errors of the books have.
pub fn book_error_names() -> Vec<&'static str> {
    let mut names = Kind::ALL.map(book_error_name).to_vec();
    names.sort_unstable();
    names.dedup();
    names
}

impl Family {
    /// The name of the family, which is also its toolset.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::Documents => "documents",
            Self::Workspace => "workspace",
            Self::Books => "books",
            Self::Citations => "citations",
        }
    }

    /// An error of the books, as this family's callers see it.
    pub fn error(self, error: BookError) -> ErrorReply {
        self.shape(&ToolError::Book(error))
    }

    /// Formats an error as the family's contract specifies.
    pub(crate) fn shape(self, error: &ToolError) -> ErrorReply {
        self.shape_about(error, None)
    }

    /// The same for a call whose arguments name a path, for families that tell it.
    pub(crate) fn shape_about(self, error: &ToolError, meant: Option<&str>) -> ErrorReply {
        let kind = error.kind();
        let message = match self {
            Self::Documents => document_sentence(error),
            Self::Store | Self::Workspace | Self::Books | Self::Citations => error.message(),
        };
        // What callers send is repeated in messages, and may be megabytes.
        let message = clipped(&message, MESSAGE_BYTES).into_owned();
        let hints: Vec<String> =
            error.hints().iter().map(|hint| clipped(hint, MESSAGE_BYTES).into_owned()).collect();
        let text = match self {
            Self::Store => {
                let lines: Vec<String> =
                    std::iter::once(format!("Error: {message}")).chain(hints.iter().cloned()).collect();
                lines.join("\n")
            }
            // The contract shows plain sentences and nothing else, so what to do stands in the sentence.
            Self::Documents => match error {
                ToolError::Argument { hints, .. } if !hints.is_empty() => {
                    format!("{message}; {}", hints.join("; "))
                }
                _ => message.clone(),
            },
            Self::Citations => {
                let advice: String = hints.iter().map(|hint| format!("; {hint}")).collect();
                format!("Error: {message}{advice}")
            }
            Self::Books => {
                let (name, path) = match error {
                    ToolError::Book(error) => (error.name(), error.path()),
                    _ => (book_error_name(kind), meant.unwrap_or("books")),
                };
                let advice: String = hints.iter().map(|hint| format!("; {hint}")).collect();
                let path = clipped(path, ADDRESS_BYTES);
                let mut body =
                    json!({ "error": name, "message": format!("{message}{advice}"), "path": path });
                if let ToolError::Book(BookError::Conflict { current, .. }) = error {
                    body["current_hash"] = current.map(|hash| hash.to_string()).into();
                }
                body.to_string()
            }
            Self::Workspace => {
                let code = match error {
                    ToolError::Workspace(WorkspaceError::WriteNotAllowed { .. }) => "WRITE_NOT_ALLOWED",
                    ToolError::Refused(sentence) if *sentence == WRITE_NEEDED => "WRITE_NOT_ALLOWED",
                    ToolError::Workspace(WorkspaceError::Io(_)) => "INTERNAL_ERROR",
                    _ => workspace_code(kind),
                };
                let advice: String = hints.iter().map(|hint| format!("; {hint}")).collect();
                let mut body = json!({ "code": code, "message": format!("{message}{advice}") });
                if let ToolError::RateLimited { retry_after_seconds, .. } = error {
                    body["retry_after_seconds"] = (*retry_after_seconds).into();
                }
                json!({ "error": body }).to_string()
            }
        };
        let retry_after = match error {
            ToolError::RateLimited { retry_after_seconds, .. } => Some(*retry_after_seconds),
            _ => None,
        };
        ErrorReply { kind, text, message, hints, retry_after }
    }
}

/// The message as the contract words it: `… not found` for what is missing, any other message as it is. It begins with
/// a capital letter unless it begins with the name of an argument.
fn document_sentence(error: &ToolError) -> String {
    let sentence = match error {
        ToolError::Engine(shelf_engine::Error::NotFound { what, .. }) => format!("{what} not found"),
        other => other.message(),
    };
    let starts_with_argument = matches!(
        error,
        ToolError::Argument { .. }
            | ToolError::Engine(
                shelf_engine::Error::Invalid { .. }
                    | shelf_engine::Error::TooLarge { .. }
                    | shelf_engine::Error::Accounts(_)
            )
    );
    // The names of arguments have no capitals, wherever the sentence comes from.
    let starts_with_name = sentence.split(' ').next().is_some_and(|word| word.contains('_'));
    if starts_with_argument || starts_with_name { sentence } else { capitalized(&sentence) }
}

fn capitalized(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

const fn workspace_code(kind: Kind) -> &'static str {
    match kind {
        Kind::Invalid | Kind::Conflict => "INVALID_INPUT",
        Kind::Denied | Kind::Unauthenticated | Kind::Unavailable => "PATH_NOT_ALLOWED",
        Kind::NotFound => "FILE_NOT_FOUND",
        Kind::TooLarge => "ENTRY_TOO_LARGE",
        Kind::RateLimited => "RATE_LIMITED",
        Kind::Busy
        | Kind::Cancelled
        | Kind::TimedOut
        | Kind::StorageFull
        | Kind::Corrupt
        | Kind::Io
        | Kind::Internal => "INTERNAL_ERROR",
    }
}
