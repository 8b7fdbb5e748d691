//! The built-in prompts.

use std::collections::BTreeMap;

use super::Argument;

/// A built-in prompt.
pub(super) struct BuiltIn {
    pub name: &'static str,
    pub title: &'static str,
    pub description: &'static str,
    pub arguments: &'static [Argument],
    /// Tools that its text tells the model to use.
    pub tools: &'static [&'static str],
    pub text: fn(&BTreeMap<String, String>) -> String,
}

const fn needed(name: &'static str, description: &'static str) -> Argument {
    Argument { name, description, required: true }
}

const fn optional(name: &'static str, description: &'static str) -> Argument {
    Argument { name, description, required: false }
}

/// The value of an argument, if it was given.
fn take<'a>(given: &'a BTreeMap<String, String>, name: &str) -> Option<&'a str> {
    given.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
}

/// The value of a required argument, whose presence was already checked.
fn must<'a>(given: &'a BTreeMap<String, String>, name: &str) -> &'a str {
    take(given, name).unwrap_or_default()
}

/// All built-in prompts.
pub(super) const BUILT_IN: &[BuiltIn] = &[
    BuiltIn {
        name: "search_codebase",
        title: "Search the codebase",
        description: "Search for code patterns in the codebase",
        arguments: &[
            needed("pattern", "What to look for: a regular expression, an identifier, or words"),
            optional("file_type", "Only files with this extension, such as rs or .py"),
            optional("path", "Only below this folder"),
        ],
        tools: &["grep", "search", "get"],
        text: |given| {
            let kind = take(given, "file_type").map_or_else(String::new, |kind| {
                format!(
                    "Look only at files ending in .{}. ",
                    kind.trim_start_matches("*.").trim_start_matches('.')
                )
            });
            let place =
                take(given, "path").map_or_else(String::new, |path| format!("Look only below {path}."));
            format!(
                "Find this in the code of the library: {}\n{kind}{place}\n\n\
                 1. Use `grep` with it as the pattern, with line_numbers and a few lines of context. Set `paths` if the \
                 search is limited.\n\
                 2. If that finds nothing or too much, use `search` with words that describe what the code does.\n\
                 3. Read the code around the best matches with `get` (start_line and end_line).\n\
                 Then explain where it is defined, where it is used, and how it works, each with path and line numbers.",
                must(given, "pattern")
            )
        },
    },
    BuiltIn {
        name: "summarize_document",
        title: "Summarize a document",
        description: "Summarize a document in the library",
        arguments: &[
            needed("document_name", "Name of the document: its path, the end of its path, or its title"),
            optional("max_length", "Maximum number of words in the summary"),
            optional("focus", "What the summary should focus on"),
        ],
        tools: &["get"],
        text: |given| {
            let length = take(given, "max_length")
                .map_or_else(String::new, |length| format!(" Use at most {length} words."));
            let focus = take(given, "focus").map_or_else(String::new, |focus| format!(" Focus on: {focus}."));
            format!(
                "Summarize the document '{}'.{length}{focus}\n\n\
                 Read it with `get` (name and include_content); if the reply is truncated, continue with offset until you \
                 have all of it. Say what it is, what it claims or does, and what follows from it. Quote sparingly, and \
                 give the line numbers of quotes. Do not add anything that is not in it.",
                must(given, "document_name")
            )
        },
    },
    BuiltIn {
        name: "research_topic",
        title: "Research a topic",
        description: "Find out what the library says about a topic",
        arguments: &[
            needed("topic", "Topic to research"),
            optional("collection", "Only in this collection"),
            optional("questions", "Questions to answer"),
        ],
        tools: &["search", "grep", "get"],
        text: |given| {
            let place = take(given, "collection")
                .map_or_else(String::new, |name| format!(" Search only the collection {name}."));
            let questions = take(given, "questions")
                .map_or_else(String::new, |text| format!("\nAnswer these questions in particular: {text}\n"));
            format!(
                "Find out what the library says about: {}.{place}\n{questions}\n\
                 1. Use `search` with several phrasings, by meaning and by exact terms; follow next_cursor while the hits \
                 are good.\n\
                 2. Use `grep` for names, numbers and identifiers that you come across.\n\
                 3. Read the best documents with `get`, not only their snippets.\n\
                 Then write what is known, where documents disagree, and what remains open. Put the address of the passage \
                 after every claim.",
                must(given, "topic")
            )
        },
    },
    BuiltIn {
        name: "cite_sources",
        title: "Cite sources",
        description: "Support a text with exactly cited passages from the library",
        arguments: &[
            needed("text", "The text, or the claim, that needs sources"),
            optional("collection", "Only in this collection"),
        ],
        tools: &["search", "get"],
        text: |given| {
            let place = take(given, "collection")
                .map_or_else(String::new, |name| format!(" Search only the collection {name}."));
            format!(
                "Find sources in the library for this text:{place}\n\n{}\n\n\
                 Split it into individual claims. For each one, use `search`, read the best passage with `get` at its \
                 lines, and judge whether it says the same. Give a list: the claim; supported, contradicted or not found; \
                 the quote, word for word; and the address of the passage as the reply gave it. Never cite what you have \
                 not read.",
                must(given, "text")
            )
        },
    },
    BuiltIn {
        name: "compare_documents",
        title: "Compare two documents",
        description: "Compare two documents in the library",
        arguments: &[
            needed("first", "Name of the first document"),
            needed("second", "Name of the second document"),
        ],
        tools: &["get"],
        text: |given| {
            format!(
                "Compare the documents '{}' and '{}'. Read both in full with `get` (name and include_content, continuing \
                 with offset if the reply is truncated). Say what only the first says, what only the second says, and \
                 where they differ on the same subject, with the line numbers of each.",
                must(given, "first"),
                must(given, "second")
            )
        },
    },
    BuiltIn {
        name: "organize_library",
        title: "Organize the library",
        description: "Propose tags for untagged documents, and set them once they are approved",
        arguments: &[optional("collection", "Only in this collection")],
        tools: &["list", "get", "update"],
        text: |given| {
            let place = take(given, "collection")
                .map_or_else(String::new, |name| format!(" Look only at the collection {name}."));
            format!(
                "Help organize the library.{place} Use `list` to see the documents and the tags in use, following \
                 next_cursor. For documents without tags, read the beginning with `get` and propose tags, preferring tags \
                 that are already in use. Show the proposal as a table and wait for approval. Only then set the tags with \
                 `update`, and say what was changed."
            )
        },
    },
];
