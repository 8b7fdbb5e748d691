//! `bench graph`: what reading facts costs, how much room they take, and how long an agent waits for connections.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::json;

use super::Scale;
use super::corpus;
use super::imports::{self, Import};
use super::library::Library;
use super::random::Random;
use super::report::{Report, Target};
use super::text::Writer;
use super::timing::{self, Invocation};
use super::words::Words;
use crate::places;

/// Files of each half of the corpus: prose and code.
const FILES: usize = 27_500;
/// Files of one folder.
const FOLDER: usize = 50;
/// Documents from which walks begin.
const ORIGINS: usize = 200;

/// How often a half is added and its facts are read: the machine's speed changes from minute to minute.
const ROUNDS: usize = 3;
/// Share of the processor time of adding and indexing that reading facts may add.
const SHARE: f64 = 40.0;
/// Share of the text that facts may take on disk.
const ROOM: f64 = 15.0;
/// Milliseconds of a walk of two steps, and of one of five.
const TWO_STEPS: f64 = 10.0;
const FIVE_STEPS: f64 = 50.0;

/// Packages whose sources cargo keeps, of which the first that are there are compared.
const CODE_BASES: [&str; 8] =
    ["tantivy", "regex-automata", "lopdf", "image", "zip", "hyper", "quick-xml", "nom"];
/// How many of them are compared.
const COMPARED: usize = 3;
/// Imports that are compared.
const SAMPLED: usize = 200;
/// Per cent of them that must be found both ways.
const AGREEMENT: f64 = 95.0;

/// Makes the corpus and measures.
pub fn run(scale: Scale) -> Result<()> {
    let shelf = places::built_shelf()?;
    let work = places::root().join("bench").join("work").join(scale.folder());
    let tree = work.join("graph");
    let words = Words::new();
    let count = scale.of(FILES);
    if !tree.join("done").exists() {
        println!("== writing {} files", 2 * count);
        corpus::remove(&tree)?;
        write_prose(&tree.join("prose"), count, &words)?;
        write_code(&tree.join("code"), count)?;
        fs::write(tree.join("done"), "")?;
    }
    let mut report = Report::new("graph", scale, &work);
    for half in ["prose", "code"] {
        measure_half(half, &shelf, &work, &tree.join(half), &mut report)?;
    }
    println!("== creating a library of {} documents", 2 * count);
    let (library, _) = Library::make(shelf, &work, &tree)?;
    report.fact("shelf", library.version());
    measure_walks(&library, &tree, count, &mut report)?;
    compare_imports(&library.shelf, &work, &mut report)?;
    report.finish()
}

fn measure_half(half: &str, shelf: &Path, work: &Path, tree: &Path, report: &mut Report) -> Result<()> {
    println!("== adding and indexing {half}");
    let words = [shelf.as_os_str(), "graph".as_ref(), "--read-only".as_ref(), tree.as_os_str()];
    let reading = Invocation { words: words.map(Into::into).to_vec(), variables: Vec::new() };
    let text = corpus::bytes_below(tree)? as f64;
    let (mut speeds, mut shares) = (Vec::new(), Vec::new());
    for _ in 1..ROUNDS {
        let (_, made) = Library::make(shelf.to_owned(), work, tree)?;
        measure_facts(&reading, work, (text, made.taken.processor), &mut speeds, &mut shares)?;
    }
    let (library, made) = Library::make(shelf.to_owned(), work, tree)?;
    measure_facts(&reading, work, (text, made.taken.processor), &mut speeds, &mut shares)?;
    report.samples(&format!("{half}: reading facts"), "shelf", "MB per CPU-s", speeds, Target::None);
    let what = format!("{half}: facts beside adding and indexing");
    report.samples(&what, "shelf", "% of CPU", shares, Target::AtMost(SHARE));
    let mut client = library.serve()?;
    let status = client.call(&("status", json!({ "detailed": true })))?;
    let bytes = find_number(&status, "graph_bytes").context("status does not tell the bytes of facts")?;
    report.single(
        &format!("{half}: facts on disk"),
        "shelf",
        "% of text",
        100.0 * bytes / text,
        Target::AtMost(ROOM),
    );
    Ok(())
}

/// The speed at which facts are read by themselves, and their share of what adding took, in the same minute.
fn measure_facts(
    reading: &Invocation,
    work: &Path,
    (text, whole): (f64, f64),
    speeds: &mut Vec<f64>,
    shares: &mut Vec<f64>,
) -> Result<()> {
    let alone = timing::measure(reading, &work.join("figures"))?.processor;
    speeds.push(text / 1e6 / alone);
    shares.push(100.0 * alone / (whole - alone));
    Ok(())
}

fn find_number(value: &serde_json::Value, name: &str) -> Option<f64> {
    match value {
        serde_json::Value::Object(fields) => fields
            .get(name)
            .and_then(serde_json::Value::as_f64)
            .or_else(|| fields.values().find_map(|inner| find_number(inner, name))),
        _ => None,
    }
}

fn measure_walks(library: &Library, tree: &Path, count: usize, report: &mut Report) -> Result<()> {
    let mut client = library.serve()?;
    let mut random = Random::new(7);
    for half in ["prose", "code"] {
        let names: Vec<String> = (0..ORIGINS)
            .map(|_| tree.join(half).join(path(half, random.below(count))).display().to_string())
            .collect();
        for (steps, limit, target) in [(2, 100, TWO_STEPS), (5, 200, FIVE_STEPS)] {
            for reverse in [false, true] {
                let ask = |name: &String| {
                    ("graph", json!({ "name": name, "depth": steps, "limit": limit, "reverse": reverse }))
                };
                client.timed(&ask(&names[0]))?;
                let times =
                    names.iter().map(|name| client.timed(&ask(name))).collect::<Result<Vec<f64>>>()?;
                let way = if reverse { "backwards" } else { "forwards" };
                let what = format!("{half}: {steps} steps {way}");
                report.latencies(&what, "shelf", &times, Target::AtMost(target), Target::None);
            }
        }
    }
    Ok(())
}

/// Compares the imports of real code with those that another program finds.
fn compare_imports(shelf: &Path, work: &Path, report: &mut Report) -> Result<()> {
    let bases = code_bases()?;
    if bases.len() < COMPARED {
        report.fact("imports", "not compared: cargo keeps too few of the packages");
        return Ok(());
    }
    let (mut both, mut one) = (Vec::new(), Vec::new());
    for base in &bases {
        let expected = imports::imports(&base.join("src/lib.rs"))?;
        println!("== comparing {} imports of {}", expected.len(), base.display());
        let (library, _) = Library::make(shelf.to_owned(), work, &base.join("src"))?;
        let found = found_imports(&library, &expected)?;
        both.extend(expected.intersection(&found).cloned());
        one.extend(expected.symmetric_difference(&found).cloned());
        for (from, to) in expected.symmetric_difference(&found).take(10) {
            let who = if expected.contains(&(from.clone(), to.clone())) { "missing" } else { "surplus" };
            println!("   {who}: {} -> {}", from.display(), to.display());
        }
    }
    let named = |base: &PathBuf| base.file_name().map(|name| name.to_string_lossy().into_owned());
    report.fact("imports of", bases.iter().filter_map(named).collect::<Vec<_>>().join(", "));
    let mut all: Vec<bool> = both.iter().map(|_| true).chain(one.iter().map(|_| false)).collect();
    let mut random = Random::new(17);
    let count = SAMPLED.min(all.len());
    let agreed = (0..count).filter(|_| all.swap_remove(random.below(all.len()))).count();
    let share = 100.0 * agreed as f64 / count.max(1) as f64;
    report.single(
        &format!("{count} imports of Rust modules"),
        "shelf",
        "% agree",
        share,
        Target::AtLeast(AGREEMENT),
    );
    Ok(())
}

/// The imports between the files of a code base, as the graph has them.
fn found_imports(library: &Library, expected: &BTreeSet<Import>) -> Result<BTreeSet<Import>> {
    let files: BTreeSet<&PathBuf> = expected.iter().flat_map(|(from, to)| [from, to]).collect();
    let mut client = library.serve()?;
    let mut found = BTreeSet::new();
    for file in &files {
        let asked = json!({ "name": file, "depth": 1, "relation": "IMPORTS", "limit": 1_000 });
        let reply = client.call(&("graph", asked))?;
        for node in reply["connected_nodes"].as_array().into_iter().flatten() {
            let target = node["path"].as_str().filter(|_| node["type"] == "document").map(PathBuf::from);
            let inside = target.filter(|target| files.contains(target));
            found.extend(inside.map(|target| ((*file).clone(), target)));
        }
    }
    Ok(found)
}

/// Folders of packages that cargo has unpacked.
fn code_bases() -> Result<Vec<PathBuf>> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    let registries = home.context("there is no home folder")?.join("registry").join("src");
    let mut unpacked: Vec<PathBuf> = Vec::new();
    for registry in fs::read_dir(registries).into_iter().flatten().flatten() {
        unpacked.extend(fs::read_dir(registry.path())?.flatten().map(|entry| entry.path()));
    }
    unpacked.sort();
    let of_package = |name: &&str| {
        let is_version = |path: &&PathBuf| {
            let own = path.file_name().and_then(|own| own.to_str()).unwrap_or_default();
            let version = own.strip_prefix(*name).and_then(|rest| rest.strip_prefix('-'));
            version.is_some_and(|version| version.starts_with(|digit: char| digit.is_ascii_digit()))
                && path.join("src/lib.rs").is_file()
        };
        unpacked.iter().find(is_version).cloned()
    };
    Ok(CODE_BASES.iter().filter_map(of_package).take(COMPARED).collect())
}

/// The path of a file of the corpus.
fn path(half: &str, number: usize) -> PathBuf {
    let folder = format!("part{:04}", number / FOLDER);
    match half {
        "prose" => Path::new(&folder).join(format!("page{number}.md")),
        _ if (number / FOLDER).is_multiple_of(2) => Path::new(&folder).join(format!("module{number}.rs")),
        _ => Path::new(&folder).join(format!("module{number}.py")),
    }
}

fn write_prose(folder: &Path, count: usize, words: &Words) -> Result<()> {
    let mut random = Random::new(11);
    let mut writer = Writer::new(words, 12);
    for number in 0..count {
        let mut text = format!("# Page {number}\n\n");
        for part in 0..random.between(3, 6) {
            let to = if random.percent(80) {
                number / FOLDER * FOLDER + random.below(FOLDER)
            } else {
                random.below(count)
            };
            let to = to.min(count - 1);
            let link = format!("../part{:04}/page{to}.md", to / FOLDER);
            text.push_str(&format!(
                "## Part {part}\n\n{}\nSee [page {to}]({link}#part-1).\n\n",
                writer.prose(1_000)
            ));
        }
        write(&folder.join(path("prose", number)), &text)?;
    }
    Ok(())
}

fn write_code(folder: &Path, count: usize) -> Result<()> {
    let mut random = Random::new(13);
    for number in 0..count {
        let first = number / FOLDER * FOLDER;
        let others: Vec<usize> = (0..4).map(|_| (first + random.below(FOLDER)).min(count - 1)).collect();
        let text = if (number / FOLDER).is_multiple_of(2) {
            rust(number, &others, &mut random)
        } else {
            python(number, &others, &mut random)
        };
        write(&folder.join(path("code", number)), &text)?;
    }
    for part in (0..count.div_ceil(FOLDER)).step_by(2) {
        let modules: String = (part * FOLDER..((part + 1) * FOLDER).min(count))
            .map(|number| format!("pub mod module{number};\n"))
            .collect();
        write(&folder.join(format!("part{part:04}/lib.rs")), &modules)?;
    }
    Ok(())
}

fn rust(number: usize, others: &[usize], random: &mut Random) -> String {
    let mut text = String::from("//! A module.\n\nuse std::collections::HashMap;\n");
    others.iter().for_each(|other| text.push_str(&format!("use crate::module{other}::Table{other};\n")));
    text.push_str(&format!("\n/// Keeps rows by name, in the order in which they came.\npub struct Table{number} {{\n    rows: HashMap<String, u64>,\n    count: usize,\n}}\n\nimpl Table{number} {{\n    /// An empty table.\n    pub fn new() -> Self {{\n        Self {{ rows: HashMap::new(), count: 0 }}\n    }}\n\n"));
    for at in 0..random.between(10, 16) {
        let other = random.pick(others);
        text.push_str(&format!("    /// Looks at the rows of another table, and counts those that fit.\n    pub fn step_{at}(&mut self, name: &str) -> Option<u64> {{\n        let table = Table{other}::new();\n        if name.is_empty() || self.rows.contains_key(name) {{\n            return self.rows.get(name).copied();\n        }}\n        self.count += measure_{number}(name, {at});\n        self.rows.insert(name.to_owned(), table.size() as u64);\n        Some(self.size() as u64)\n    }}\n\n"));
    }
    text.push_str(&format!("    /// The number of rows.\n    pub fn size(&self) -> usize {{\n        self.count\n    }}\n}}\n\nfn measure_{number}(name: &str, step: usize) -> usize {{\n    name.len() * step + 1\n}}\n"));
    text
}

fn python(number: usize, others: &[usize], random: &mut Random) -> String {
    let mut text = String::from("\"\"\"A module.\"\"\"\n\nimport os\n");
    others.iter().for_each(|other| text.push_str(&format!("from .module{other} import Table{other}\n")));
    text.push_str(&format!("\n\nclass Table{number}:\n    \"\"\"Keeps rows by name, in the order in which they came.\"\"\"\n\n    def __init__(self, folder):\n        self.rows = {{}}\n        self.folder = os.path.join(folder, 'rows')\n\n"));
    for at in 0..random.between(10, 16) {
        let other = random.pick(others);
        text.push_str(&format!("    def step_{at}(self, name, limit=10):\n        \"\"\"Looks at the rows of another table, and counts those that fit.\"\"\"\n        table = Table{other}(self.folder)\n        if not name or name in self.rows:\n            return self.rows.get(name)\n        self.rows[name] = measure_{number}(name, {at})\n        for key, value in sorted(self.rows.items()):\n            if value > limit:\n                table.size()\n        return self.size()\n\n"));
    }
    text.push_str(&format!("    def size(self):\n        return len(self.rows)\n\n\ndef measure_{number}(name, step):\n    return len(name) * step + 1\n"));
    text
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::create_dir_all(path.parent().context("a folder")?)?;
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
