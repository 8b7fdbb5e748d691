//! What the operating system grants this process: as many open files as it may have, and no death by a size limit.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files that are wanted open at the most: connections, packs and segments together stay far below.
const WANTED_FILES: u64 = 65_536;

/// Prepares the process.
pub(crate) fn prepare() {
    raise_file_limit();
    survive_size_limits();
}

/// The soft limit is a default from the time of `select`; every process may raise it up to the hard one.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.map_or(WANTED_FILES, |hard| hard.min(WANTED_FILES));
    if limit.current.is_some_and(|soft| soft < most) {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: limit.maximum });
    }
}

/// Writing beyond a file-size limit kills a process that has not said otherwise. With the signal ignored the write fails
/// with an error of its own, which is reported like a full disk.
#[expect(unsafe_code, reason = "ignoring a signal has no safe interface")]
fn survive_size_limits() {
    // SAFETY: no handler runs; the signal is ignored, and it is raised by this process's own writes only.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

/// Files that may be open at once.
pub(crate) fn file_limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(WANTED_FILES)
}
