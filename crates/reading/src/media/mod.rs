//! Video and sound: what a recording holds, and clips of it, by way of `ffprobe` and `ffmpeg`.
//!
//! Both programs are looked for when they are needed, are started without a shell, get a time limit, and are stopped
//! when the call is cancelled. At most a few run at once. Nothing else in the program depends on them.

mod cut;
mod packets;
mod probe;
mod run;

use shelf_base::{CallContext, ErrorInfo, Kind, Stopped};

pub use cut::{cut_clip, extension_of_clip};
pub use probe::{cut_times, key_frames, probe, subtitles};

/// Whether a recording has a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recording {
    /// It has.
    Video,
    /// It has sound only.
    Audio,
}

/// What a recording holds. Times are in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaFacts {
    /// Whether it has a picture.
    pub recording: Recording,
    /// How long it is.
    pub duration: u64,
    /// Its chapters, in order.
    pub chapters: Vec<Chapter>,
    /// Whether subtitles are embedded in it.
    pub has_subtitles: bool,
    /// Whether it has sound.
    pub has_sound: bool,
    /// The codec of its picture, or of its sound when it has none.
    pub codec: String,
    /// How far frames are stored ahead of the time they are shown.
    pub reorder: u64,
    /// The time at which its clock begins; all other times count from there.
    pub clock: u64,
    /// The times of frames that need no other frame, in order, in microseconds; empty for sound.
    pub key_frames: Vec<u64>,
}

/// A chapter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chapter {
    /// Its start.
    pub start: u64,
    /// Its end.
    pub end: u64,
    /// Its title.
    pub title: String,
}

/// Why a recording could not be looked at or cut.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MediaError {
    /// A program is not installed.
    #[error("{program} is not installed")]
    Absent {
        /// Its name.
        program: &'static str,
    },
    /// A program refused the recording.
    #[error("the recording cannot be read: {what}")]
    Damaged {
        /// What it said.
        what: String,
    },
    /// It took too long.
    #[error("{program} took longer than {seconds} s")]
    TooLong {
        /// Its name.
        program: &'static str,
        /// The limit.
        seconds: u64,
    },
    /// Too many calls wait for these programs.
    #[error("too many recordings are being worked on; try again later")]
    Busy,
    /// The call ended.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// The machine failed.
    #[error("{program} could not be run: {what}")]
    Failed {
        /// Its name.
        program: &'static str,
        /// What happened.
        what: String,
    },
}

impl ErrorInfo for MediaError {
    fn kind(&self) -> Kind {
        match self {
            Self::Absent { .. } => Kind::Unavailable,
            Self::Damaged { .. } => Kind::Invalid,
            Self::Busy => Kind::Busy,
            Self::TooLong { .. } => Kind::TimedOut,
            Self::Stopped(Stopped::Cancelled) => Kind::Cancelled,
            Self::Stopped(Stopped::TimedOut) => Kind::TimedOut,
            Self::Failed { .. } => Kind::Io,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Absent { .. } => vec!["install ffmpeg on the machine that holds the library".into()],
            _ => Vec::new(),
        }
    }
}

/// What a run of a program needs to know.
#[derive(Clone, Copy)]
struct Task<'a> {
    program: &'static str,
    seconds: u64,
    call: &'a CallContext,
}
