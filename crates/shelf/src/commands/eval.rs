//! `eval`: measures how well search finds documents that people judged relevant.
//!
//! A folder holds `corpus.jsonl` (`_id`, `title`, `text`), `queries.jsonl` (`_id`, `text`) and `qrels.tsv` (query,
//! document, grade). The documents are added to a temporary library, and every query runs on the real engine.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde::Deserialize;
use serde_json::{Value, json};
use shelf_base::{CallContext, Kind};
use shelf_engine::{AddRequest, Caller, Library, Options, SearchKind, SearchRequest, StoreRequest, What};

use crate::{
    cli,
    outcome::{CliError, Outcome, reason},
    output::{Output, Tone},
    progress,
};

const KINDS: [(&str, SearchKind); 3] =
    [("keyword", SearchKind::Keyword), ("semantic", SearchKind::Semantic), ("hybrid", SearchKind::Hybrid)];
/// Characters of a title at most.
const TITLE_CHARS: usize = 500;
/// Number of hits considered for recall.
const DEPTH: usize = 100;

#[derive(Deserialize)]
struct Judged {
    #[serde(rename = "_id")]
    id: String,
    #[serde(default)]
    title: String,
    text: String,
}

/// Grades of the relevant documents for each query.
type Grades = HashMap<String, HashMap<String, f64>>;

/// The metrics of one search type.
#[derive(Clone, Copy, Default)]
struct Figures {
    ndcg: f64,
    map: f64,
    recall: f64,
    p50: Duration,
    p95: Duration,
}

pub(super) fn run(command: &cli::Eval, output: &Output) -> Outcome {
    let mut rows = Vec::new();
    let mut replies = Vec::new();
    let mut sums: BTreeMap<usize, Figures> = BTreeMap::new();
    for folder in &command.folders {
        let name = folder.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        for (at, figures) in measure(folder, command, output)?.into_iter().enumerate() {
            rows.push(row(&name, KINDS[at].0, &figures));
            replies.push(reply(&name, KINDS[at].0, &figures));
            let sum = sums.entry(at).or_default();
            sum.ndcg += figures.ndcg / command.folders.len() as f64;
            sum.map += figures.map / command.folders.len() as f64;
            sum.recall += figures.recall / command.folders.len() as f64;
            sum.p50 += figures.p50 / command.folders.len() as u32;
            sum.p95 += figures.p95 / command.folders.len() as u32;
        }
    }
    if command.folders.len() > 1 {
        rows.extend(sums.iter().map(|(at, figures)| row("average", KINDS[*at].0, figures)));
    }
    if output.json {
        return output.print_json(&Value::Array(replies));
    }
    output.table(&["COLLECTION", "SEARCH", "nDCG@10", "MAP", "RECALL@100", "P50 ms", "P95 ms"], &rows)
}

fn row(folder: &str, kind: &str, figures: &Figures) -> Vec<String> {
    vec![
        folder.to_owned(),
        kind.to_owned(),
        format!("{:.3}", figures.ndcg),
        format!("{:.3}", figures.map),
        format!("{:.3}", figures.recall),
        format!("{:.2}", figures.p50.as_secs_f64() * 1e3),
        format!("{:.2}", figures.p95.as_secs_f64() * 1e3),
    ]
}

fn reply(folder: &str, kind: &str, figures: &Figures) -> Value {
    json!({
        "collection": folder,
        "search": kind,
        "ndcg_10": figures.ndcg,
        "map": figures.map,
        "recall_100": figures.recall,
        "p50_ms": figures.p50.as_secs_f64() * 1e3,
        "p95_ms": figures.p95.as_secs_f64() * 1e3,
    })
}

fn measure(folder: &Path, command: &cli::Eval, output: &Output) -> Outcome<Vec<Figures>> {
    let corpus: Vec<Judged> = lines(&folder.join("corpus.jsonl"))?;
    let mut queries: Vec<Judged> = lines(&folder.join("queries.jsonl"))?;
    let grades = grades(&folder.join("qrels.tsv"))?;
    queries.retain(|query| grades.contains_key(&query.id));
    queries.truncate(command.queries.unwrap_or(usize::MAX));
    if queries.is_empty() {
        return Err(CliError::new(Kind::Invalid, format!("{} has no judged queries", folder.display())));
    }
    let scratch = Scratch::new()?;
    let library = Library::open(&scratch.0.join("library"), Options::default())?;
    let ids = if command.stored {
        store_each(&corpus, &library)?
    } else {
        store(&scratch.0.join("corpus"), &corpus, &library, output)?
    };
    if let Some(percent) = command.deepen.filter(|percent| *percent > 0) {
        let call = progress::call(output);
        let all = library.deepen_figures(&Caller::owner())?.map_or(0, |figures| figures.passages);
        library.deepen(&Caller::owner(), None, Some(all * u64::from(percent) / 100), &call)?;
    }
    output.say(
        Tone::Good,
        &format!("{}: {} documents, {} queries", folder.display(), corpus.len(), queries.len()),
    );
    KINDS.iter().map(|(_, kind)| ask(&library, *kind, &queries, &grades, &ids)).collect()
}

fn store(
    folder: &Path,
    corpus: &[Judged],
    library: &Library,
    output: &Output,
) -> Outcome<HashMap<String, String>> {
    fs::create_dir_all(folder)?;
    let mut ids = HashMap::new();
    for (at, document) in corpus.iter().enumerate() {
        let path = folder.join(format!("{at:07}.txt"));
        let text = format!("{}\n{}\n", document.title, document.text);
        fs::write(&path, text.trim_start())?;
        ids.insert(path.display().to_string(), document.id.clone());
    }
    let request = AddRequest { recursive: true, ..AddRequest::new(What::Path(folder.to_owned())) };
    let call = progress::call(output);
    library.add(&Caller::owner(), &request, &call)?;
    library.index_now(&call)?;
    Ok(ids)
}

/// Stores documents with their titles.
fn store_each(corpus: &[Judged], library: &Library) -> Outcome<HashMap<String, String>> {
    let (caller, call) = (Caller::owner(), CallContext::new());
    let mut ids = HashMap::new();
    for document in corpus {
        let title = if document.title.is_empty() { &document.id } else { &document.title };
        let request = StoreRequest {
            title: title.chars().take(TITLE_CHARS).collect(),
            // Some documents of public collections have a title only.
            content: if document.text.trim().is_empty() { title.clone() } else { document.text.clone() },
            document_type: None,
            metadata: Default::default(),
            collection: None,
        };
        let stored = library.store_document(&caller, &request, &call)?;
        ids.insert(format!("documents/{}", stored.id), document.id.clone());
    }
    library.index_now(&call)?;
    Ok(ids)
}

fn ask(
    library: &Library,
    kind: SearchKind,
    queries: &[Judged],
    grades: &Grades,
    ids: &HashMap<String, String>,
) -> Outcome<Figures> {
    let (caller, call) = (Caller::owner(), CallContext::new());
    let (mut figures, mut times) = (Figures::default(), Vec::new());
    for query in queries {
        let request = SearchRequest { kind, ..SearchRequest::new(&query.text) };
        let began = Instant::now();
        library.search(&caller, &request, &call)?;
        times.push(began.elapsed());
        let deep = SearchRequest { limit: DEPTH, show: false, ..request };
        let found = library.search(&caller, &deep, &call)?;
        let ranked: Vec<&str> =
            found.hits.iter().filter_map(|hit| ids.get(&hit.document.path).map(String::as_str)).collect();
        let judged = &grades[&query.id];
        figures.ndcg += ndcg(&ranked, judged) / queries.len() as f64;
        figures.map += average_precision(&ranked, judged) / queries.len() as f64;
        figures.recall += recall(&ranked, judged) / queries.len() as f64;
    }
    times.sort();
    figures.p50 = times[times.len() / 2];
    figures.p95 = times[times.len() * 95 / 100];
    Ok(figures)
}

fn lines<T: serde::de::DeserializeOwned>(path: &Path) -> Outcome<Vec<T>> {
    let text = read(path)?;
    let parsed = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()).map(|(number, line)| {
        serde_json::from_str(line)
            .map_err(|error| CliError::new(Kind::Invalid, format!("{}:{number}: {error}", path.display())))
    });
    parsed.collect()
}

/// Parses lines of query, document and grade. A header line and the older four-column format are accepted too.
fn grades(path: &Path) -> Outcome<Grades> {
    let mut grades = Grades::new();
    for line in read(path)?.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (query, document, grade) = match fields[..] {
            [query, document, grade] | [query, _, document, grade] => (query, document, grade),
            _ => continue,
        };
        if let Ok(grade) = grade.parse::<f64>()
            && grade > 0.0
        {
            grades.entry(query.to_owned()).or_default().insert(document.to_owned(), grade);
        }
    }
    Ok(grades)
}

fn read(path: &Path) -> Outcome<String> {
    fs::read_to_string(path).map_err(|error| {
        CliError::new(Kind::of_io(&error), format!("cannot read {}: {}", path.display(), reason(&error)))
    })
}

fn ndcg(ranked: &[&str], judged: &HashMap<String, f64>) -> f64 {
    let gain = |grades: &mut dyn Iterator<Item = f64>| -> f64 {
        grades.take(10).enumerate().map(|(at, grade)| grade / (at as f64 + 2.0).log2()).sum()
    };
    let found = gain(&mut ranked.iter().map(|id| judged.get(*id).copied().unwrap_or(0.0)));
    let mut best: Vec<f64> = judged.values().copied().collect();
    best.sort_by(|a, b| b.total_cmp(a));
    let ideal = gain(&mut best.into_iter());
    if ideal > 0.0 { found / ideal } else { 0.0 }
}

fn average_precision(ranked: &[&str], judged: &HashMap<String, f64>) -> f64 {
    let (mut hits, mut sum) = (0.0, 0.0);
    for (at, id) in ranked.iter().enumerate() {
        if judged.contains_key(*id) {
            hits += 1.0;
            sum += hits / (at as f64 + 1.0);
        }
    }
    sum / judged.len().max(1) as f64
}

fn recall(ranked: &[&str], judged: &HashMap<String, f64>) -> f64 {
    ranked.iter().filter(|id| judged.contains_key(**id)).count() as f64 / judged.len().max(1) as f64
}

/// A temporary folder, removed on drop.
pub(super) struct Scratch(pub PathBuf);

impl Scratch {
    pub(super) fn new() -> Outcome<Self> {
        let unique = format!("shelf-eval-{}-{}", std::process::id(), shelf_base::ids::DocumentId::fresh());
        let folder = std::env::temp_dir().join(unique);
        fs::create_dir(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_are_what_their_names_say() {
        let judged = HashMap::from([("a".to_owned(), 2.0), ("b".to_owned(), 1.0)]);
        assert!((ndcg(&["a", "b"], &judged) - 1.0).abs() < 1e-9);
        let swapped = (1.0 + 2.0 / 3_f64.log2()) / (2.0 + 1.0 / 3_f64.log2());
        assert!((ndcg(&["b", "a"], &judged) - swapped).abs() < 1e-9);
        assert!((average_precision(&["x", "a", "b"], &judged) - (0.5 + 2.0 / 3.0) / 2.0).abs() < 1e-9);
        assert!((recall(&["x", "b"], &judged) - 0.5).abs() < 1e-9);
        assert_eq!(ndcg(&[], &judged), 0.0);
    }
}
