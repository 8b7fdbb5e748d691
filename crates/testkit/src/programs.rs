//! Other programs that some tests need.

use std::{io::Write, process::Command};

/// Whether a program can be run. A test that needs it returns if not; a line on stderr says so, past everything that
/// captures the output of tests.
pub fn can_run(program: &str, argument: &str) -> bool {
    let runs = Command::new(program).arg(argument).output().is_ok_and(|ran| ran.status.success());
    if !runs {
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        let _ = writeln!(std::io::stderr(), "SKIPPED: {test} needs {program}, which cannot be run here");
    }
    runs
}
