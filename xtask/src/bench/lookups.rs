//! Looking single documents up, and listing them: calls whose time must not grow with the library.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::line_client::{Call, LineClient};
use super::random::Random;
use super::report::{Report, Target};

/// Documents that are looked up, all different.
const LOOKUPS: usize = 300;
/// Calls before anything is measured.
const WARM_UP: usize = 20;
/// Target: finding one document, in milliseconds.
const LOOKUP_TARGET: f64 = 0.5;
/// Target: a page of a list, in milliseconds.
const LIST_TARGET: f64 = 2.0;

/// Measures `get` by path, end of a path, title and hash prefix, and a page of `list`.
pub fn measure(client: &mut LineClient, report: &mut Report) -> Result<()> {
    let documents = some_documents(client)?;
    let texts = |of: fn(&str) -> String, field: &str| -> Vec<String> {
        documents.iter().filter_map(|document| document[field].as_str()).map(of).collect()
    };
    let whole = texts(str::to_owned, "path");
    let ends = texts(last_parts, "path");
    let names = texts(|path| path.rsplit('/').next().unwrap_or(path).to_owned(), "path");
    let prefixes = texts(|hash| hash.chars().take(12).collect(), "hash");
    for (what, field, values) in [
        ("get by path", "name", whole),
        ("get by the end of a path", "name", ends),
        ("get by file name", "name", names),
        ("get by hash prefix", "hash", prefixes),
    ] {
        let calls: Vec<Call> = values.iter().map(|value| ("get", json!({ field: value }))).collect();
        timed(client, what, &calls, LOOKUP_TARGET, report)?;
    }
    let pages: Vec<Call> = (0..LOOKUPS).map(|_| ("list", json!({ "limit": 50 }))).collect();
    timed(client, "list, a page of 50", &pages, LIST_TARGET, report)
}

fn timed(
    client: &mut LineClient,
    what: &str,
    calls: &[Call],
    target: f64,
    report: &mut Report,
) -> Result<()> {
    for call in calls.iter().take(WARM_UP) {
        let reply = client.call(call)?;
        anyhow::ensure!(!reply.is_null(), "`{}` {} gave nothing", call.0, call.1);
    }
    let before = client.processor()?;
    let waits = calls.iter().map(|call| client.timed(call)).collect::<Result<Vec<_>>>()?;
    let processor = (client.processor()? - before) * 1e3 / calls.len() as f64;
    report.latencies(what, "shelf", &waits, Target::AtMost(target), Target::None);
    report.single(&format!("{what}, CPU"), "shelf", "ms", processor, Target::None);
    Ok(())
}

/// Documents from all over the library.
fn some_documents(client: &mut LineClient) -> Result<Vec<Value>> {
    let mut documents: Vec<Value> = Vec::new();
    let mut cursor = Value::Null;
    while documents.len() < 20 * LOOKUPS {
        let mut arguments = json!({ "limit": 1000 });
        if !cursor.is_null() {
            arguments["cursor"] = cursor;
        }
        let mut reply = client.call(&("list", arguments))?;
        let page = reply["documents"].as_array_mut().context("`list` gave no `documents`")?;
        documents.append(page);
        cursor = reply["next_cursor"].take();
        if cursor.is_null() {
            break;
        }
    }
    let mut random = Random::new(0x5eed_0060);
    Ok((0..LOOKUPS).map(|_| random.pick(&documents).clone()).collect())
}

/// The last folder and the name.
fn last_parts(path: &str) -> String {
    let parts: Vec<&str> = path.rsplit('/').take(2).collect();
    parts.into_iter().rev().collect::<Vec<_>>().join("/")
}
