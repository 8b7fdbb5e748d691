//! Errors of tools in the words of the command line: agents pass fields, people pass flags.

use std::path::Path;

use shelf_base::Kind;

use crate::outcome::CliError;

/// Fields whose flag has another name; every other field is its own flag, with hyphens.
const FLAGS: &[(&str, &str)] = &[
    ("sort_by", "--sort"),
    ("sort_order", "--descending"),
    ("snapshot_id", "--snapshot"),
    ("snapshot_label", "--label"),
    ("output_directory", "the folder"),
    ("outputPath", "--output"),
    ("layout_template", "--layout"),
    ("include_patterns", "--include"),
    ("exclude_patterns", "--exclude"),
    ("tags", "--tag"),
    ("match_all_tags", "--all-tags"),
    ("path", "the path"),
    ("paths", "the path"),
    ("pattern", "the pattern"),
    ("name", "the name"),
    ("names", "the name"),
    ("hash", "the hash"),
    ("query", "the query"),
    ("url", "the URL"),
    ("content", "the content"),
    ("include_content", "--info"),
    ("resource_id", "the resource ID"),
    ("node_id", "the node"),
    ("address", "the address"),
    ("book_id", "the book"),
];

/// The error, speaking of the flag where it begins with the name of a field that the command passed on.
pub(super) fn named(mut error: CliError, fields: &[String]) -> CliError {
    if error.code != Kind::Invalid.row().code {
        return error;
    }
    let end = error.message.find([' ', ':']).unwrap_or(error.message.len());
    let (first, rest) = error.message.split_at(end);
    if fields.iter().any(|field| field == first) {
        error.message = format!("{}{rest}", flag(first));
    }
    // Elsewhere only what cannot be an ordinary word is taken for a field.
    for field in fields.iter().filter(|field| field.contains('_')) {
        error.message = error.message.replace(&format!(" {field}"), &format!(" {}", flag(field)));
    }
    error
}

fn flag(field: &str) -> String {
    let known = FLAGS.iter().find(|(name, _)| *name == field);
    known.map_or_else(|| format!("--{}", field.replace('_', "-")), |(_, flag)| (*flag).to_owned())
}

impl CliError {
    /// The owner is refused only by the operating system: then it helps to know which folder that is about.
    pub(super) fn with_place(self, folder: &Path) -> Self {
        if self.code == Kind::Denied.row().code && self.message.contains("read-only") {
            return self.hint(format!("the library is in {}", folder.display()));
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_was_given_becomes_its_flag() {
        let check = |message: &str, expected: &str| {
            let fields = ["sort_by", "start_line", "type"].map(str::to_owned);
            assert_eq!(named(CliError::new(Kind::Invalid, message), &fields).message, expected);
        };
        check("sort_by must be name", "--sort must be name");
        check("start_line must be at least 1", "--start-line must be at least 1");
        check("type must be text", "--type must be text");
        check("type must not be before start_line 9", "--type must not be before --start-line 9");
        check("start_line: not a number", "--start-line: not a number");
        check("limit must be a number", "limit must be a number");
        check("typed words stay", "typed words stay");
    }
}
