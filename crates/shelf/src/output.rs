//! Output: tables and colours on a terminal, plain text in a pipe, JSON on request.

mod harmless;

use std::io::{IsTerminal, Write};

use anstyle::{AnsiColor, Style};
use serde_json::Value;

use self::harmless::{harmless, plain};
use crate::{
    cli::{ColorChoice, Global},
    outcome::{CliError, Outcome},
    progress, table,
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
        progress::make_room();
        match self.is_terminal() {
            true => ignore_closed_pipe(writeln!(anstream::stdout().lock(), "{}", harmless(line))),
            false => ignore_closed_pipe(writeln!(anstream::stdout().lock(), "{line}")),
        }
    }

    /// Whether output to stdout is coloured.
    pub(crate) fn wants_color(&self) -> bool {
        !self.json && anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never
    }

    /// Prints bytes unchanged, except that a terminal is given no control characters.
    pub(crate) fn print_bytes(&self, bytes: &[u8]) -> Outcome {
        progress::make_room();
        let shown = if self.is_terminal() {
            harmless(&String::from_utf8_lossy(bytes)).into_bytes()
        } else {
            Vec::new()
        };
        let bytes = if self.is_terminal() { &shown } else { bytes };
        let mut out = std::io::stdout().lock();
        ignore_closed_pipe(out.write_all(bytes).and_then(|()| out.flush()))
    }

    /// Prints a table; on a terminal its lines are shortened to fit.
    pub(crate) fn table(&self, heads: &[&str], rows: &[Vec<String>]) -> Outcome {
        progress::make_room();
        let lines = match terminal_columns() {
            Some(columns) => table::lines(heads, &plain_rows(rows), Some(columns)),
            None => table::lines(heads, rows, None),
        };
        let mut out = anstream::stdout().lock();
        let mut written = Ok(());
        for (at, line) in lines.iter().enumerate() {
            written = written.and_then(|()| match at {
                0 => writeln!(out, "{HEAD}{line}{HEAD:#}"),
                _ => writeln!(out, "{line}"),
            });
        }
        ignore_closed_pipe(written)
    }

    /// Prints a table whose last column is wrapped, rather than shortened, to fit a terminal.
    pub(crate) fn wrapped_table(&self, heads: &[&str], rows: &[Vec<String>]) -> Outcome {
        let wrapped = table::wrapped(heads, rows, terminal_columns().unwrap_or(usize::MAX));
        wrapped.iter().enumerate().try_for_each(|(at, line)| match at {
            0 => self.print(&format!("{HEAD}{line}{HEAD:#}")),
            _ => self.print(line),
        })
    }

    /// Prints facts, one per line, with their values in one column.
    pub(crate) fn facts(&self, facts: &[(&str, String)]) -> Outcome {
        let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        facts.iter().try_for_each(|(name, value)| self.print(format!("{name:width$}  {value}").trim_end()))
    }

    /// Whether data goes to a terminal, which should not be given bytes that are no text.
    pub(crate) fn is_terminal(&self) -> bool {
        std::io::stdout().is_terminal()
    }

    /// Prints a message, unless `--quiet` was given.
    pub(crate) fn say(&self, tone: Tone, line: &str) {
        if !self.quiet {
            progress::make_room();
            let style = match tone {
                Tone::Good => GOOD,
                Tone::Warning => WARN,
                Tone::Bad => BAD,
            };
            let _ = writeln!(anstream::stderr().lock(), "{style}{}{style:#}", plain(line));
        }
    }

    /// Prints a message that the user must see, even with `--quiet`, and without colour.
    pub(crate) fn tell(&self, text: &str) {
        progress::make_room();
        let _ = writeln!(anstream::stderr().lock(), "{text}");
    }

    /// Like `tell`, but without a line break, for prompts.
    pub(crate) fn tell_inline(&self, text: &str) {
        progress::make_room();
        let _ = write!(anstream::stderr().lock(), "{text}");
    }

    /// Prints an error with its hints.
    pub(crate) fn error(&self, error: &CliError) {
        let CliError { code, message, hints, details, exit: _, body, is_notice } = error;
        progress::make_room();
        let mut err = anstream::stderr().lock();
        if *is_notice {
            if !self.quiet && !self.json {
                let _ = writeln!(err, "{WARN}{message}{WARN:#}");
                for hint in hints {
                    let _ = writeln!(err, "{FAINT}hint:{FAINT:#} {hint}");
                }
            }
            return;
        }
        if self.json {
            let mut value =
                serde_json::json!({ "error": { "code": code, "message": message, "hints": hints } });
            if !details.is_empty() {
                value["error"]["details"] = serde_json::json!(details);
            }
            let _ = writeln!(err, "{}", body.clone().unwrap_or_else(|| value.to_string()));
            return;
        }
        let _ = writeln!(err, "{BAD}error:{BAD:#} {}", plain(message));
        for hint in hints {
            let _ = writeln!(err, "{FAINT}hint:{FAINT:#} {}", plain(hint));
        }
    }
}

/// Rows whose cells are of one line each and hold no control characters.
fn plain_rows(rows: &[Vec<String>]) -> Vec<Vec<String>> {
    rows.iter().map(|row| row.iter().map(|cell| plain(cell).replace(['\n', '\t'], " ")).collect()).collect()
}

/// A closed pipe (`| head`) is not an error.
fn ignore_closed_pipe(written: std::io::Result<()>) -> Outcome {
    match written {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        other => Ok(other?),
    }
}

/// Columns of the terminal that data goes to; `None` when it goes elsewhere.
fn terminal_columns() -> Option<usize> {
    let out = std::io::stdout();
    if !out.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(&out).ok().map(|size| usize::from(size.ws_col));
    size.filter(|columns| *columns >= 20)
}

/// A number with the singular or plural of what it counts.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
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
    seconds(&text(value, field))
}

/// A time as people read it: without fractional seconds.
pub(crate) fn seconds(whole: &str) -> String {
    whole.split('.').next().unwrap_or_default().trim_end_matches('Z').replace('T', " ")
}
