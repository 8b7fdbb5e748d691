//! Wall and CPU seconds of a whole command, and the middle of many measurements.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::step;

/// Lets bash time the command: the standard library cannot ask for the CPU time of a child.
/// The figures go to the file named first, what the command says to the file named second.
const SCRIPT: &str = "TIMEFORMAT='%R %U %S'; figures=$1; said=$2; shift 2; \
    { time \"$@\" >\"$said\" 2>&1 </dev/null; } 2>\"$figures\"";

/// A command with its arguments and the variables it needs.
pub struct Invocation {
    /// The program, then its arguments.
    pub words: Vec<OsString>,
    /// Names and values of variables.
    pub variables: Vec<(&'static str, OsString)>,
}

/// What one run of a command took.
#[derive(Clone, Copy)]
pub struct Taken {
    /// Seconds on the clock.
    pub wall: f64,
    /// Seconds of processor time, in the program and in the kernel.
    pub processor: f64,
}

/// Runs the command to its end and measures it; `folder` takes the two small files this needs.
pub fn measure(invocation: &Invocation, folder: &Path) -> Result<Taken> {
    fs::create_dir_all(folder)?;
    let figures = folder.join("figures.txt");
    let said = said(folder);
    // What earlier steps left to be written must not be paid for by this one.
    step::succeeds("sync", &[]);
    let status = Command::new("bash")
        .args(["-c", SCRIPT, "measure"])
        .args([&figures, &said])
        .args(&invocation.words)
        .envs(invocation.variables.iter().map(|(name, value)| (name, value)))
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .status()
        .context("cannot start bash, which does the timing")?;
    let words: Vec<_> = invocation.words.iter().map(|word| word.to_string_lossy()).collect();
    if !status.success() {
        let said = fs::read_to_string(&said).unwrap_or_default();
        bail!("`{}` failed ({status}); it said:\n{said}", words.join(" "));
    }
    taken(&fs::read_to_string(&figures)?)
        .with_context(|| format!("bash gave no figures for `{}`", words.join(" ")))
}

/// The file with what the last measured command said.
pub fn said(folder: &Path) -> PathBuf {
    folder.join("said.txt")
}

fn taken(figures: &str) -> Option<Taken> {
    let numbers: Vec<f64> =
        figures.lines().next_back()?.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    match numbers[..] {
        [wall, user, system] => Some(Taken { wall, processor: user + system }),
        _ => None,
    }
}

/// The value that `share` of the samples do not exceed; 0.5 is the median.
pub fn quantile(samples: &[f64], share: f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    if sorted.is_empty() {
        return f64::NAN;
    }
    let place = share * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

/// The middle of the samples.
pub fn median(samples: &[f64]) -> f64 {
    quantile(samples, 0.5)
}

#[cfg(test)]
mod tests {
    use super::{median, quantile, taken};

    #[test]
    fn the_median_of_an_even_count_lies_between() {
        assert!((median(&[4.0, 1.0, 3.0, 2.0]) - 2.5).abs() < 1e-9);
        assert!((quantile(&[1.0, 2.0, 3.0, 4.0, 5.0], 1.0) - 5.0).abs() < 1e-9);
    }

    #[test]
    fn figures_are_read() {
        let read = taken("1.500 0.250 0.125\n").unwrap();
        assert!((read.wall - 1.5).abs() < 1e-9 && (read.processor - 0.375).abs() < 1e-9);
        assert!(taken("nothing").is_none());
    }
}
