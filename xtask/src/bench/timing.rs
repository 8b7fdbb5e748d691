//! Wall and processor time of a command, and quantiles of measurements.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::step;

/// Uses bash to time the command, because the standard library cannot report the processor time of a child. The figures
/// go to the first file, and the output of the command to the second.
const SCRIPT: &str = "TIMEFORMAT='%R %U %S'; figures=$1; said=$2; shift 2; \
    { time \"$@\" >\"$said\" 2>&1 </dev/null; } 2>\"$figures\"";

/// A command with its arguments and environment variables.
pub struct Invocation {
    /// The program, then its arguments.
    pub words: Vec<OsString>,
    /// Names and values of the variables.
    pub variables: Vec<(&'static str, OsString)>,
}

/// The time that one run of a command took.
#[derive(Clone, Copy)]
pub struct Taken {
    /// Wall time in seconds.
    pub wall: f64,
    /// Processor time in seconds, user and system.
    pub processor: f64,
}

/// Runs the command to completion and measures it; `folder` is used for two small temporary files.
pub fn measure(invocation: &Invocation, folder: &Path) -> Result<Taken> {
    fs::create_dir_all(folder)?;
    let figures = folder.join("figures.txt");
    let said = said(folder);
    // Flush pending writes of earlier steps, so that they do not count here.
    step::succeeds("sync", &[]);
    let status = Command::new("bash")
        .args(["-c", SCRIPT, "measure"])
        .args([&figures, &said])
        .args(&invocation.words)
        .envs(invocation.variables.iter().map(|(name, value)| (name, value)))
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .status()
        .context("cannot start bash, which is used for timing")?;
    let words: Vec<_> = invocation.words.iter().map(|word| word.to_string_lossy()).collect();
    if !status.success() {
        let said = fs::read_to_string(&said).unwrap_or_default();
        bail!("`{}` failed ({status}); its output was:\n{said}", words.join(" "));
    }
    taken(&fs::read_to_string(&figures)?)
        .with_context(|| format!("bash reported no figures for `{}`", words.join(" ")))
}

/// The file with the output of the last measured command.
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

/// The median of the samples.
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
