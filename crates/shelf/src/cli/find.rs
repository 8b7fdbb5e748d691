//! The arguments of `shelf search` and `shelf grep`. The flags of grep are ripgrep's most common ones.

use clap::Args;

#[derive(Args)]
pub(crate) struct Search {
    /// Search query; multiple words need no quotes
    #[arg(required_unless_present = "hash")]
    pub query: Vec<String>,
    /// Show at most N documents
    #[arg(short = 'n', long, value_name = "N", default_value = "10")]
    pub limit: u64,
    /// Search type: keyword, semantic or hybrid
    #[arg(long, default_value = "hybrid")]
    pub r#type: String,
    /// Do not correct typos
    #[arg(long)]
    pub no_fuzzy: bool,
    /// Minimum similarity of a corrected word, from 0.0 to 1.0
    #[arg(long, value_name = "S", default_value = "0.7")]
    pub similarity: f64,
    /// Only hits with at least this score, from 0.0 to 1.0
    #[arg(long, value_name = "SCORE", default_value_t = 0.0)]
    pub min_score: f64,
    /// Find content with this hash (full, or a prefix of at least 8 digits)
    #[arg(long)]
    pub hash: Option<String>,
    /// Only this collection
    #[arg(short, long)]
    pub collection: Option<String>,
    /// Only documents whose path matches this glob; may be repeated
    #[arg(short = 'g', long = "glob", visible_alias = "path", value_name = "GLOB")]
    pub paths: Vec<String>,
    /// Only documents with one of these tags; may be repeated
    #[arg(short, long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,
    /// Only this extension
    #[arg(short, long)]
    pub extension: Option<String>,
    /// Only this MIME type
    #[arg(long)]
    pub mime: Option<String>,
    /// Print only paths, one per line
    #[arg(short, long = "paths", visible_alias = "paths-only")]
    pub paths_only: bool,
    /// Lines of context after a match
    #[arg(short = 'A', long, value_name = "N", default_value = "0")]
    pub after_context: u64,
    /// Lines of context before a match
    #[arg(short = 'B', long, value_name = "N", default_value = "0")]
    pub before_context: u64,
    /// Lines of context before and after a match
    #[arg(short = 'C', long, value_name = "N", default_value = "0")]
    pub context: u64,
    /// Show the keyword and semantic scores
    #[arg(long)]
    pub explain: bool,
}

#[derive(Args)]
pub(crate) struct Grep {
    /// Regular expression
    #[arg(required_unless_present_any = ["regexp", "file"])]
    pub pattern: Option<String>,
    /// Globs, folders or names to search; defaults to all documents
    pub paths: Vec<String>,
    /// Regular expression; may be repeated, and a line matches if one of them does
    #[arg(short = 'e', long, value_name = "PATTERN")]
    pub regexp: Vec<String>,
    /// Search for the pattern as plain text
    #[arg(short = 'F', long)]
    pub fixed_strings: bool,
    /// Only this collection
    #[arg(long)]
    pub collection: Option<String>,
    /// Only documents whose path matches this glob; may be repeated
    #[arg(short = 'g', long, value_name = "GLOB")]
    pub glob: Vec<String>,
    /// Ignore case
    #[arg(short, long)]
    pub ignore_case: bool,
    /// Ignore case unless the pattern has capital letters
    #[arg(short = 'S', long, conflicts_with = "ignore_case")]
    pub smart_case: bool,
    /// Match whole words only
    #[arg(short = 'w', long)]
    pub word: bool,
    /// Match whole lines only
    #[arg(short = 'x', long)]
    pub line_regexp: bool,
    /// Show the lines that do not match
    #[arg(short = 'v', long)]
    pub invert: bool,
    /// Show only the matching parts of lines, one per line
    #[arg(short, long, conflicts_with_all = ["invert", "count", "files_with_matches", "files_without_match"])]
    pub only_matching: bool,
    /// Show line numbers, which is the default
    #[arg(short = 'n', long, overrides_with = "no_line_numbers")]
    pub line_number: bool,
    /// Omit line numbers
    #[arg(short = 'N', long, overrides_with = "line_number")]
    pub no_line_numbers: bool,
    /// Show file names, which is the default
    #[arg(short = 'H', long, overrides_with = "no_filename")]
    pub with_filename: bool,
    /// Omit file names
    #[arg(short = 'I', long, overrides_with = "with_filename")]
    pub no_filename: bool,
    /// Show only the number of matching lines per document
    #[arg(short, long)]
    pub count: bool,
    /// Show only the paths of documents with a match
    #[arg(short = 'l', long)]
    pub files_with_matches: bool,
    /// Show only the paths of documents without a match
    #[arg(short = 'L', long, conflicts_with = "files_with_matches")]
    pub files_without_match: bool,
    /// Lines of context after a match
    #[arg(short = 'A', long, value_name = "N", default_value = "0")]
    pub after_context: u64,
    /// Lines of context before a match
    #[arg(short = 'B', long, value_name = "N", default_value = "0")]
    pub before_context: u64,
    /// Lines of context before and after a match
    #[arg(short = 'C', long, value_name = "N", default_value = "0")]
    pub context: u64,
    /// Stop after N matching lines per document; 0 for no limit
    #[arg(short, long, value_name = "N", default_value = "0")]
    pub max_count: u64,
    #[arg(short = 'P', long, hide = true)]
    pub pcre2: bool,
    #[arg(short = 'E', long, hide = true)]
    pub extended_regexp: bool,
    #[arg(short = 't', long = "type", hide = true, value_name = "TYPE")]
    pub kind: Option<String>,
    #[arg(short = 'U', long, hide = true)]
    pub multiline: bool,
    #[arg(short = 'r', long, hide = true)]
    pub replace: bool,
    #[arg(short = 'z', long, hide = true)]
    pub search_zip: bool,
    #[arg(short = 'f', long, hide = true, value_name = "FILE")]
    pub file: Option<String>,
    #[arg(long, hide = true)]
    pub hidden: bool,
    #[arg(long, hide = true)]
    pub no_ignore: bool,
}

impl Grep {
    /// The patterns and the paths: with `-e` there is no pattern among the positional arguments.
    pub(crate) fn patterns_and_paths(&self) -> (Vec<&str>, Vec<&str>) {
        let given = self.pattern.as_deref();
        let paths = self.paths.iter().map(String::as_str);
        if self.regexp.is_empty() {
            (given.into_iter().collect(), paths.collect())
        } else {
            (self.regexp.iter().map(String::as_str).collect(), given.into_iter().chain(paths).collect())
        }
    }

    /// What ripgrep's flags ask for that has no meaning here, with the reason.
    pub(crate) fn refused(&self) -> Option<(&'static str, &'static str)> {
        let refusals = [
            (
                self.pcre2,
                "-P (--pcre2)",
                "patterns have the syntax of ripgrep's default engine, without look-around",
            ),
            (self.extended_regexp, "-E (--extended-regexp)", "every pattern is one; leave it out"),
            (self.kind.is_some(), "-t (--type)", "give a glob instead, such as -g '*.rs'"),
            (self.multiline, "-U (--multiline)", "a match lies within one line"),
            (
                self.replace,
                "-r (--replace)",
                "grep only shows lines; every document is searched already, so there is nothing to recurse into",
            ),
            (self.search_zip, "-z (--search-zip)", "archives are not unpacked; add their files instead"),
            (self.file.is_some(), "-f (--file)", "give each pattern with -e"),
            (self.hidden, "--hidden", "every stored document is searched already"),
            (self.no_ignore, "--no-ignore", "every stored document is searched already"),
        ];
        refusals.into_iter().find(|(is_given, ..)| *is_given).map(|(_, flag, why)| (flag, why))
    }
}
