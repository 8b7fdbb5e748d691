//! `bench cite`: looking up nodes, cutting pages and clips, and making maps, over stdio.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::line_client::LineClient;
use super::report::{Report, Target};
use super::text::Writer;
use super::words::Words;
use super::{Scale, corpus, timing};
use crate::{places, step};

/// Pages of the document that is cut.
const PAGES: usize = 500;
/// Pages of one cut.
const CUT: usize = 5;
/// Seconds of the clip that is cut.
const CLIP: usize = 60;
/// Clips that are cut.
const CLIPS: usize = 21;

/// Measures the citations family.
pub fn run(scale: Scale) -> Result<()> {
    let work = places::root().join("bench").join("work").join(scale.folder());
    let data = work.join("stores").join("cite");
    corpus::remove(&data)?;
    fs::create_dir_all(&data)?;
    let mut report = Report::new("cite", scale, &work);
    let mut client =
        LineClient::start(&places::built_shelf()?, &data.join("library"), &data.join("serve.log"))?;
    client.initialized()?;
    nodes(&mut client, &data, scale, &mut report)?;
    pages(&mut client, &data, scale, &mut report)?;
    clips(&mut client, &data, scale, &mut report)?;
    client.close()?;
    corpus::remove(&work.join("stores"))?;
    report.finish()
}

fn ask(client: &mut LineClient, tool: &'static str, arguments: Value) -> Result<Value> {
    let reply = client.call(&(tool, arguments.clone()))?;
    if reply.is_null() {
        bail!("{tool} failed with {arguments}");
    }
    Ok(reply)
}

fn nodes(client: &mut LineClient, data: &Path, scale: Scale, report: &mut Report) -> Result<()> {
    let words = Words::new();
    for (count, limit) in [(1_000, 0.5), (100_000, 1.0)] {
        let mut writer = Writer::new(&words, 0x5eed_0050);
        let mut text = String::new();
        for number in 0..count {
            let level = if number % 20 == 0 { "#" } else { "##" };
            writeln!(text, "{level} Heading {number}\n\n{}\n", writer.prose(200).replace('#', ""))?;
        }
        let path = data.join(format!("nodes-{count}.md"));
        fs::write(&path, &text)?;
        let id = format!("nodes-{count}");
        ask(client, "add", json!({ "path": path, "resource_id": id }))?;
        let started = Instant::now();
        let arguments = json!({ "resource_id": id, "node_id": "heading_0" });
        ask(client, "getNode", arguments)?;
        let rate = text.len() as f64 / 1e6 / started.elapsed().as_secs_f64();
        report.single(&format!("map of a text with {count} headings"), "shelf", "MB/s", rate, Target::None);
        let mut lookups = Vec::new();
        for number in 0..scale.of(2_000) {
            let parent = number * 20 % count;
            let node = format!("heading_{parent}.heading_{}", parent + 1);
            lookups.push(client.timed(&("getNode", json!({ "resource_id": id, "node_id": node })))?);
        }
        let what = format!("getNode, {count} nodes, p50");
        report.samples(&what, "shelf", "ms", lookups, Target::AtMost(limit));
        let mut virtually = Vec::new();
        for number in 0..scale.of(1_000) {
            let node = format!("heading_{}", number * 20 % count);
            let arguments = json!({ "resource_id": id, "node_id": node, "virtual": true });
            virtually.push(client.timed(&("resolve", arguments))?);
        }
        report.samples(
            &format!("resolve, virtual, {count} nodes, p50"),
            "shelf",
            "ms",
            virtually,
            Target::AtMost(10.0),
        );
    }
    let mut structures = Vec::new();
    for _ in 0..scale.of(200) {
        structures.push(client.timed(&("getStructure", json!({ "resource_id": "nodes-1000" })))?);
    }
    report.samples("getStructure, 1,000 nodes, p50", "shelf", "ms", structures, Target::AtMost(10.0));
    Ok(())
}

fn pages(client: &mut LineClient, data: &Path, scale: Scale, report: &mut Report) -> Result<()> {
    let path = data.join("book.pdf");
    fs::write(&path, book(PAGES))?;
    ask(client, "add", json!({ "path": path, "resource_id": "book" }))?;
    let started = Instant::now();
    ask(client, "getStructure", json!({ "resource_id": "book" }))?;
    let rate = PAGES as f64 / started.elapsed().as_secs_f64();
    report.single("map of a PDF, after it was added", "shelf", "pages/s", rate, Target::None);
    let mut cuts = Vec::new();
    let mut peer: Vec<f64> = Vec::new();
    let has_qpdf = step::succeeds("qpdf", &["--version"]);
    let out = data.join("cut.pdf");
    for number in 0..scale.of(200).max(5) {
        let first = 1 + (250 + number * CUT) % (PAGES - CUT);
        let address = format!("doc://book#pages={first}-{}", first + CUT - 1);
        cuts.push(client.timed(&("resolve", json!({ "address": address })))?);
        if has_qpdf {
            let started = Instant::now();
            let range = format!("{first}-{}", first + CUT - 1);
            let mut command = Command::new("qpdf");
            command.arg(&path).args(["--pages", ".", &range, "--"]).arg(&out);
            command.output()?;
            peer.push(started.elapsed().as_secs_f64() * 1e3);
        }
    }
    let what = format!("{CUT} pages of {PAGES} cut out, p50");
    report.samples(&what, "shelf", "ms", cuts, Target::AtMost(20.0));
    if has_qpdf {
        report.samples(&what, "qpdf", "ms", peer, Target::None);
    } else {
        report.absent("qpdf");
    }
    if step::succeeds("pdftotext", &["-v"]) {
        let mut rates = Vec::new();
        for _ in 0..5 {
            let started = Instant::now();
            Command::new("pdftotext").arg(&path).arg(data.join("book.txt")).output()?;
            rates.push(PAGES as f64 / started.elapsed().as_secs_f64());
        }
        report.samples("text of a PDF", "pdftotext", "pages/s", rates, Target::None);
    } else {
        report.absent("pdftotext");
    }
    Ok(())
}

fn clips(client: &mut LineClient, data: &Path, scale: Scale, report: &mut Report) -> Result<()> {
    if !step::succeeds("ffmpeg", &["-version"]) {
        report.absent("ffmpeg");
        return Ok(());
    }
    let path = data.join("film.mp4");
    let length = scale.of(1_200).max(2 * CLIP + 20);
    let made = Command::new("ffmpeg")
        .args(["-v", "error", "-y", "-f", "lavfi", "-i", "testsrc2=size=640x360:rate=25", "-t"])
        .arg(length.to_string())
        .args(["-g", "50", "-c:v", "libx264", "-preset", "ultrafast"])
        .arg(&path)
        .status()?;
    if !made.success() {
        bail!("ffmpeg could not make the film");
    }
    ask(client, "add", json!({ "path": path, "resource_id": "film" }))?;
    ask(client, "getStructure", json!({ "resource_id": "film" }))?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    // A new place each time, so that nothing is there already; the two in turn, so that both see the same machine.
    for number in 0..CLIPS {
        let start = 2 * number;
        let address = format!("video://film#t={start}-{}", start + CLIP);
        ours.push(client.timed(&("resolve", json!({ "address": address })))?);
        let started = Instant::now();
        Command::new("ffmpeg")
            .args(["-v", "error", "-y", "-ss", &start.to_string(), "-i"])
            .arg(&path)
            .args(["-t", &CLIP.to_string(), "-c", "copy"])
            .arg(data.join("clip.mp4"))
            .output()?;
        theirs.push(started.elapsed().as_secs_f64() * 1e3);
    }
    let ratio = timing::median(&ours) / timing::median(&theirs);
    report.samples("clip of 60 s on key frames", "shelf", "ms", ours, Target::None);
    report.samples("clip of 60 s on key frames", "ffmpeg -c copy", "ms", theirs, Target::None);
    report.single("clip on key frames / ffmpeg -c copy", "shelf", "times", ratio, Target::AtMost(1.2));
    Ok(())
}

/// A PDF whose pages have forty lines of text each.
fn book(pages: usize) -> Vec<u8> {
    let words = Words::new();
    let mut writer = Writer::new(&words, 0x5eed_0051);
    let mut bytes = b"%PDF-1.4\n".to_vec();
    let mut places = Vec::new();
    let mut put = |bytes: &mut Vec<u8>, id: usize, body: &str| {
        places.push((id, bytes.len()));
        bytes.extend_from_slice(format!("{id} 0 obj\n{body}\nendobj\n").as_bytes());
    };
    let kids: Vec<String> = (0..pages).map(|page| format!("{} 0 R", 4 + 2 * page)).collect();
    put(&mut bytes, 1, "<< /Type /Catalog /Pages 2 0 R >>");
    let tree = format!(
        "<< /Type /Pages /Count {pages} /Kids [{}] /MediaBox [0 0 595 842] /Resources << /Font << /F 3 0 R >> >> >>",
        kids.join(" ")
    );
    put(&mut bytes, 2, &tree);
    put(&mut bytes, 3, "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>");
    for page in 0..pages {
        let mut content = String::from("BT /F 10 Tf 50 800 Td 12 TL ");
        let prose: String =
            writer.prose(2_800).chars().filter(|each| each.is_alphanumeric() || *each == ' ').collect();
        for line in prose.as_bytes().chunks(70) {
            content.push_str(&format!("({}) ' ", String::from_utf8_lossy(line)));
        }
        content.push_str("ET");
        let id = 4 + 2 * page;
        put(&mut bytes, id, &format!("<< /Type /Page /Parent 2 0 R /Contents {} 0 R >>", id + 1));
        put(&mut bytes, id + 1, &format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()));
    }
    let start = bytes.len();
    let count = places.len() + 1;
    let mut table = format!("xref\n0 {count}\n0000000000 65535 f \n");
    for (_, at) in &places {
        table.push_str(&format!("{at:010} 00000 n \n"));
    }
    table.push_str(&format!("trailer\n<< /Size {count} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n"));
    bytes.extend_from_slice(table.as_bytes());
    bytes
}
