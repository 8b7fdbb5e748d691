//! Names of documents on the command line.

use std::path::Path;

use clap::builder::{OsStringValueParser, TypedValueParser};
use shelf_engine::path_text;

/// Takes a name as it is typed. A file whose name is not Unicode is named by its bytes, as the shell completes them, or in
/// the spelling that the library has for it.
pub(super) fn parser() -> impl TypedValueParser<Value = String> {
    OsStringValueParser::new().map(|name| match name.into_string() {
        Ok(text) => text,
        Err(bytes) => path_text(Path::new(&bytes)),
    })
}
