//! Facts about the machine: without them, a figure is meaningless.

use std::fs;
use std::path::Path;
use std::thread;

use crate::step;

/// Clock ticks per second: the unit in which the kernel reports processor time.
const TICKS: f64 = 100.0;

/// Names and values, in display order. They contain neither host names nor paths.
pub fn facts(work: &Path) -> Vec<(String, String)> {
    let cores =
        thread::available_parallelism().map_or_else(|_| "unknown".to_owned(), |count| count.to_string());
    let facts = [
        ("cores", cores),
        ("processor", field("/proc/cpuinfo", "model name")),
        ("memory", field("/proc/meminfo", "MemTotal")),
        ("kernel", first_line_of("/proc/sys/kernel/osrelease")),
        ("file system", answer("stat", &["-f", "-c", "%T", &work.to_string_lossy()])),
        ("compiler", answer("rustc", &["--version"])),
    ];
    facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The resident memory of a process in MB.
pub fn resident_megabytes(process: u32) -> Option<f64> {
    status_megabytes(process, "VmRSS:")
}

/// The anonymous resident memory of a process (not backed by files) in MB.
pub fn own_megabytes(process: u32) -> Option<f64> {
    status_megabytes(process, "RssAnon:")
}

/// The peak resident memory of a process in MB.
pub fn peak_megabytes(process: u32) -> Option<f64> {
    status_megabytes(process, "VmHWM:")
}

/// The processor time of a process and all its threads in seconds, to a hundredth.
pub fn processor_seconds(process: u32) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The second field is the program's name in parentheses, which may contain spaces.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS)
}

/// The process that has started a process.
pub fn parent(process: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    text.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn status_megabytes(process: u32, name: &str) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024.0 / 1e6)
}

fn field(file: &str, name: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name));
    line.and_then(|line| line.split_once(':')).map_or_else(unknown, |(_, value)| value.trim().to_owned())
}

fn first_line_of(file: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().next().map_or_else(unknown, str::to_owned)
}

fn answer(program: &str, arguments: &[&str]) -> String {
    step::first_line(program, arguments).unwrap_or_else(unknown)
}

fn unknown() -> String {
    "unknown".to_owned()
}
