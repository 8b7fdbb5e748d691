//! Output: tables and colours on a terminal, plain text in a pipe, JSON on request.

use std::io::Write;

use anstyle::{AnsiColor, Style};
use serde_json::Value;

use crate::{
    cli::{ColorChoice, Global},
    outcome::{CliError, Outcome},
};

const HEAD: Style = Style::new().bold();
const FAINT: Style = Style::new().dimmed();
const BAD: Style = AnsiColor::Red.on_default().bold();
const GOOD: Style = AnsiColor::Green.on_default();
const WARN: Style = AnsiColor::Yellow.on_default();

/// Writes data to stdout and messages to stderr.
pub(crate) struct Output {
    pub json: bool,
    pub quiet: bool,
}

/// The kind of a message, which determines its colour.
#[derive(Clone, Copy)]
pub(crate) enum Tone {
    Good,
    Warning,
    Bad,
}

impl Output {
    pub(crate) fn new(global: &Global) -> Self {
        match global.color {
            ColorChoice::Auto => {}
            ColorChoice::Always => anstream::ColorChoice::Always.write_global(),
            ColorChoice::Never => anstream::ColorChoice::Never.write_global(),
        }
        Self { json: global.json, quiet: global.quiet }
    }

    /// Prints data as one JSON document.
    pub(crate) fn print_json(&self, value: &Value) -> Outcome {
        let text = serde_json::to_string_pretty(value).map_err(|error| anyhow::anyhow!(error))?;
        self.print(&text)
    }

    /// Prints a line of data.
    pub(crate) fn print(&self, line: &str) -> Outcome {
        ignore_closed_pipe(writeln!(anstream::stdout().lock(), "{line}"))
    }

    /// Whether output to stdout is coloured.
    pub(crate) fn wants_color(&self) -> bool {
        !self.json && anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never
    }

    /// Prints bytes unchanged.
    pub(crate) fn print_bytes(&self, bytes: &[u8]) -> Outcome {
        let mut out = std::io::stdout().lock();
        ignore_closed_pipe(out.write_all(bytes).and_then(|()| out.flush()))
    }

    /// Prints a table. Columns are as wide as their longest cell, and numbers are right-aligned.
    pub(crate) fn table(&self, heads: &[&str], rows: &[Vec<String>]) -> Outcome {
        let widths: Vec<usize> = (0..heads.len())
            .map(|at| {
                rows.iter().map(|row| row[at].chars().count()).chain([heads[at].len()]).max().unwrap_or(0)
            })
            .collect();
        let line = |cells: Vec<&str>, right: &[bool]| {
            let cells =
                cells.iter().enumerate().map(|(at, cell)| match (right[at], at + 1 == widths.len()) {
                    (true, _) => format!("{cell:>width$}", width = widths[at]),
                    (false, true) => (*cell).to_owned(),
                    (false, false) => format!("{cell:<width$}", width = widths[at]),
                });
            cells.collect::<Vec<_>>().join("  ")
        };
        let numeric: Vec<bool> = (0..heads.len())
            .map(|at| {
                !rows.is_empty()
                    && rows
                        .iter()
                        .all(|row| row[at].starts_with(|c: char| c.is_ascii_digit()) && row[at].len() < 12)
            })
            .collect();
        let mut out = anstream::stdout().lock();
        let mut written = writeln!(out, "{HEAD}{}{HEAD:#}", line(heads.to_vec(), &numeric));
        for row in rows {
            written = written
                .and_then(|()| writeln!(out, "{}", line(row.iter().map(String::as_str).collect(), &numeric)));
        }
        ignore_closed_pipe(written)
    }

    /// Prints a message, unless `--quiet` was given.
    pub(crate) fn say(&self, tone: Tone, line: &str) {
        if !self.quiet {
            let style = match tone {
                Tone::Good => GOOD,
                Tone::Warning => WARN,
                Tone::Bad => BAD,
            };
            let _ = writeln!(anstream::stderr().lock(), "{style}{line}{style:#}");
        }
    }

    /// Prints a message that the user must see, even with `--quiet`, and without colour.
    pub(crate) fn tell(&self, text: &str) {
        let _ = writeln!(anstream::stderr().lock(), "{text}");
    }

    /// Like `tell`, but without a line break, for prompts.
    pub(crate) fn tell_inline(&self, text: &str) {
        let _ = write!(anstream::stderr().lock(), "{text}");
    }

    /// Prints an error with its hints.
    pub(crate) fn error(&self, error: &CliError) {
        let CliError { code, message, hints, exit: _ } = error;
        let mut err = anstream::stderr().lock();
        if self.json {
            let value = serde_json::json!({ "error": { "code": code, "message": message, "hints": hints } });
            let _ = writeln!(err, "{value}");
            return;
        }
        let _ = writeln!(err, "{BAD}error:{BAD:#} {message}");
        for hint in hints {
            let _ = writeln!(err, "{FAINT}hint:{FAINT:#} {hint}");
        }
    }
}

/// A closed pipe (`| head`) is not an error.
fn ignore_closed_pipe(written: std::io::Result<()>) -> Outcome {
    match written {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        other => Ok(other?),
    }
}

/// Formats a number of bytes with a readable unit.
pub(crate) fn human(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

/// A field of a reply as text.
pub(crate) fn text(value: &Value, field: &str) -> String {
    match &value[field] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Array(items) => {
            items.iter().map(|item| item.as_str().unwrap_or_default()).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

/// A field of a reply as a number.
pub(crate) fn number(value: &Value, field: &str) -> u64 {
    value[field].as_u64().unwrap_or(0)
}

/// A time field of a reply, without fractional seconds.
pub(crate) fn time(value: &Value, field: &str) -> String {
    let whole = text(value, field);
    whole.split('.').next().unwrap_or_default().trim_end_matches('Z').replace('T', " ")
}
