//! `bench ingest`: the cost of storing files, compared with two programs that do similar work.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::corpus::{self, Tree};
use super::generations::{self, Generations};
use super::programs::{self, Program};
use super::report::{Report, Target};
use super::timing::{self, Taken};
use super::words::Words;
use super::{Scale, binary};
use crate::places;

/// Target: MB of text per second of processor time.
const TEXT_TARGET: f64 = 60.0;
/// Target: MB of binary data per second of processor time.
const BINARY_TARGET: f64 = 250.0;
/// Target: MB stored per MB of structured binary data, as much as borg takes.
const STRUCTURED_TARGET: f64 = 617.0 / 1_073.7;
/// Target: seconds to add files that are already stored.
const AGAIN_TARGET: f64 = 1.0;
/// Target: MB stored per MB of all generations together.
const GENERATIONS_TARGET: f64 = 100.0 / 769.0;

/// The number of measurements of a step, and of a slow step.
const OFTEN: usize = 5;
const SELDOM: usize = 3;
/// A step that takes more seconds than this counts as slow.
const SLOW: f64 = 20.0;

/// The corpora and the folder for stores.
struct Bench<'words> {
    tree: PathBuf,
    binary: PathBuf,
    structured: PathBuf,
    generations: Generations<'words>,
    work: PathBuf,
}

/// Measures every program that is installed.
pub fn run(scale: Scale) -> Result<()> {
    let shelf = places::built_shelf()?;
    let work = places::root().join("bench").join("work").join(scale.folder());
    fs::create_dir_all(&work)?;
    let words = Words::new();
    let bench = Bench {
        tree: Tree::text(scale).ensure(&work, &words)?,
        binary: binary::ensure(&work, scale)?,
        structured: binary::ensure_structured(&work, scale)?,
        generations: Generations::ensure(&work, &words, scale)?,
        work: work.clone(),
    };
    let mut report = Report::new("ingest", scale, &work);
    for program in [Program::Shelf(shelf), Program::Restic, Program::Borg] {
        let version = program.version();
        report.fact(program.name(), version.clone().unwrap_or_else(|| "absent".to_owned()));
        if version.is_some() {
            println!("== measuring {}", program.name());
            bench.measure(&program, &mut report)?;
        } else {
            report.absent(program.name());
        }
    }
    report.finish()
}

impl Bench<'_> {
    fn measure(&self, program: &Program, report: &mut Report) -> Result<()> {
        let text = self.adding(program, &self.tree)?;
        rows(report, "add text tree", program, &self.tree, &text, TEXT_TARGET)?;
        let again = self.adding_again(program)?;
        let walls = again.iter().map(|taken| taken.wall).collect();
        let target = ours(program, Target::AtMost(AGAIN_TARGET));
        report.samples("re-add unchanged, wall", program.name(), "s", walls, target);
        let processor = again.iter().map(|taken| taken.processor).collect();
        report.samples("re-add unchanged, CPU", program.name(), "s", processor, Target::None);
        let binary = self.adding(program, &self.binary)?;
        rows(report, "add binary", program, &self.binary, &binary, BINARY_TARGET)?;
        let structured = self.adding(program, &self.structured)?;
        rows(report, "add structured binary", program, &self.structured, &structured, BINARY_TARGET)?;
        let stored = corpus::bytes_below(&programs::store(&self.place(program)))? as f64 / 1e6;
        let most = corpus::bytes_below(&self.structured)? as f64 / 1e6 * STRUCTURED_TARGET;
        report.single(
            "structured binary, stored",
            program.name(),
            "MB",
            stored,
            ours(program, Target::AtMost(most)),
        );
        self.storing_generations(program, report)?;
        corpus::remove(&self.place(program))
    }

    fn place(&self, program: &Program) -> PathBuf {
        self.work.join("stores").join(program.name())
    }

    fn figures(&self) -> PathBuf {
        self.work.join("figures")
    }

    /// Adds a folder to a new store several times; the last store is kept.
    fn adding(&self, program: &Program, folder: &Path) -> Result<Vec<Taken>> {
        corpus::warm(folder)?;
        let mut taken: Vec<Taken> = Vec::new();
        while taken.len() < wanted(&taken) {
            program.prepare(&self.place(program))?;
            taken.push(timing::measure(
                &program.store_only(&self.place(program), folder, "first"),
                &self.figures(),
            )?);
        }
        Ok(taken)
    }

    /// Adds the text tree to the store that already contains it.
    fn adding_again(&self, program: &Program) -> Result<Vec<Taken>> {
        let mut taken: Vec<Taken> = Vec::new();
        while taken.len() < wanted(&taken) {
            let invocation =
                program.store_only(&self.place(program), &self.tree, &format!("again-{}", taken.len()));
            taken.push(timing::measure(&invocation, &self.figures())?);
        }
        Ok(taken)
    }

    /// Adds each generation from the same path to one store and reports the final size.
    fn storing_generations(&self, program: &Program, report: &mut Report) -> Result<()> {
        let place = self.place(program);
        let working = self.work.join("working");
        program.prepare(&place)?;
        let mut logical = 0;
        for number in 1..=generations::COUNT {
            self.generations.sync(&working, number)?;
            logical += corpus::bytes_below(&working)?;
            let invocation = program.store_only(&place, &working, &format!("generation-{number}"));
            timing::measure(&invocation, &self.figures())?;
        }
        let logical = logical as f64 / 1e6;
        let stored = corpus::bytes_below(&programs::store(&place))? as f64 / 1e6;
        let what = format!("stored after {} generations of together {logical:.0} MB", generations::COUNT);
        let target = ours(program, Target::AtMost(logical * GENERATIONS_TARGET));
        report.single(&what, program.name(), "MB", stored, target);
        corpus::remove(&working)
    }
}

/// Reports wall time, processor time and speed of one step.
fn rows(
    report: &mut Report,
    what: &str,
    program: &Program,
    folder: &Path,
    taken: &[Taken],
    target: f64,
) -> Result<()> {
    let name = program.name();
    let megabytes = corpus::bytes_below(folder)? as f64 / 1e6;
    let walls = taken.iter().map(|taken| taken.wall).collect();
    let processor = taken.iter().map(|taken| taken.processor).collect();
    let speeds = taken.iter().map(|taken| megabytes / taken.processor.max(0.001)).collect();
    report.samples(&format!("{what} ({megabytes:.0} MB), wall"), name, "s", walls, Target::None);
    report.samples(&format!("{what}, CPU"), name, "s", processor, Target::None);
    report.samples(
        &format!("{what}, speed"),
        name,
        "MB/CPU-s",
        speeds,
        ours(program, Target::AtLeast(target)),
    );
    Ok(())
}

/// Targets apply only to shelf; the other programs are for comparison.
fn ours(program: &Program, target: Target) -> Target {
    if matches!(program, Program::Shelf(_)) { target } else { Target::None }
}

fn wanted(taken: &[Taken]) -> usize {
    let slow = !taken.is_empty() && taken.iter().all(|taken| taken.wall > SLOW);
    if slow { SELDOM } else { OFTEN }
}
