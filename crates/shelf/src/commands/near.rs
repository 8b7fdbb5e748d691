//! What to try when a name means nothing: names that are near, or the command that lists them all.

use shelf_base::{Kind, nearest};
use shelf_engine::{Caller, Library};

use crate::outcome::CliError;

/// Names that are proposed at most.
const MOST: usize = 3;

/// The error with a hint, if it is about a name that is not known and has none yet.
pub(super) fn advised(error: CliError, library: &Library) -> CliError {
    if error.code != Kind::NotFound.row().code || !error.hints.is_empty() {
        return error;
    }
    let message = error.message.to_lowercase();
    let Some(name) = quoted(&error.message).map(str::to_owned) else { return error };
    if message.starts_with("no document ") {
        error.hint(document(&name, None, library))
    } else if message.starts_with("no collection ") {
        let known = library.collections(&Caller::owner()).unwrap_or_default();
        let names = known.iter().map(|found| found.collection.name.as_str());
        error.hint(proposal(&name, names, "run `shelf collections` to see all collections"))
    } else if message.starts_with("no snapshot ") {
        error.hint("run `shelf snapshot list` to see all snapshots")
    } else if message.contains("resource '") {
        let known = library.list_resources(&Caller::owner()).map(|list| list.resources).unwrap_or_default();
        let names = known.iter().map(String::as_str);
        error.hint(proposal(&name, names, "run `shelf cite list` to see everything that can be cited"))
    } else {
        error
    }
}

/// What to try when the name of a document means nothing.
pub(super) fn document(name: &str, collection: Option<&str>, library: &Library) -> String {
    if let Some(collection) = collection
        && let Ok(known) = library.collections(&Caller::owner())
        && !known.iter().any(|found| found.collection.name == collection)
    {
        let names = known.iter().map(|found| found.collection.name.as_str());
        let all = "run `shelf collections` to see all collections";
        return format!("there is no collection '{collection}'; {}", proposal(collection, names, all));
    }
    match library.near_names(&Caller::owner(), collection, name) {
        Ok(near) if !near.is_empty() => format!("did you mean {}?", near.join(", ")),
        _ => "run `shelf list` to see all documents".into(),
    }
}

fn proposal<'a>(name: &str, known: impl Iterator<Item = &'a str>, all: &str) -> String {
    match nearest(name, known, MOST).as_slice() {
        [] => all.to_owned(),
        near => format!("did you mean {}?", near.join(", ")),
    }
}

/// What stands between the first quotes of a message.
fn quoted(message: &str) -> Option<&str> {
    let rest = message.split_once('\'')?.1;
    rest.rsplit_once('\'').map(|(name, _)| name)
}
