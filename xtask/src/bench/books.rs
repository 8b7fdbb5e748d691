//! `bench books`: a book of 55,000 files over HTTP (reading, writing, globs, patterns, many agents at once), and the
//! archive of a book of 500 files with 200 MB.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Instant;

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::Scale;
use super::corpus;
use super::many::Client;
use super::random::Random;
use super::report::{Report, Target};
use super::text::Writer;
use super::timing::quantile;
use super::words::Words;
use crate::places;
use crate::server::Server;

/// The book with many files.
const LARGE: &str = "large-book";
/// The book that is archived.
const HEAVY: &str = "heavy-book";
/// Agents at once.
const AGENTS: usize = 100;

/// Makes the books and measures them.
pub fn run(scale: Scale) -> Result<()> {
    let shelf = places::built_shelf()?;
    let work = places::root().join("bench").join("work").join(scale.folder()).join("books");
    corpus::remove(&work)?;
    fs::create_dir_all(&work)?;
    let data = work.join("library");
    let mut report = Report::new("books", scale, &work);
    println!("== making the books");
    let (lessons, others) = (scale.of(10_000), scale.of(45_000));
    import(&shelf, &data, LARGE, &large(&work, lessons, others)?)?;
    import(&shelf, &data, HEAVY, &heavy(&work, scale)?)?;
    println!("== measuring over HTTP");
    let server = Server::start(&shelf, &data)?;
    let mut client = Client::connect(&server.address())?;
    reading_and_writing(&mut client, lessons, scale, &mut report)?;
    finding(&mut client, scale, &mut report)?;
    archiving(&mut client, &server, &mut report)?;
    many_agents(&server, lessons, scale, &mut report)?;
    drop(server);
    corpus::remove(&work)?;
    report.finish()
}

fn import(shelf: &Path, data: &Path, book: &str, folder: &Path) -> Result<()> {
    let status = Command::new(shelf)
        .arg("--data-dir")
        .arg(data)
        .args(["books", "import", book])
        .arg(folder)
        .status()?;
    if !status.success() {
        bail!("`shelf books import` failed");
    }
    Ok(())
}

/// Lessons of prose, and many small files beside them.
fn large(work: &Path, lessons: usize, others: usize) -> Result<PathBuf> {
    let folder = work.join("large");
    let words = Words::new();
    let mut writer = Writer::new(&words, 0x5eed_0b00);
    for number in 0..lessons {
        let place = folder.join(format!("lessons/part-{}/chapter-{:02}", number / 1_000, number / 50 % 20));
        fs::create_dir_all(&place)?;
        let text = writer.prose(2_000 + number % 3_000);
        let marked = if number % 500 == 7 { format!("{text}\nUses OpenDAL here.\n") } else { text };
        fs::write(place.join(format!("lesson-{number}.md")), marked)?;
    }
    for number in 0..others {
        let place = folder.join(format!("files/{}", number / 500));
        fs::create_dir_all(&place)?;
        fs::write(place.join(format!("{number}.txt")), format!("file {number}\n"))?;
    }
    Ok(folder)
}

/// 500 files with 200 MB that do not compress.
fn heavy(work: &Path, scale: Scale) -> Result<PathBuf> {
    let folder = work.join("heavy");
    let place = folder.join("assets/images");
    fs::create_dir_all(&place)?;
    let mut random = Random::new(0x5eed_0b01);
    for number in 0..scale.of(500) {
        let mut bytes = vec![0; 400_000];
        random.fill(&mut bytes);
        fs::write(place.join(format!("{number}.png")), bytes)?;
    }
    Ok(folder)
}

fn lesson(number: usize) -> String {
    format!("lessons/part-{}/chapter-{:02}/lesson-{number}.md", number / 1_000, number / 50 % 20)
}

fn timed(client: &mut Client, tool: &str, arguments: &Value) -> Result<(f64, Value)> {
    let start = Instant::now();
    let reply = client.call(tool, arguments)?;
    Ok((start.elapsed().as_secs_f64() * 1e3, reply))
}

fn reading_and_writing(client: &mut Client, lessons: usize, scale: Scale, report: &mut Report) -> Result<()> {
    let mut random = Random::new(0x5eed_0b02);
    let (mut reads, mut writes, mut large) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..scale.of(4_000).max(200) {
        let arguments = json!({ "book_id": LARGE, "path": lesson(random.below(lessons)) });
        reads.push(timed(client, "read_content", &arguments)?.0);
    }
    for number in 0..scale.of(2_000).max(100) {
        let content = format!("# Lesson\n\nWritten by an agent, number {number}.\n").repeat(20);
        let arguments =
            json!({ "book_id": LARGE, "path": format!("lessons/new/{number}.md"), "content": content });
        writes.push(timed(client, "write_content", &arguments)?.0);
    }
    let content = "A line of a lesson of fifty kilobytes, which is long.\n".repeat(950);
    let place = json!({ "book_id": LARGE, "path": "lessons/fifty.md" });
    let mut whole = place.clone();
    whole["content"] = json!(content);
    client.call("write_content", &whole)?;
    for _ in 0..scale.of(2_000).max(100) {
        large.push(timed(client, "read_content", &place)?.0);
    }
    report.single("read_content p50", "shelf", "ms", quantile(&reads, 0.5), Target::AtMost(1.0));
    report.single("write_content p50", "shelf", "ms", quantile(&writes, 0.5), Target::AtMost(5.0));
    report.single(
        "read of 50 KB, one client, p95",
        "shelf",
        "ms",
        quantile(&large, 0.95),
        Target::AtMost(5.0),
    );
    Ok(())
}

fn finding(client: &mut Client, scale: Scale, report: &mut Report) -> Result<()> {
    let rounds = scale.of(400).max(20);
    let mut globs = Vec::new();
    for pattern in ["lessons/**/lesson-1*7.md", "**/*.png", "files/7/*", "**/4?.txt"] {
        let arguments = json!({ "book_id": LARGE, "pattern": pattern });
        for _ in 0..rounds / 4 {
            globs.push(timed(client, "glob_search", &arguments)?.0);
        }
    }
    report.single("glob over all paths p50", "shelf", "ms", quantile(&globs, 0.5), Target::AtMost(10.0));
    let mut patterns = Vec::new();
    for pattern in ["OpenDAL", "Uses \\w+DAL", "nothingofthiskind", "^# Less"] {
        let arguments = json!({ "book_id": LARGE, "pattern": pattern, "max_results": 100 });
        for _ in 0..rounds / 4 {
            patterns.push(timed(client, "grep_search", &arguments)?.0);
        }
    }
    report.single("grep_search p50", "shelf", "ms", quantile(&patterns, 0.5), Target::AtMost(25.0));
    report.single("grep_search p95", "shelf", "ms", quantile(&patterns, 0.95), Target::AtMost(25.0));
    Ok(())
}

fn resident(process: u32) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or_default();
    Ok(line.split_whitespace().nth(1).unwrap_or("0").parse::<f64>()? / 1e3)
}

fn archiving(client: &mut Client, server: &Server, report: &mut Report) -> Result<()> {
    let before = resident(server.id())?;
    let arguments = json!({ "book_id": HEAVY });
    let (first, reply) = timed(client, "get_book_archive", &arguments)?;
    let grown = resident(server.id())? - before;
    println!("   {} files, {} bytes", reply["file_count"], reply["total_size_bytes"]);
    report.single("archive of 500 files and 200 MB", "shelf", "s", first / 1e3, Target::AtMost(1.5));
    report.single("memory growth by it", "shelf", "MB", grown, Target::AtMost(64.0));
    let mut again = Vec::new();
    for _ in 0..50 {
        again.push(timed(client, "get_book_archive", &arguments)?.0);
    }
    report.single(
        "archive of an unchanged book p50",
        "shelf",
        "ms",
        quantile(&again, 0.5),
        Target::AtMost(10.0),
    );
    Ok(())
}

/// Agents that read and write one book at once; an honest conflict is no error.
fn many_agents(server: &Server, lessons: usize, scale: Scale, report: &mut Report) -> Result<()> {
    let calls = scale.of(2_000).max(100);
    let address = server.address();
    let outcomes: Vec<(Vec<f64>, usize, usize)> = thread::scope(|scope| {
        let agents: Vec<_> = (0..AGENTS)
            .map(|agent| {
                let address = &address;
                scope.spawn(move || work(address, agent, lessons, calls))
            })
            .collect();
        agents.into_iter().filter_map(|agent| agent.join().ok()).collect()
    });
    let reads: Vec<f64> = outcomes.iter().flat_map(|(reads, ..)| reads.iter().copied()).collect();
    let errors: usize = outcomes.iter().map(|(_, errors, _)| errors).sum();
    let conflicts: usize = outcomes.iter().map(|(_, _, conflicts)| conflicts).sum();
    let lost = AGENTS - outcomes.len();
    report.single("100 agents: read p95", "shelf", "ms", quantile(&reads, 0.95), Target::None);
    report.single("100 agents: conflicts", "shelf", "calls", conflicts as f64, Target::None);
    report.single("100 agents: errors", "shelf", "calls", (errors + lost) as f64, Target::AtMost(0.0));
    Ok(())
}

fn work(address: &str, agent: usize, lessons: usize, calls: usize) -> (Vec<f64>, usize, usize) {
    let (mut reads, mut errors, mut conflicts) = (Vec::new(), 0, 0);
    let Ok(mut client) = Client::connect(address) else { return (reads, 1, conflicts) };
    let mut random = Random::new(agent as u64 + 1);
    for number in 0..calls {
        // A tenth of the files is contended.
        let place = json!({ "book_id": LARGE, "path": lesson(random.below(lessons.div_ceil(10))) });
        match timed(&mut client, "read_content", &place) {
            Ok((taken, read)) => {
                reads.push(taken);
                if number % 10 == 0 {
                    let mut arguments = place.clone();
                    arguments["content"] = json!(format!("edit {number} by {agent}\n"));
                    arguments["file_hash"] = read["file_hash_sha256"].clone();
                    match client.call("write_content", &arguments) {
                        Ok(_) => {}
                        Err(error) if error.to_string().contains("ConflictError") => conflicts += 1,
                        Err(_) => errors += 1,
                    }
                }
            }
            Err(_) => errors += 1,
        }
    }
    (reads, errors, conflicts)
}
