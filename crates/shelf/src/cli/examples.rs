//! Examples in the help of commands. A test parses each of them.

use clap::Command;

/// Commands with their examples, each a line to type and what it does.
const EXAMPLES: &[(&str, &[(&str, &str)])] = &[
    (
        "",
        &[
            ("shelf demo", "load a small sample library and see what to try"),
            ("shelf client add claude-code", "let Claude Code use your library"),
            ("shelf add notes/", "store a folder"),
            ("shelf search how do I renew a book", "find by words and by meaning"),
        ],
    ),
    (
        "serve",
        &[
            ("shelf serve --http", "serve agents and programs over HTTP, and a page for your browser"),
            ("shelf serve --http 8080 --read-only", "on another port, without tools that change anything"),
            ("shelf serve --toolsets store,citations", "offer fewer tools, which costs a model fewer tokens"),
        ],
    ),
    (
        "client add",
        &[
            ("shelf client add cursor vscode", "set up two clients"),
            ("shelf client add codex --print", "only show the settings"),
            (
                "shelf client add claude-code --http",
                "connect to a server that is running, with a token of its own",
            ),
            ("shelf client add cursor --remove", "undo it"),
        ],
    ),
    (
        "add",
        &[
            ("shelf add report.pdf notes/", "store a file and a folder; .gitignore is honoured"),
            ("shelf add src --tag code --collection work", "into a collection, with a tag"),
            ("shelf add src --prune", "and forget documents whose files are gone"),
            ("date | shelf add - --name today.txt", "store what another program prints"),
        ],
    ),
    (
        "watch",
        &[
            ("shelf watch ~/notes", "keep a folder in step until Ctrl-C"),
            ("shelf watch docs src --collection work", "several folders, into one collection"),
        ],
    ),
    (
        "get",
        &[
            ("shelf get report.md", "print a document, named by the end of its path"),
            ("shelf get 'text://notes#lines=5-9'", "print exactly what a citation address names"),
            ("shelf get photo.jpg --output copy.jpg", "write it to a file"),
            ("shelf get a.md b.md --info", "show what is known of two documents"),
        ],
    ),
    (
        "list",
        &[
            ("shelf list '*.md' --sort modified --descending", "Markdown files, the newest first"),
            ("shelf list src/ --tag code --paths", "only the paths of tagged documents in a folder"),
        ],
    ),
    (
        "search",
        &[
            ("shelf search renewal of loans", "by words and by meaning"),
            ("shelf search '\"exact phrase\"' --type keyword", "only words, in this order"),
            ("shelf search damp -g '*.pdf' -n 3", "three PDF files at most"),
        ],
    ),
    (
        "grep",
        &[
            ("shelf grep 'fn \\w+' -g '*.rs'", "lines that match a regular expression"),
            ("shelf grep -F 'a.b(c)' -l", "paths of documents that hold this very text"),
            ("shelf grep -o '[0-9]{4}' notes/", "only the matching parts"),
        ],
    ),
    (
        "cite",
        &[
            ("shelf cite add lecture.mp4 textbook.pdf", "make files citable and show their parts"),
            ("shelf cite show 'doc://textbook#pages=3-4' -o part.pdf", "cut two pages out"),
            ("shelf cite check report.md", "verify every citation in a text"),
        ],
    ),
    ("update", &[("shelf update report.md --tag final --metadata status=done", "tag it and set metadata")]),
    (
        "delete",
        &[
            ("shelf delete draft.md", "delete one document; snapshots keep it"),
            ("shelf delete --pattern 'tmp/*' --dry-run", "see what a pattern would delete"),
        ],
    ),
    (
        "restore",
        &[
            ("shelf restore out --collection default", "write a collection as it is now into a folder"),
            ("shelf restore out --label first", "as it was in the newest snapshot with a label"),
        ],
    ),
    (
        "import",
        &[
            ("shelf import jsonl notes.jsonl", "documents from a file with one JSON object per line"),
            (
                "shelf import export backup --collection copy",
                "what `shelf export` wrote, into another collection",
            ),
        ],
    ),
    ("export", &[("shelf export default backup", "write a collection and its manifest to a folder")]),
    (
        "gc",
        &[
            ("shelf gc --plan", "see what could be freed"),
            ("shelf gc --keep-last 10 --keep-daily 30", "thin out snapshots, then free space"),
        ],
    ),
    ("backup", &[("shelf backup library-2026-01-31.shelf", "the whole library as one file, verified")]),
    (
        "restore-library",
        &[(
            "shelf restore-library library-2026-01-31.shelf --data-dir restored",
            "make a library from a backup",
        )],
    ),
    (
        "migrate",
        &[
            ("shelf migrate --to s3://bucket/library", "keep packs in a bucket from now on"),
            ("shelf migrate --to folder --delete-old", "bring them back, and empty the bucket"),
        ],
    ),
    ("call", &[("shelf call list '{\"pattern\": \"*.md\", \"limit\": 5}'", "call a tool as an agent would")]),
    ("tools", &[("shelf tools search", "describe one tool")]),
    (
        "service install",
        &[
            ("shelf service install --print", "look at the unit first"),
            ("shelf service install", "serve from the start of your session on"),
        ],
    ),
];

/// The command with the examples in its help.
pub(crate) fn with_examples(command: Command) -> Command {
    EXAMPLES.iter().fold(command, |command, (path, examples)| {
        let names: Vec<&str> = path.split_whitespace().collect();
        attach(command, &names, &text(examples))
    })
}

fn attach(command: Command, path: &[&str], help: &str) -> Command {
    match path.split_first() {
        None => command.after_help(help.to_owned()),
        Some((first, rest)) => {
            let (first, rest, help) = ((*first).to_owned(), rest.to_vec(), help.to_owned());
            command.mut_subcommand(first, move |inner| attach(inner, &rest, &help))
        }
    }
}

fn text(examples: &[(&str, &str)]) -> String {
    let lines = examples.iter().map(|(line, what)| format!("  {line}\n      {what}"));
    format!("Examples:\n{}", lines.collect::<Vec<_>>().join("\n"))
}

/// The words of an example as a shell would split them; of a pipeline, those of its last command.
#[cfg(test)]
pub(crate) fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for sign in line.chars() {
        match (quote, sign) {
            (Some(open), sign) if open == sign => quote = None,
            (None, '\'' | '"') => quote = Some(sign),
            (None, '|') => words = vec![String::new()],
            (None, ' ') => words.push(String::new()),
            (_, sign) => {
                if let Some(word) = words.last_mut() {
                    word.push(sign);
                }
            }
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::cli::Arguments;

    #[test]
    fn every_example_can_be_typed() {
        for (path, examples) in EXAMPLES {
            for (line, _) in *examples {
                let words = words(line);
                assert!(line.contains(path), "{line} is not an example of '{path}'");
                if let Err(error) = Arguments::try_parse_from(&words) {
                    panic!("{line}: {error}");
                }
            }
        }
        with_examples(Arguments::command()).debug_assert();
    }

    /// Words for the same thing: how many, and which paths.
    fn meaning(long: &str) -> &str {
        match long {
            "tail" | "last" => "limit",
            "pattern" => "glob",
            other => other,
        }
    }

    #[test]
    fn a_short_flag_means_one_thing_everywhere() {
        let mut meanings: BTreeMap<char, BTreeSet<String>> = BTreeMap::new();
        let mut waiting = vec![Arguments::command()];
        while let Some(command) = waiting.pop() {
            // Its flags are ripgrep's, which people have in their fingers.
            if command.get_name() == "grep" {
                continue;
            }
            for argument in command.get_arguments() {
                if let (Some(short), Some(long)) = (argument.get_short(), argument.get_long()) {
                    meanings.entry(short).or_default().insert(meaning(long).to_owned());
                }
            }
            waiting.extend(command.get_subcommands().cloned());
        }
        let mixed: Vec<_> = meanings.iter().filter(|(_, longs)| longs.len() > 1).collect();
        assert!(mixed.is_empty(), "{mixed:?}");
    }
}
