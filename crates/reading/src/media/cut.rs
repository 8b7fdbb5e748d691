//! Clips of recordings.
//!
//! A clip must begin and end where it says, and hold nothing else: a player's list of edits that hides the footage
//! before the first frame is no cut. So streams are copied only where the clip begins with a frame that needs no other,
//! and encoded anew otherwise. A copy is looked at afterwards, and encoded anew if it came out too long or too short.

use std::{ffi::OsString, fs, path::Path};

use shelf_base::CallContext;

use super::{MediaError, MediaFacts, Recording, Task, probe::length, run::run};

/// Seconds that a clip may take.
const CUT_SECONDS: u64 = 600;
/// How far, in milliseconds, a clip may begin or end from where it should.
const TOLERANCE: u64 = 45;

/// The extension that a clip of a recording gets, with its dot: that of the recording where clips are made in its form.
pub fn extension_of_clip(extension: &str, recording: Recording) -> &'static str {
    const KEPT: [&str; 11] =
        [".mp4", ".mov", ".mkv", ".webm", ".m4v", ".mp3", ".wav", ".m4a", ".ogg", ".opus", ".flac"];
    let is_video = |known: &str| [".mp4", ".mov", ".mkv", ".webm", ".m4v"].contains(&known);
    let kept = KEPT.into_iter().find(|known| *known == extension);
    match (kept, recording) {
        (Some(kept), Recording::Video) if is_video(kept) => kept,
        (Some(kept), Recording::Audio) => kept,
        (_, Recording::Video) => ".mp4",
        (_, Recording::Audio) => ".flac",
    }
}

/// Cuts the clip between two times, in milliseconds, into `target`, whose extension says in which form.
pub fn cut_clip(
    source: &Path,
    facts: &MediaFacts,
    (start, end): (u64, u64),
    target: &Path,
    call: &CallContext,
) -> Result<(), MediaError> {
    let wanted = end.saturating_sub(start);
    let same_form = source.extension() == target.extension();
    let copied_from = match facts.recording {
        Recording::Video => key_frame_near(facts, start),
        // The packets of these are longer than the tolerance, or depend on those before them.
        Recording::Audio => {
            let is_fine = !matches!(facts.codec.as_str(), "flac" | "vorbis" | "wmav2");
            is_fine.then_some(start * 1_000)
        }
    };
    if let Some(from) = copied_from.filter(|_| same_form) {
        let cut = ffmpeg(source, facts, (from, wanted * 1_000), target, Way::Copy, call);
        let is_exact = cut.is_ok() && length_is(target, facts.recording, wanted, call)?;
        if is_exact {
            return Ok(());
        }
        if let Err(error @ (MediaError::Stopped(_) | MediaError::Absent { .. })) = cut {
            return Err(error);
        }
        let _ = fs::remove_file(target);
    }
    ffmpeg(source, facts, (start * 1_000, wanted * 1_000), target, Way::Encode, call)
}

/// The key frame at which a clip that starts at a time may begin, in microseconds.
fn key_frame_near(facts: &MediaFacts, start: u64) -> Option<u64> {
    let (start, near) = (start * 1_000, TOLERANCE * 500);
    let at = facts.key_frames.partition_point(|time| time + near < start);
    facts.key_frames.get(at).copied().filter(|time| time.abs_diff(start) <= near)
}

fn length_is(clip: &Path, recording: Recording, wanted: u64, call: &CallContext) -> Result<bool, MediaError> {
    match length(clip, recording, call) {
        Ok(found) => Ok(found.is_some_and(|found| found.abs_diff(wanted) <= TOLERANCE)),
        Err(error @ (MediaError::Stopped(_) | MediaError::Absent { .. })) => Err(error),
        Err(_) => Ok(false),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Copy,
    Encode,
}

fn ffmpeg(
    source: &Path,
    facts: &MediaFacts,
    (start, length): (u64, u64),
    target: &Path,
    way: Way,
    call: &CallContext,
) -> Result<(), MediaError> {
    let time = |time: u64| format!("{}.{:06}", time / 1_000_000, time % 1_000_000);
    let file = |path: &Path| {
        let mut name = OsString::from("file:");
        name.push(path);
        name
    };
    let recording = facts.recording;
    let form = target.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let is_mp4 = matches!(form, "mp4" | "mov" | "m4v");
    let is_copied_video = way == Way::Copy && recording == Recording::Video;
    // A copy ends by the order in which frames are stored, which is ahead of the order in which they are shown.
    let length =
        if is_copied_video { length.saturating_sub(facts.reorder * 1_000).max(1_000) } else { length };
    // MP4 finds the key frame at its exact time, and would hide it for a time that is later. Other forms find the one
    // before, and have nothing to hide it with.
    let late = if is_copied_video && !is_mp4 { TOLERANCE * 500 } else { 0 };
    let (start, length) = (start + late, length.saturating_sub(late).max(1_000));
    let mut arguments: Vec<OsString> = Vec::new();
    let mut give = |words: &[&str]| arguments.extend(words.iter().map(OsString::from));
    give(&["-nostdin", "-v", "error", "-protocol_whitelist", "file,pipe", "-ss", &time(start), "-i"]);
    arguments.push(file(source));
    let mut give = |words: &[&str]| arguments.extend(words.iter().map(OsString::from));
    give(&["-t", &time(length), "-map_chapters", "-1", "-sn", "-dn"]);
    match recording {
        Recording::Video => give(&["-map", "0:v:0", "-map", "0:a:0?"]),
        Recording::Audio => give(&["-map", "0:a:0"]),
    }
    match way {
        Way::Copy if is_mp4 => give(&["-c", "copy"]),
        Way::Copy => give(&["-c", "copy", "-avoid_negative_ts", "make_zero"]),
        Way::Encode => give(codecs(form)),
    }
    if matches!(form, "mp4" | "mov" | "m4a" | "m4v") {
        give(&["-movflags", "+faststart"]);
    }
    give(&["-fflags", "+bitexact", "-y"]);
    arguments.push(file(target));
    run(Task { program: "ffmpeg", seconds: CUT_SECONDS, call }, &arguments).map(|_| ())
}

fn codecs(form: &str) -> &'static [&'static str] {
    match form {
        "webm" => &[
            "-c:v",
            "libvpx-vp9",
            "-crf",
            "24",
            "-b:v",
            "0",
            "-deadline",
            "realtime",
            "-cpu-used",
            "6",
            "-row-mt",
            "1",
            "-c:a",
            "libopus",
            "-b:a",
            "160k",
        ],
        "mp4" | "mov" | "mkv" | "m4v" => {
            &["-c:v", "libx264", "-preset", "veryfast", "-crf", "18", "-c:a", "aac", "-b:a", "192k"]
        }
        "m4a" => &["-c:a", "aac", "-b:a", "256k"],
        "mp3" => &["-c:a", "libmp3lame", "-b:a", "256k"],
        "ogg" => &["-c:a", "libvorbis", "-q:a", "8"],
        "opus" => &["-c:a", "libopus", "-b:a", "192k"],
        "wav" => &["-c:a", "pcm_s16le"],
        _ => &["-c:a", "flac"],
    }
}
