//! `demo`: a small library of our own to try things with, and to delete again.

use std::fs;

use serde_json::{Value, json};
use shelf_engine::{Caller, ImportContent, ImportItem, Library};

use super::{existing, open, tool};
use crate::{
    cli::transfer::Demo,
    outcome::Outcome,
    output::{Output, Tone, counted, text},
    progress,
    settings::Settings,
};

/// The collection and the book that the demo consists of.
const COLLECTION: &str = "demo";
const BOOK: &str = "demo-book";

/// A file of the demo: its name, its bytes, and its citation resource id if it has one.
struct Sample(&'static str, &'static [u8], Option<&'static str>);

const SAMPLES: &[Sample] = &[
    Sample("notes/reading-room.md", include_bytes!("../../demo/notes/reading-room.md"), Some("reading-room")),
    Sample("notes/shelfmarks.md", include_bytes!("../../demo/notes/shelfmarks.md"), Some("shelfmarks")),
    Sample("notes/printer.txt", include_bytes!("../../demo/notes/printer.txt"), None),
    Sample("notes/holdings.csv", include_bytes!("../../demo/notes/holdings.csv"), None),
    Sample("notes/opening-hours.json", include_bytes!("../../demo/notes/opening-hours.json"), None),
    Sample("notes/visitors.html", include_bytes!("../../demo/notes/visitors.html"), None),
    Sample("notes/damp.pdf", include_bytes!("../../demo/notes/damp.pdf"), Some("damp-report")),
    Sample("notes/floor-plan.png", include_bytes!("../../demo/notes/floor-plan.png"), Some("floor-plan")),
    Sample("code/shelve.py", include_bytes!("../../demo/code/shelve.py"), None),
    Sample("lecture.mp4", include_bytes!("../../demo/lecture.mp4"), Some("lecture")),
    Sample("lecture.srt", include_bytes!("../../demo/lecture.srt"), None),
];

const BOOK_FILES: &[Sample] = &[
    Sample("book.yaml", include_bytes!("../../demo/book/book.yaml"), None),
    Sample(
        "lessons/part-1/lesson-01.md",
        include_bytes!("../../demo/book/lessons/part-1/lesson-01.md"),
        None,
    ),
    Sample(
        "lessons/part-1/lesson-02.md",
        include_bytes!("../../demo/book/lessons/part-1/lesson-02.md"),
        None,
    ),
    Sample(
        "chapters/chapter-01/.summary.md",
        include_bytes!("../../demo/book/chapters/chapter-01/.summary.md"),
        None,
    ),
];

/// Five things to try, each a command that works on the demo.
const TRY: &[(&str, &str)] = &[
    ("find by meaning, not by words", "shelf search --type semantic protect charts from moisture"),
    ("find lines by pattern", "shelf grep 'shelfmark' --collection demo"),
    ("read the exact place that a hit cites", "shelf get 'text://shelfmarks#lines=3-3'"),
    ("see what is connected to what", "shelf graph shelfmarks.md"),
    (
        "look at a book as its authors do",
        "shelf call read_content '{\"book_id\": \"demo-book\", \"path\": \"lessons/part-1/lesson-01.md\"}'",
    ),
];

pub(super) fn run(command: &Demo, settings: &Settings, output: &Output) -> Outcome {
    if command.remove {
        return remove(&existing(settings)?, output);
    }
    let library = open(settings)?;
    let call = progress::call(output);
    let item = |sample: &Sample| ImportItem {
        resource_id: sample.2.map(str::to_owned),
        tags: vec!["demo".into()],
        ..ImportItem::new(format!("demo/{}", sample.0), ImportContent::Bytes(sample.1.to_vec()))
    };
    let done = library.import(&Caller::owner(), COLLECTION, SAMPLES.iter().map(item).collect(), &call)?;
    if done.added + done.updated > 0 {
        library.snapshot_collection(&Caller::owner(), COLLECTION, Some("demo"), &call)?;
    }
    add_book(&library, &call)?;
    library.index_now(&call)?;
    library.keep_index();
    drop(call);
    if output.json {
        let tries: Vec<Value> = TRY
            .iter()
            .map(|(what, line)| json!({ "what": what, "command": typed(line, settings) }))
            .collect();
        return output.print_json(&json!({ "collection": COLLECTION, "book": BOOK, "try": tries }));
    }
    let count = counted(SAMPLES.len() as u64, "document", "documents");
    output.say(Tone::Good, &format!("{count} in the collection {COLLECTION}, and the book {BOOK}"));
    output.print("Things to try:")?;
    for (what, command) in TRY {
        output.print(&format!("\n  {what}\n    {}", typed(command, settings)))?;
    }
    let shelf = settings.program();
    output.print(&format!(
        "\nThen let your agent use it: {shelf} client add claude-code (or cursor, vscode, …)"
    ))?;
    output.print(&format!("When you are done: {shelf} demo --remove"))
}

/// A command so that it finds this library.
fn typed(command: &str, settings: &Settings) -> String {
    command.strip_prefix("shelf").map_or_else(|| command.to_owned(), |rest| settings.program() + rest)
}

/// Books are imported from folders.
fn add_book(library: &Library, call: &shelf_base::CallContext) -> Outcome {
    let folder = library.folder().join("uploads").join(format!("demo-{}", std::process::id()));
    let written = BOOK_FILES.iter().try_for_each(|Sample(name, bytes, _)| {
        let path = folder.join(name);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, bytes)
    });
    let imported = match written {
        Ok(()) => library.import_book(&Caller::owner(), BOOK, &folder, call).map(drop).map_err(Into::into),
        Err(error) => Err(error.into()),
    };
    let _ = fs::remove_dir_all(&folder);
    imported
}

fn remove(library: &Library, output: &Output) -> Outcome {
    let call = progress::call(output);
    let listed = tool(library, "list_collections_tool", json!({ "limit": 1000 }), &call)?;
    let mut removed = 0;
    for found in listed.as_array().into_iter().flatten() {
        let name = text(found, "name");
        if name == COLLECTION || name == BOOK {
            tool(library, "delete_collection_tool", json!({ "collection_id": text(found, "id") }), &call)?;
            removed += 1;
        }
    }
    drop(call);
    if output.json {
        return output.print_json(&json!({ "removed": removed > 0 }));
    }
    if removed == 0 {
        output.say(Tone::Warning, "there is no demo in this library");
    } else {
        output.say(Tone::Good, "the demo is deleted; `shelf gc` frees its space");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::Arguments;

    #[test]
    fn what_is_proposed_can_be_typed() {
        for (_, command) in TRY {
            let words = crate::cli::examples::words(command);
            assert!(Arguments::try_parse_from(&words).is_ok(), "{command}");
        }
    }
}
