//! The prompts that every server has.

use std::collections::BTreeMap;

use super::Argument;

/// A prompt that is part of the program.
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

/// An argument that was given.
fn take<'a>(given: &'a BTreeMap<String, String>, name: &str) -> Option<&'a str> {
    given.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
}

/// A needed argument; that it is there was checked.
fn must<'a>(given: &'a BTreeMap<String, String>, name: &str) -> &'a str {
    take(given, name).unwrap_or_default()
}

/// All of them.
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
                 1. Use `grep` with it as the pattern, with line_numbers and a few lines of context. Give `paths` where \
                 the search is limited.\n\
                 2. When that finds nothing or too much, use `search` with words that say what the code does.\n\
                 3. Read the surroundings of the best places with `get` (start_line and end_line).\n\
                 Then tell where it is defined, where it is used, and how it works, each with path and line numbers.",
                must(given, "pattern")
            )
        },
    },
    BuiltIn {
        name: "summarize_document",
        title: "Summarize a document",
        description: "Summarize a document of the library",
        arguments: &[
            needed("document_name", "Its name: the path, the end of the path, or the title"),
            optional("max_length", "Words that the summary may have"),
            optional("focus", "What it should attend to most"),
        ],
        tools: &["get"],
        text: |given| {
            let length = take(given, "max_length")
                .map_or_else(String::new, |length| format!(" Use at most {length} words."));
            let focus = take(given, "focus")
                .map_or_else(String::new, |focus| format!(" Attend above all to: {focus}."));
            format!(
                "Summarize the document '{}'.{length}{focus}\n\n\
                 Read it with `get` (name and include_content); when the reply says it is truncated, go on with offset \
                 until you have all of it. Say what it is, what it claims or does, and what follows from it. Quote \
                 sparingly, and give the lines of what you quote. Do not add what is not in it.",
                must(given, "document_name")
            )
        },
    },
    BuiltIn {
        name: "research_topic",
        title: "Research a topic",
        description: "Find out what the library knows about a topic",
        arguments: &[
            needed("topic", "What to find out about"),
            optional("collection", "Only in this collection"),
            optional("questions", "Questions that must be answered"),
        ],
        tools: &["search", "grep", "get"],
        text: |given| {
            let place = take(given, "collection")
                .map_or_else(String::new, |name| format!(" Search only the collection {name}."));
            let questions = take(given, "questions")
                .map_or_else(String::new, |text| format!("\nAnswer these above all: {text}\n"));
            format!(
                "Find out what the library knows about: {}.{place}\n{questions}\n\
                 1. Use `search` with several wordings, by meaning and by exact terms; follow next_cursor while hits are \
                 good.\n\
                 2. Use `grep` for names, numbers and identifiers that you met.\n\
                 3. Read the best documents with `get`, not only their snippets.\n\
                 Then write what is known, where documents disagree, and what stays open. Put the address of the passage \
                 behind every claim.",
                must(given, "topic")
            )
        },
    },
    BuiltIn {
        name: "cite_sources",
        title: "Cite sources",
        description: "Support a text with passages of the library, each cited exactly",
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
                 Take it apart into single claims. For each one use `search`, read the best passage with `get` at its \
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
        description: "Compare two documents of the library",
        arguments: &[
            needed("first", "Name of the first document"),
            needed("second", "Name of the second document"),
        ],
        tools: &["get"],
        text: |given| {
            format!(
                "Compare the documents '{}' and '{}'. Read both whole with `get` (name and include_content, going on \
                 with offset where the reply is truncated). Tell what only the first says, what only the second says, and \
                 where they say different things about the same matter, with the lines of each.",
                must(given, "first"),
                must(given, "second")
            )
        },
    },
    BuiltIn {
        name: "organize_library",
        title: "Organize the library",
        description: "Propose tags for documents that have none, and set them once they are agreed to",
        arguments: &[optional("collection", "Only in this collection")],
        tools: &["list", "get", "update"],
        text: |given| {
            let place = take(given, "collection")
                .map_or_else(String::new, |name| format!(" Look only at the collection {name}."));
            format!(
                "Help to organize the library.{place} Use `list` to see documents and the tags that are in use, following \
                 next_cursor. For documents without tags read the beginning with `get` and propose tags, taking those \
                 that are in use before new ones. Show the proposal as a table and wait for consent. Only then set them \
                 with `update`, and say what was changed."
            )
        },
    },
];
