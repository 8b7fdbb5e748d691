//! Measures the peak memory of a command in addition to its time. The kernel reports it only while the command runs.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use super::machine;
use super::timing::{self, Invocation, Taken};

/// Writes its process id to the file given first, and then executes the command.
const SCRIPT: &str = "echo $$ >\"$0\"; exec \"$@\"";

/// The polling interval. The peak only grows, so polling can miss only the last moment.
const PAUSE: Duration = Duration::from_millis(5);

/// The cost of one run of a command.
#[derive(Clone, Copy)]
pub struct Made {
    /// The time it took.
    pub taken: Taken,
    /// Its peak resident memory in MB.
    pub peak: f64,
}

/// Runs the command to completion; `folder` is used for small temporary files.
pub fn measure(invocation: &Invocation, folder: &Path) -> Result<Made> {
    fs::create_dir_all(folder)?;
    let number = folder.join("process.txt");
    fs::write(&number, "")?;
    let mut words = vec!["bash".into(), "-c".into(), SCRIPT.into(), number.clone().into_os_string()];
    words.extend(invocation.words.iter().cloned());
    let named = Invocation { words, variables: invocation.variables.clone() };
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(&number, &ended));
        let taken = timing::measure(&named, folder);
        ended.store(true, Ordering::Relaxed);
        let peak = watcher.join().ok().flatten();
        Ok(Made { taken: taken?, peak: peak.context("the kernel did not report the memory of the command")? })
    })
}

/// Polls the peak until the command has exited; returns the last value.
fn watch(number: &Path, ended: &AtomicBool) -> Option<f64> {
    let mut last = None;
    while !ended.load(Ordering::Relaxed) {
        let process = fs::read_to_string(number).ok().and_then(|text| text.trim().parse().ok());
        last = process.and_then(machine::peak_megabytes).or(last);
        thread::sleep(PAUSE);
    }
    last
}

#[cfg(test)]
mod tests {
    use super::{Invocation, measure};
    use crate::scratch::Scratch;

    #[test]
    fn the_peak_of_a_command_is_seen() {
        let scratch = Scratch::new("peak").unwrap();
        let words = vec!["sleep".into(), "0.1".into()];
        let made = measure(&Invocation { words, variables: Vec::new() }, scratch.path()).unwrap();
        assert!(made.peak > 0.1 && made.taken.wall > 0.09, "{} {}", made.peak, made.taken.wall);
    }
}
