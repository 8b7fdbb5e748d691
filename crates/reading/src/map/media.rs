//! The nodes of a recording: its chapters, what is said in it, or the parts that silence and cuts divide it into.

use shelf_base::address::{Clip, Place, Seconds};

use super::{Entry, Map, SECTION, assemble};
use crate::{Cue, MediaFacts, Recording};

/// A part ends at a pause once it is this long, in milliseconds.
const PART: u64 = 30_000;
/// It ends anyway once it is this long.
const LONGEST_PART: u64 = 90_000;
/// A pause between two cues, in milliseconds.
const PAUSE: u64 = 700;
/// Characters of the title that words give.
const TITLE_CHARS: usize = 80;

/// The map of a recording. `cues` are its subtitles, embedded or beside it; `cuts` are times, in milliseconds, at which
/// something changes.
pub fn media_map(facts: &MediaFacts, cues: &[Cue], cuts: &[u64]) -> Map {
    let duration = facts.duration;
    let mut entries = Vec::new();
    let chapters: Vec<_> = facts.chapters.iter().filter(|chapter| chapter.start < duration).collect();
    if chapters.is_empty() {
        let parts = if cues.is_empty() { stretches(duration, cuts) } else { said(cues, 0, duration) };
        parts.into_iter().for_each(|part| entries.extend(entry(facts.recording, 1, part)));
    }
    for chapter in chapters {
        let end = chapter.end.min(duration);
        let parts = said(cues, chapter.start, end);
        let summary = parts.first().and_then(|part| part.summary.clone());
        let title = chapter.title.clone();
        entries.extend(entry(facts.recording, 1, Part { start: chapter.start, end, title, summary }));
        parts.into_iter().for_each(|part| entries.extend(entry(facts.recording, 2, part)));
    }
    assemble::assemble(entries)
}

struct Part {
    start: u64,
    end: u64,
    title: String,
    summary: Option<String>,
}

fn entry(recording: Recording, level: usize, part: Part) -> Option<Entry> {
    // Hundredths, inward: a node never reaches beyond what it was made of.
    let start = Seconds::from_hundredths(part.start.div_ceil(10)).ok()?;
    let end = Seconds::from_hundredths(part.end / 10).ok()?;
    let clip = Clip::new(start, end).ok().filter(|_| end > start)?;
    let place = match recording {
        Recording::Video => Place::Video(Some(clip)),
        Recording::Audio => Place::Audio(Some(clip)),
    };
    Some(Entry { level, title: part.title, kind: SECTION, place, summary: part.summary })
}

/// The cues that begin between two times, in parts of about half a minute that end at pauses.
fn said(cues: &[Cue], from: u64, to: u64) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut words = String::new();
    let first = cues.partition_point(|cue| cue.start < from);
    let within = cues[first..].iter().take_while(|cue| cue.start < to);
    for cue in within {
        let end = cue.end.min(to);
        match parts.last_mut() {
            Some(part) if !ends(part, cue, &words) => part.end = part.end.max(end),
            _ => {
                finish(parts.last_mut(), &words);
                words.clear();
                parts.push(Part { start: cue.start, end, title: String::new(), summary: None });
            }
        }
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(&cue.text);
    }
    finish(parts.last_mut(), &words);
    parts
}

fn ends(part: &Part, next: &Cue, words: &str) -> bool {
    let length = part.end.saturating_sub(part.start);
    let pauses = next.start >= part.end + PAUSE || words.ends_with(['.', '!', '?', '。']);
    length >= LONGEST_PART || (length >= PART && pauses)
}

fn finish(part: Option<&mut Part>, words: &str) {
    if let Some(part) = part {
        part.title = title_of(words);
        part.summary = super::summary::of(words);
    }
}

fn title_of(words: &str) -> String {
    let sentence = words.split_inclusive(['.', '!', '?', '。']).next().unwrap_or(words).trim();
    if sentence.chars().count() <= TITLE_CHARS {
        return sentence.to_owned();
    }
    let cut: String = sentence.chars().take(TITLE_CHARS).collect();
    format!("{} …", cut.rsplit_once(' ').map_or(cut.as_str(), |(before, _)| before))
}

/// The parts between cuts, none of them shorter than half of [`PART`] if that can be helped.
fn stretches(duration: u64, cuts: &[u64]) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut start = 0;
    let mut cuts: Vec<u64> = cuts.iter().copied().filter(|cut| *cut < duration).collect();
    cuts.sort_unstable();
    for cut in cuts.into_iter().chain([duration]) {
        let is_end = cut == duration;
        if cut.saturating_sub(start) >= PART / 2 || is_end {
            // A short rest belongs to what is before it.
            match parts.last_mut().filter(|_| is_end && cut - start < PART / 4) {
                Some(last) => last.end = cut,
                None => parts.push(Part { start, end: cut, title: clock_title(start), summary: None }),
            }
            start = cut;
        }
    }
    parts
}

/// A part that nobody named is called by its start.
fn clock_title(start: u64) -> String {
    let seconds = start / 1_000;
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("From {hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("From {minutes}:{seconds:02}")
    }
}
