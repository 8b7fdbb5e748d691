//! Error classification: a kind for programs, a message for people.
//!
//! Each crate has its own error type whose variants carry values. Of any of them, transports need only the [`Kind`],
//! whether a retry can help, and hints. [`Kind::row`] is the only table that maps a kind to a code, an HTTP status and
//! an exit code.

use std::error::Error;

/// The class of a failure. The enum is deliberately exhaustive: a new kind needs a decision in every transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The named object does not exist or does not belong to the caller.
    NotFound,
    /// The request itself is invalid.
    Invalid,
    /// The request conflicts with the current state.
    Conflict,
    /// The caller may not do this.
    Denied,
    /// The caller has not proved who it is.
    Unauthenticated,
    /// The request exceeds a size limit.
    TooLarge,
    /// Too many requests in a given time.
    RateLimited,
    /// A required resource is in use by another process.
    Busy,
    /// The caller cancelled the call.
    Cancelled,
    /// The deadline passed.
    TimedOut,
    /// No storage space is left.
    StorageFull,
    /// Stored bytes differ from what was written.
    Corrupt,
    /// The feature is disabled or not part of this build.
    Unavailable,
    /// An operating-system call failed.
    Io,
    /// A bug in the program.
    Internal,
}

/// Whether the same call may succeed later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The same call fails again until something else changes.
    Never,
    /// The same call may succeed after a pause.
    Later,
}

/// One row of the table of kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Stable identifier for programs.
    pub code: &'static str,
    /// HTTP status.
    pub status: u16,
    /// Exit code of the command line.
    pub exit: u8,
    /// Retry advice.
    pub retry: Retry,
}

impl Kind {
    /// Every kind, for tests and reference pages.
    pub const ALL: [Self; 15] = [
        Self::NotFound,
        Self::Invalid,
        Self::Conflict,
        Self::Denied,
        Self::Unauthenticated,
        Self::TooLarge,
        Self::RateLimited,
        Self::Busy,
        Self::Cancelled,
        Self::TimedOut,
        Self::StorageFull,
        Self::Corrupt,
        Self::Unavailable,
        Self::Io,
        Self::Internal,
    ];

    /// The table: code, HTTP status, exit code, retry advice.
    pub const fn row(self) -> Row {
        use Retry::{Later, Never};
        let (code, status, exit, retry) = match self {
            Self::NotFound => ("not_found", 404, 4, Never),
            Self::Invalid => ("invalid", 400, 2, Never),
            Self::Conflict => ("conflict", 409, 5, Never),
            Self::Denied => ("denied", 403, 6, Never),
            Self::Unauthenticated => ("unauthenticated", 401, 6, Never),
            Self::TooLarge => ("too_large", 413, 2, Never),
            Self::RateLimited => ("rate_limited", 429, 7, Later),
            Self::Busy => ("busy", 503, 7, Later),
            Self::Cancelled => ("cancelled", 499, 130, Never),
            Self::TimedOut => ("timed_out", 504, 7, Later),
            Self::StorageFull => ("storage_full", 507, 8, Later),
            Self::Corrupt => ("corrupt", 500, 9, Never),
            Self::Unavailable => ("unavailable", 403, 3, Never),
            Self::Io => ("io", 500, 1, Later),
            Self::Internal => ("internal", 500, 70, Never),
        };
        Row { code, status, exit, retry }
    }

    /// The kind of an operating-system error.
    pub fn of_io(error: &std::io::Error) -> Self {
        use std::io::ErrorKind as E;
        match error.kind() {
            E::NotFound => Self::NotFound,
            E::PermissionDenied | E::ReadOnlyFilesystem => Self::Denied,
            E::StorageFull | E::QuotaExceeded | E::FileTooLarge => Self::StorageFull,
            E::TimedOut => Self::TimedOut,
            _ => Self::Io,
        }
    }
}

/// What transports need to know about any error.
pub trait ErrorInfo: Error {
    /// The class of the failure.
    fn kind(&self) -> Kind;

    /// Retry advice; that of the kind unless overridden.
    fn retry(&self) -> Retry {
        self.kind().row().retry
    }

    /// What the caller can do next, one line each.
    fn hints(&self) -> Vec<String> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_statuses_are_errors() {
        let mut codes: Vec<_> = Kind::ALL.iter().map(|kind| kind.row().code).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), Kind::ALL.len());
        assert!(Kind::ALL.iter().all(|kind| (400..600).contains(&kind.row().status) && kind.row().exit > 0));
    }
}
