//! Resource limits of this process: more open files, and an error instead of a signal at the file-size limit.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit to request for open files; connections, packs and segments together stay far below it.
const WANTED_FILES: u64 = 65_536;

/// Prepares the process.
pub(crate) fn prepare() {
    raise_file_limit();
    survive_size_limits();
}

/// The soft limit is a default from the days of `select`; a process may raise it up to the hard limit.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.map_or(WANTED_FILES, |hard| hard.min(WANTED_FILES));
    if limit.current.is_some_and(|soft| soft < most) {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: limit.maximum });
    }
}

/// By default, writing beyond a file-size limit kills the process. With the signal ignored, the write fails with an
/// error instead, which is reported like a full disk.
#[expect(unsafe_code, reason = "ignoring a signal has no safe interface")]
fn survive_size_limits() {
    // SAFETY: no handler runs, because the signal is ignored, and only this process's own writes raise it.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

/// How many files may be open at once.
pub(crate) fn file_limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(WANTED_FILES)
}
