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
    (
        "client list",
        &[
            ("shelf client list", "see which clients are set up, and try each"),
            ("shelf client list --no-check", "only look at their settings"),
        ],
    ),
    (
        "open",
        &[("shelf open", "look at the library in a browser"), ("shelf open --print", "only print the link")],
    ),
    (
        "download",
        &[
            ("shelf download https://example.org/paper.pdf", "store what is at an address"),
            (
                "shelf download https://example.org/data.csv --name data/2026.csv --tag raw",
                "under a name of your own, with a tag",
            ),
        ],
    ),
    (
        "cite add",
        &[("shelf cite add textbook.pdf --id textbook", "make a file citable under a name of your own")],
    ),
    ("cite list", &[("shelf cite list", "print the names of everything that can be cited")]),
    (
        "cite show",
        &[
            ("shelf cite show textbook", "print the tree of a resource"),
            ("shelf cite show 'doc://textbook#pages=3-4' -o part.pdf", "cut two pages out"),
        ],
    ),
    ("cite check", &[("shelf cite check report.md notes.md", "verify every citation in two texts")]),
    ("cite import", &[("shelf cite import .resource_maps", "take over maps that were made elsewhere")]),
    (
        "cite export",
        &[
            ("shelf cite export textbook", "print the map of one resource"),
            ("shelf cite export --output maps", "write the maps of all resources to a folder"),
        ],
    ),
    (
        "cite set-map",
        &[
            ("shelf cite set-map textbook map.json", "use a map that you have written"),
            ("shelf cite set-map textbook --remove", "go back to the one that is made from the document"),
        ],
    ),
    (
        "graph",
        &[
            ("shelf graph shelfmarks.md", "what a document links to, imports or mentions"),
            ("shelf graph utils.py --reverse --depth 1", "what uses it directly"),
            ("shelf graph --stats", "documents with many connections, with none, and broken links"),
        ],
    ),
    (
        "status",
        &[
            ("shelf status", "how much is stored"),
            ("shelf status --detailed --file-types", "with the search index, the storage and types of files"),
        ],
    ),
    ("collections", &[("shelf collections", "list collections with their sizes")]),
    (
        "snapshot create",
        &[("shelf snapshot create default --label first", "keep the present state under a name")],
    ),
    ("snapshot list", &[("shelf snapshot list --collection default", "list the snapshots of a collection")]),
    (
        "demo",
        &[
            ("shelf demo", "load a few documents to try things with"),
            ("shelf demo --remove", "delete them again"),
        ],
    ),
    (
        "user create",
        &[("shelf user create ada --email ada@example.org --admin", "the password is asked for")],
    ),
    ("user list", &[("shelf user list example.org", "accounts whose username or email contains a text")]),
    ("user show", &[("shelf user show ada", "show one account")]),
    (
        "user update",
        &[
            ("shelf user update ada --password", "set a new password, which is asked for"),
            ("shelf user update ada --active false", "stop an account and its tokens from working"),
        ],
    ),
    ("user delete", &[("shelf user delete ada --yes", "delete an account and everything it owns")]),
    ("books create", &[("shelf books create my-book --title 'My book'", "make an empty book")]),
    ("books list", &[("shelf books list", "list books with their titles")]),
    (
        "books set",
        &[
            ("shelf books set my-book --title 'A better title'", "rename it"),
            ("shelf books set my-book --status archived", "allow no more changes"),
        ],
    ),
    (
        "books import",
        &[("shelf books import my-book docs/", "make a book of a folder of Markdown and media")],
    ),
    ("books export", &[("shelf books export my-book out/", "write it back to a folder")]),
    ("books history", &[("shelf books history my-book lessons/intro.md", "who changed a file, and when")]),
    ("books diff", &[("shelf books diff my-book lessons/intro.md", "what the last change of a file was")]),
    (
        "books restore",
        &[(
            "shelf books restore my-book lessons/intro.md 3f2a9c0d17e4",
            "bring back the version with this hash",
        )],
    ),
    ("books archive", &[("shelf books archive my-book --output my-book.zip", "write a book to a ZIP file")]),
    ("books rotate-urls", &[("shelf books rotate-urls --now", "make URLs that were given out stop working")]),
    (
        "workspace read",
        &[(
            "shelf workspace read docs/README.md --tail 20",
            "the last lines of a file, under the rules for agents",
        )],
    ),
    (
        "workspace log",
        &[
            ("shelf workspace log finished the notebook -f task=EDA", "append an event with a field"),
            ("shelf workspace log --decision use SQLite", "append a decision"),
        ],
    ),
    (
        "workspace query",
        &[
            ("shelf workspace query notebook --since 7d", "events of a week that contain a word"),
            ("shelf workspace query --decision -n 5", "the last five decisions"),
        ],
    ),
    ("workspace check", &[("shelf workspace check", "see whether entries were changed by others")]),
    (
        "token create",
        &[("shelf token create --label laptop --expires-in-days 90", "a token for HTTP access")],
    ),
    ("token list", &[("shelf token list", "list tokens, without their secret text")]),
    (
        "token revoke",
        &[("shelf token revoke 0192f0c4-7a3e-7c51-9d2b-3e5f6a7b8c9d", "make a token stop working")],
    ),
    (
        "check",
        &[
            ("shelf check", "verify everything"),
            ("shelf check --repair", "take damaged packs out of use"),
            ("shelf check --memory --workspace .", "only the memory files of a workspace"),
        ],
    ),
    ("reindex", &[("shelf reindex", "build the search index anew")]),
    ("embed", &[("shelf embed papers", "search a collection with the model of your settings")]),
    ("deepen", &[("shelf deepen papers", "give the passages of a collection better vectors now")]),
    ("eval", &[("shelf eval scifact --queries 100", "measure search with a hundred judged queries")]),
    (
        "recover",
        &[
            ("shelf recover", "rebuild a damaged catalog"),
            ("shelf recover --keep-catalog", "go on with the catalog as it is"),
        ],
    ),
    ("doctor", &[("shelf doctor", "see what works, and what to do about the rest")]),
    ("service uninstall", &[("shelf service uninstall", "stop the server and remove its unit")]),
    ("service status", &[("shelf service status", "see whether the unit is installed and running")]),
    ("config show", &[("shelf config show", "each setting, its value and where it comes from")]),
    ("config default", &[("shelf config default > shelf.toml", "begin a settings file of your own")]),
    ("completions", &[("shelf completions bash", "print completions, to be sourced by your shell")]),
    ("man", &[("shelf man /usr/local/share/man/man1", "write the manual pages to a folder")]),
    ("import export", &[("shelf import export backup", "what `shelf export` wrote")]),
    (
        "import jsonl",
        &[(
            "shelf import jsonl notes.jsonl --collection notes",
            "one document per line, with title and text",
        )],
    ),
    ("import citekit", &[("shelf import citekit .resource_maps", "maps that CiteKit made")]),
    ("import panaversityfs", &[("shelf import panaversityfs storage", "every book of a storage folder")]),
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
    // What is redirected goes to a file, whatever its name.
    let line = line.split(" > ").next().unwrap_or(line);
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
    use std::{
        collections::{BTreeMap, BTreeSet},
        fs,
        path::Path,
    };

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

    /// What follows `code { "` in the pages of the console, where it is a command.
    fn commands_of_the_console(folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                commands_of_the_console(&entry, found);
            } else if entry.extension().is_some_and(|ending| ending == "rs") {
                let text = fs::read_to_string(entry).unwrap();
                let quoted = text.split('"').filter(|part| part.starts_with("shelf ")).map(str::to_owned);
                found.extend(quoted);
            }
        }
    }

    #[test]
    fn commands_that_the_console_shows_can_be_typed() {
        use clap::error::ErrorKind::{DisplayHelpOnMissingArgumentOrSubcommand, MissingRequiredArgument};
        let mut found = Vec::new();
        commands_of_the_console(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../console/src"), &mut found);
        assert!(found.len() >= 8, "{found:?}");
        for line in found {
            if let Err(error) = Arguments::try_parse_from(words(&line)) {
                // Some only name a command, without what it is given.
                let names_only = [MissingRequiredArgument, DisplayHelpOnMissingArgumentOrSubcommand];
                assert!(names_only.contains(&error.kind()), "{line}: {error}");
            }
        }
    }

    #[test]
    fn every_command_has_an_example() {
        let mut waiting = vec![(String::new(), Arguments::command())];
        while let Some((path, command)) = waiting.pop() {
            let inner: Vec<_> =
                command.get_subcommands().filter(|inner| !inner.is_hide_set()).cloned().collect();
            let has_example = EXAMPLES.iter().any(|(of, _)| *of == path);
            assert!(has_example || !inner.is_empty(), "'shelf {path}' has no example");
            for found in inner {
                let below = format!("{path} {}", found.get_name());
                waiting.push((below.trim().to_owned(), found));
            }
        }
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
