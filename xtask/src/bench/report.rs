//! The results of a run: printed to the terminal, and stored as JSON and Markdown for comparison.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{Scale, machine, timing};
use crate::{places, step};

/// The target for a figure.
#[derive(Clone, Copy)]
pub enum Target {
    /// The figure has no target.
    None,
    /// Smaller is better; this is the maximum.
    AtMost(f64),
    /// Larger is better; this is the minimum.
    AtLeast(f64),
}

impl Target {
    fn shown(self) -> String {
        match self {
            Self::None => String::new(),
            Self::AtMost(limit) => format!("≤ {}", number(limit)),
            Self::AtLeast(limit) => format!("≥ {}", number(limit)),
        }
    }

    fn is_met(self, figure: f64) -> Option<bool> {
        match self {
            Self::None => None,
            Self::AtMost(limit) => Some(figure <= limit),
            Self::AtLeast(limit) => Some(figure >= limit),
        }
    }
}

/// One line of the table.
struct Row {
    what: String,
    program: String,
    unit: String,
    samples: Vec<f64>,
    figure: Option<f64>,
    target: Target,
}

/// The report of a run in progress.
pub struct Report {
    name: String,
    facts: Vec<(String, String)>,
    rows: Vec<Row>,
}

impl Report {
    /// An empty report with the facts about the machine.
    pub fn new(name: &str, scale: Scale, work: &Path) -> Self {
        Self { name: format!("{name}{}", scale.suffix()), facts: machine::facts(work), rows: Vec::new() }
    }

    /// Adds a fact about the run.
    pub fn fact(&mut self, name: &str, value: impl Into<String>) {
        self.facts.push((name.to_owned(), value.into()));
    }

    /// Adds a row whose figure is the median of the samples.
    pub fn samples(&mut self, what: &str, program: &str, unit: &str, samples: Vec<f64>, target: Target) {
        let figure = timing::median(&samples);
        self.figure(what, program, unit, figure, samples, target);
    }

    /// Adds two rows of milliseconds: p50 and p95.
    pub fn latencies(&mut self, what: &str, program: &str, samples: &[f64], half: Target, most: Target) {
        let slow = timing::quantile(samples, 0.95);
        self.samples(&format!("{what}, p50"), program, "ms", samples.to_vec(), half);
        self.figure(&format!("{what}, p95"), program, "ms", slow, samples.to_vec(), most);
    }

    /// Adds a row whose figure is the average: for a coarse clock, the median would be as coarse as the clock.
    pub fn average(&mut self, what: &str, program: &str, unit: &str, samples: &[f64], target: Target) {
        let figure = samples.iter().sum::<f64>() / samples.len().max(1) as f64;
        self.figure(what, program, unit, figure, samples.to_vec(), target);
    }

    /// Adds a row with one value, measured once.
    pub fn single(&mut self, what: &str, program: &str, unit: &str, value: f64, target: Target) {
        self.figure(what, program, unit, value, vec![value], target);
    }

    /// Adds a row whose figure was computed from the samples in another way.
    pub fn figure(
        &mut self,
        what: &str,
        program: &str,
        unit: &str,
        figure: f64,
        samples: Vec<f64>,
        target: Target,
    ) {
        println!("   {program}: {what}: {} {unit} (n = {})", number(figure), samples.len());
        let (what, program, unit) = (what.to_owned(), program.to_owned(), unit.to_owned());
        self.rows.push(Row { what, program, unit, samples, figure: Some(figure), target });
    }

    /// Adds a row for a program that is not installed.
    pub fn absent(&mut self, program: &str) {
        let (what, unit) = ("everything".to_owned(), String::new());
        let program = program.to_owned();
        self.rows.push(Row { what, program, unit, samples: Vec::new(), figure: None, target: Target::None });
    }

    /// Prints the table and writes both files.
    pub fn finish(self) -> Result<()> {
        let moment = step::first_line("date", &["-u", "+%Y-%m-%dT%H-%M-%SZ"])
            .context("cannot get the time from `date` to name the results")?;
        let table = self.markdown(&moment);
        println!("\n{table}");
        let folder = places::root().join("bench").join("runs");
        fs::create_dir_all(&folder)?;
        let stem = format!("{moment}-{}", self.name);
        fs::write(folder.join(format!("{stem}.md")), &table)?;
        let text = serde_json::to_string_pretty(&self.json(&moment))? + "\n";
        fs::write(folder.join(format!("{stem}.json")), text)?;
        println!("bench: results are in bench/runs/{stem}.json and .md");
        Ok(())
    }

    fn markdown(&self, moment: &str) -> String {
        let mut text = format!("# {} at {moment}\n\n", self.name);
        for (name, value) in &self.facts {
            let _ = writeln!(text, "- {name}: {value}");
        }
        text.push_str("\n| what | program | figure | unit | least – most | n | target | met |\n");
        text.push_str("|---|---|---:|---|---|---:|---|---|\n");
        for row in &self.rows {
            let line = row.cells().join(" | ");
            let _ = writeln!(text, "| {line} |");
        }
        text
    }

    fn json(&self, moment: &str) -> Value {
        let facts: serde_json::Map<String, Value> =
            self.facts.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        let rows: Vec<Value> = self.rows.iter().map(Row::json).collect();
        json!({ "name": self.name, "moment": moment, "facts": facts, "rows": rows })
    }
}

impl Row {
    fn cells(&self) -> [String; 8] {
        let Some(figure) = self.figure else {
            let empty = String::new;
            let (what, program) = (self.what.clone(), self.program.clone());
            return [what, program, "absent".to_owned(), empty(), empty(), empty(), empty(), empty()];
        };
        let least = self.samples.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.samples.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let met = self.target.is_met(figure).map_or("", |met| if met { "yes" } else { "no" });
        [
            self.what.clone(),
            self.program.clone(),
            number(figure),
            self.unit.clone(),
            format!("{} – {}", number(least), number(most)),
            self.samples.len().to_string(),
            self.target.shown(),
            met.to_owned(),
        ]
    }

    fn json(&self) -> Value {
        let Some(figure) = self.figure else {
            return json!({ "what": self.what, "program": self.program, "figure": "absent" });
        };
        json!({
            "what": self.what,
            "program": self.program,
            "unit": self.unit,
            "figure": figure,
            "count": self.samples.len(),
            // For thousands of latencies, quantiles are enough.
            "samples": if self.samples.len() <= 50 { json!(self.samples) } else { quantiles(&self.samples) },
            "target": self.target.shown(),
            "met": self.target.is_met(figure),
        })
    }
}

fn quantiles(samples: &[f64]) -> Value {
    let at = |share| timing::quantile(samples, share);
    json!({ "least": at(0.0), "p25": at(0.25), "p50": at(0.5), "p75": at(0.75), "p95": at(0.95), "p99": at(0.99), "most": at(1.0) })
}

/// About three significant digits: more would suggest false precision.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}
