//! The other side of drawing: this program, started by itself to draw one page within bounds of its own.
//!
//! It is asked before anything else is read, so that no setting and no library has a part in it.

use std::{env, io, path::PathBuf, process::ExitCode};

use rustix::process::{Resource, Rlimit, setrlimit};
use shelf_engine::{DRAW_COMMAND, DRAW_MEMORY, DRAW_SECONDS, draw_alone};

/// The program that draws pages: this one. Where the system has a name for the file that runs, that is taken, which works
/// also when another version has been put in its place.
pub(crate) fn program() -> Option<PathBuf> {
    let own = PathBuf::from("/proc/self/exe");
    if cfg!(target_os = "linux") && own.exists() { Some(own) } else { env::current_exe().ok() }
}

/// Draws, if that is what this process was started for.
pub(crate) fn when_asked() -> Option<ExitCode> {
    let mut arguments = env::args_os().skip(1);
    if arguments.next()? != DRAW_COMMAND {
        return None;
    }
    let width = arguments.next()?.to_str()?.parse().ok()?;
    bound();
    Some(draw_alone(width, io::stdin().lock(), io::stdout().lock(), io::stderr().lock()).into())
}

/// Bounds this process, for ever. A system that does not know a limit has the time that the caller waits.
fn bound() {
    for (resource, most) in [(Resource::As, DRAW_MEMORY), (Resource::Cpu, DRAW_SECONDS), (Resource::Core, 0)]
    {
        let _ = setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) });
    }
}
