//! `bench grep`: how long an agent waits for a pattern search, compared with ripgrep on the files themselves.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::json;

use super::Scale;
use super::corpus::{self, Tree};
use super::library::Library;
use super::line_client::{Call, LineClient};
use super::patterns::Patterns;
use super::report::{Report, Target};
use super::ripgrep::{self, Found};
use super::timing::{self, Taken};
use super::vocabulary::Vocabulary;
use super::words::Words;
use crate::places;

/// The target in milliseconds when almost nothing matches.
const FEW_TARGET: f64 = 2.0;
/// The target in milliseconds when many files match.
const MANY_TARGET: f64 = 25.0;

/// The number of turns of each program.
const TURNS: usize = 5;

/// Processor times below this many milliseconds are not reported.
const LEAST_PROCESSOR: f64 = 100.0;

/// Function calls whose identifier ends with a given word.
const REGEXES: [&str; 5] =
    [r"[a-z]+_for\(", r"[a-z]+_with\(", r"[a-z]+_from\(", r"[a-z]+_not\(", r"[a-z]+_this\("];

/// Words that occur in almost every file.
const EVERYWHERE: [&str; 3] = ["the", "and", "for"];

/// Patterns of one kind.
struct Case {
    what: &'static str,
    patterns: Vec<String>,
    /// Whether only counts are requested.
    count: bool,
    /// The number of calls per turn.
    calls: usize,
    held_to: HeldTo,
}

/// The target for the time of a call.
enum HeldTo {
    Milliseconds(f64),
    Ripgrep,
}

/// The measurements of one case.
#[derive(Default)]
struct Measured {
    /// Milliseconds of each call.
    ours: Vec<f64>,
    /// The server's average processor time per call in milliseconds, for each turn.
    processor: Vec<f64>,
    ripgrep: Vec<Taken>,
    /// Patterns for which the two programs found different matches.
    differing: Vec<String>,
}

/// The corpus and a folder for small files.
struct Bench {
    tree: PathBuf,
    folder: PathBuf,
    has_ripgrep: bool,
}

/// Creates the library and measures pattern searches.
pub fn run(scale: Scale) -> Result<()> {
    let shelf = places::built_shelf()?;
    let work = places::root().join("bench").join("work").join(scale.folder());
    fs::create_dir_all(&work)?;
    let tree = Tree::text(scale).ensure(&work, &Words::new())?;
    let files = corpus::files_below(&tree)?;
    println!("== choosing patterns");
    let cases = cases(Patterns::choose(&files, &Vocabulary::of(&files)?)?);
    println!("== creating a library of {} documents", files.len());
    let (library, _) = Library::make(shelf, &work, &tree)?;
    let mut report = Report::new("grep", scale, &work);
    report.fact("shelf", library.version());
    let version = ripgrep::version();
    let bench = Bench { tree, folder: work.join("figures"), has_ripgrep: version.is_some() };
    report.fact("ripgrep", version.unwrap_or_else(|| "absent".to_owned()));
    let mut client = library.serve()?;
    let mut differing = Vec::new();
    for case in &cases {
        println!("== measuring: {}", case.what);
        differing.extend(bench.measure(case, &mut client, &mut report)?);
    }
    bench.closing(&client, &differing, &mut report)?;
    client.close()?;
    corpus::remove(&work.join("stores"))?;
    report.finish()
}

fn cases(patterns: Patterns) -> Vec<Case> {
    let few = |what, patterns| Case {
        what,
        patterns,
        count: false,
        calls: 8,
        held_to: HeldTo::Milliseconds(FEW_TARGET),
    };
    let many = |what, patterns| Case {
        what,
        patterns,
        count: false,
        calls: 4,
        held_to: HeldTo::Milliseconds(MANY_TARGET),
    };
    vec![
        few("rare identifier", patterns.rare),
        few("no such identifier", patterns.absent),
        many("literal, many hits", patterns.many),
        many("regex, many hits", REGEXES.map(str::to_owned).to_vec()),
        Case {
            what: "most files, counted",
            patterns: EVERYWHERE.map(str::to_owned).to_vec(),
            count: true,
            calls: 1,
            held_to: HeldTo::Ripgrep,
        },
    ]
}

impl Case {
    fn call(&self, pattern: &str) -> Call {
        let arguments = json!({ "pattern": pattern });
        let counted = json!({ "pattern": pattern, "count": true });
        ("grep", if self.count { counted } else { arguments })
    }

    /// The pattern with this serial number; patterns are reused cyclically.
    fn pattern(&self, serial: usize) -> &str {
        &self.patterns[serial % self.patterns.len()]
    }
}

impl Bench {
    /// Measures one kind of pattern and returns the patterns for which the programs disagree.
    fn measure(&self, case: &Case, client: &mut LineClient, report: &mut Report) -> Result<Vec<String>> {
        let found = case
            .patterns
            .iter()
            .map(|pattern| ask(client, &case.call(pattern)))
            .collect::<Result<Vec<Found>>>()?;
        report.fact(case.what, described(case, &found));
        let mut measured = Measured::default();
        for turn in 0..TURNS {
            self.turn(case, turn, client, &found, &mut measured)?;
        }
        measured.rows(case, report);
        Ok(measured.differing)
    }

    fn turn(
        &self,
        case: &Case,
        turn: usize,
        client: &mut LineClient,
        found: &[Found],
        measured: &mut Measured,
    ) -> Result<()> {
        let before = client.processor()?;
        for call in 0..case.calls {
            measured.ours.push(client.timed(&case.call(case.pattern(turn * case.calls + call)))?);
        }
        measured.processor.push((client.processor()? - before) * 1e3 / case.calls as f64);
        if self.has_ripgrep {
            let (taken, theirs) = ripgrep::count(case.pattern(turn), &self.tree, &self.folder)?;
            measured.ripgrep.push(taken);
            if theirs != found[turn % found.len()] {
                measured.differing.push(case.pattern(turn).to_owned());
            }
        }
        Ok(())
    }

    /// Reports the figures for all cases together.
    fn closing(&self, client: &LineClient, differing: &[String], report: &mut Report) -> Result<()> {
        report.single("memory after all patterns", "shelf", "MB", client.resident()?, Target::None);
        report.single("of it, without mapped files", "shelf", "MB", client.own_memory()?, Target::None);
        if self.has_ripgrep {
            let told = if differing.is_empty() { "none".to_owned() } else { differing.join(", ") };
            report.fact("patterns on which ripgrep found something else", told);
        } else {
            report.absent("ripgrep");
        }
        Ok(())
    }
}

impl Measured {
    fn rows(&self, case: &Case, report: &mut Report) {
        let wall: Vec<f64> = self.ripgrep.iter().map(|taken| taken.wall * 1e3).collect();
        let processor: Vec<f64> = self.ripgrep.iter().map(|taken| taken.processor * 1e3).collect();
        let target = |theirs: &[f64]| match case.held_to {
            HeldTo::Milliseconds(most) => Target::AtMost(most),
            HeldTo::Ripgrep if theirs.is_empty() => Target::None,
            HeldTo::Ripgrep => Target::AtMost(timing::median(theirs)),
        };
        let (of_wall, of_processor) = (format!("{}, wall", case.what), format!("{}, CPU", case.what));
        report.samples(&format!("{}, p50", case.what), "shelf", "ms", self.ours.clone(), target(&wall));
        // The kernel's resolution is a hundredth of a second, which is too coarse for fast calls.
        if self.processor.iter().sum::<f64>() * case.calls as f64 >= LEAST_PROCESSOR {
            let target =
                if matches!(case.held_to, HeldTo::Ripgrep) { target(&processor) } else { Target::None };
            report.average(&of_processor, "shelf", "ms", &self.processor, target);
        }
        if !self.ripgrep.is_empty() {
            report.samples(&of_wall, "ripgrep", "ms", wall, Target::None);
            report.samples(&of_processor, "ripgrep", "ms", processor, Target::None);
        }
    }
}

fn ask(client: &mut LineClient, call: &Call) -> Result<Found> {
    let reply = client.call(call)?;
    let number = |name: &str| reply[name].as_u64().with_context(|| format!("`grep` gave no `{name}`"));
    Ok(Found { lines: number("total_matches")?, files: number("total_files")? })
}

/// A summary: the number of patterns, an example, and the number of files they match.
fn described(case: &Case, found: &[Found]) -> String {
    let files = found.iter().map(|found| found.files);
    let (least, most) = (files.clone().min().unwrap_or_default(), files.max().unwrap_or_default());
    format!("{} patterns such as `{}`, in {least} to {most} files", found.len(), case.pattern(0))
}
