//! Prompts stored as Markdown files in a folder: `PROMPT-research-mcp.md` is the prompt `research_mcp`.

use std::{
    fs::{self, File},
    io::Read,
    path::Path,
};

const PREFIX: &str = "PROMPT-";
const ENDING: &str = ".md";
/// Most files that are read.
const MOST: usize = 500;
/// Maximum size of a file in bytes; larger files are not prompts.
const LARGEST: u64 = 1 << 20;
/// Maximum length of a description in characters.
const DESCRIBED: usize = 200;

/// A prompt stored in a file.
pub(super) struct PromptFile {
    pub name: String,
    file: String,
    pub text: String,
}

/// All prompts in a folder, sorted by file name. Of two files with the same prompt name, the first wins. Files that
/// cannot be read are skipped and logged.
pub(super) fn all(folder: Option<&Path>) -> Vec<PromptFile> {
    let Some(folder) = folder else { return Vec::new() };
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|file| name_of(file).is_some());
    names.sort();
    if names.len() > MOST {
        tracing::warn!(files = names.len(), "only the first {MOST} prompts are offered");
    }
    let mut found: Vec<PromptFile> = Vec::new();
    for file in names.into_iter().take(MOST) {
        let Some(name) = name_of(&file) else { continue };
        if found.iter().any(|known| known.name == name) {
            tracing::warn!(file, name, "another file has the same prompt name: this one is not offered");
            continue;
        }
        match read(&folder.join(&file)) {
            Ok(text) => found.push(PromptFile { name, file, text }),
            Err(reason) => tracing::warn!(file, reason, "a prompt cannot be read"),
        }
    }
    found
}

/// The file name without prefix and extension, with underscores instead of dashes.
fn name_of(file: &str) -> Option<String> {
    let name = file.strip_prefix(PREFIX)?.strip_suffix(ENDING)?.replace('-', "_");
    (!name.is_empty() && !name.chars().any(char::is_control)).then_some(name)
}

fn read(path: &Path) -> Result<String, String> {
    // Checked before opening, because opening a pipe could block forever.
    let facts = fs::metadata(path).map_err(|error| error.to_string())?;
    if !facts.is_file() {
        return Err("it is not a file".into());
    }
    let mut text = String::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    file.take(LARGEST + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    if text.len() as u64 > LARGEST {
        return Err(format!("it has more than {LARGEST} bytes"));
    }
    Ok(text)
}

impl PromptFile {
    /// Its heading, or its name with spaces.
    pub(super) fn title(&self) -> String {
        match self.first_line() {
            Some(line) if line.starts_with('#') => plain(line),
            _ => self.name.replace('_', " "),
        }
    }

    /// Its first line, and the file it comes from.
    pub(super) fn description(&self) -> String {
        let about = self.first_line().map_or_else(|| self.name.replace('_', " "), plain);
        format!("{about} (from {})", self.file)
    }

    /// The first non-empty line after the front matter, if there is any.
    fn first_line(&self) -> Option<&str> {
        let text = self.text.trim_start_matches('\u{feff}');
        let mut lines = text.lines().map(str::trim);
        if text.lines().next().is_some_and(|line| line.trim_end() == "---") {
            let has_end = lines.clone().skip(1).any(|line| line == "---");
            if has_end {
                lines.next();
                lines.find(|line| *line == "---");
            }
        }
        lines.find(|line| !line.is_empty())
    }
}

/// A line without heading markers, shortened for lists.
fn plain(line: &str) -> String {
    let line: String =
        line.trim_start_matches('#').trim().chars().filter(|sign| !sign.is_control()).collect();
    match line.char_indices().nth(DESCRIBED) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
