//! Clips of recordings.
//!
//! A clip must begin and end where it says, and hold nothing else: a player's list of edits that hides the footage
//! before the first frame is no cut. So streams are copied only where the clip begins with a frame that needs no other,
//! and encoded anew otherwise. The program that copies also tells which packets it copied; from their times follows
//! whether picture and sound both begin and end where they should and miss nothing in between, and the clip is encoded
//! anew when that does not follow. So a clip that needs no encoding takes one run of one program.

use std::{ffi::OsString, fs, path::Path};

use shelf_base::CallContext;

use super::{MediaError, MediaFacts, Recording, Task, packets::Copied, probe::length, run::run};

/// Seconds that a clip may take.
const CUT_SECONDS: u64 = 600;
/// How far, in milliseconds, a clip may begin or end from where it should.
pub(super) const TOLERANCE: u64 = 45;
/// How far, in microseconds, after a key frame forms other than MP4 are told to begin: their times are rounded.
const LATE: u64 = 10_000;
/// Frames are encoded at the rate that the recording has, within these bounds. Where frames are rare, the one that is
/// shown at the start of the clip began long before it, so it is repeated.
const RATE: &str = "if(lt(source_fps,23.9),50,min(source_fps,60))";

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

/// A clip that is to be cut. Times are in microseconds.
struct Clip<'a> {
    source: &'a Path,
    facts: &'a MediaFacts,
    start: u64,
    length: u64,
    target: &'a Path,
}

/// Cuts the clip between two times, in milliseconds, into `target`, whose extension says in which form.
pub fn cut_clip(
    source: &Path,
    facts: &MediaFacts,
    (start, end): (u64, u64),
    target: &Path,
    call: &CallContext,
) -> Result<(), MediaError> {
    let (start, end) = (start * 1_000, end * 1_000);
    let clip_from = |start: u64| Clip { source, facts, start, length: end.saturating_sub(start), target };
    let same_form = source.extension() == target.extension();
    let copied_from = match facts.recording {
        Recording::Video => key_frame_near(facts, start),
        // The packets of these are longer than the tolerance, or depend on those before them.
        Recording::Audio => {
            let is_fine = !matches!(facts.codec.as_str(), "flac" | "vorbis" | "wmav2");
            is_fine.then_some(start)
        }
    };
    if let Some(from) = copied_from.filter(|_| same_form) {
        match copy(&clip_from(from), call) {
            Ok(true) => return Ok(()),
            Err(error @ (MediaError::Stopped(_) | MediaError::Absent { .. })) => return Err(error),
            Ok(false) | Err(_) => {}
        }
        let _ = fs::remove_file(target);
    }
    let clip = clip_from(start);
    clip.run(&clip.encoding(), call)?;
    clip.must_hold_something(call)
}

/// The key frame at which a clip that starts at a time may begin, in microseconds.
fn key_frame_near(facts: &MediaFacts, start: u64) -> Option<u64> {
    let near = TOLERANCE * 500;
    let at = facts.key_frames.partition_point(|time| time + near < start);
    facts.key_frames.get(at).copied().filter(|time| time.abs_diff(start) <= near)
}

/// Copies a clip, and tells whether it begins and ends where it should, by what the program says that it copied.
fn copy(clip: &Clip<'_>, call: &CallContext) -> Result<bool, MediaError> {
    let ran = clip.run(&clip.copying(), call)?;
    // The list of packets is not all there: the clip itself is looked at.
    if ran.is_cut() {
        let found = length(clip.target, clip.facts.recording, call)?;
        return Ok(found.is_some_and(|found| found.abs_diff(clip.length / 1_000) <= TOLERANCE));
    }
    let Some(copied) = Copied::read(&String::from_utf8_lossy(&ran.output)) else { return Ok(false) };
    Ok(match clip.facts.recording {
        Recording::Audio => copied.is_sound(clip.length),
        Recording::Video => copied.is_film(clip.length, clip.facts.has_sound, clip.is_mp4()),
    })
}

/// A time as the program reads it.
fn time(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

fn file(path: &Path) -> OsString {
    let mut name = OsString::from("file:");
    name.push(path);
    name
}

fn give(arguments: &mut Vec<OsString>, words: &[&str]) {
    arguments.extend(words.iter().map(OsString::from));
}

impl Clip<'_> {
    fn form(&self) -> &str {
        self.target.extension().and_then(|extension| extension.to_str()).unwrap_or_default()
    }

    fn is_mp4(&self) -> bool {
        matches!(self.form(), "mp4" | "mov" | "m4v")
    }

    fn run(&self, arguments: &[OsString], call: &CallContext) -> Result<super::run::Ran, MediaError> {
        run(Task { program: "ffmpeg", seconds: CUT_SECONDS, call }, arguments)
    }

    /// Fails for a clip in which nothing was written: the recording ends before it.
    fn must_hold_something(&self, call: &CallContext) -> Result<(), MediaError> {
        let found = length(self.target, self.facts.recording, call).or_else(|error| match error {
            MediaError::Damaged { .. } => Ok(None),
            error => Err(error),
        })?;
        match found.filter(|found| *found > 0) {
            Some(_) => Ok(()),
            None => {
                let what = format!("it holds nothing from {} s on", time(self.start));
                Err(MediaError::Damaged { what })
            }
        }
    }

    /// The source as an input, read from a time, and for so long if that is given.
    fn input(&self, arguments: &mut Vec<OsString>, options: &[&str], start: u64, length: Option<u64>) {
        give(arguments, options);
        give(arguments, &["-protocol_whitelist", "file,pipe", "-ss", &time(start)]);
        if let Some(length) = length {
            give(arguments, &["-t", &time(length)]);
        }
        give(arguments, &["-i"]);
        arguments.push(file(self.source));
    }

    /// What is taken of the inputs: the picture of the first and the sound of the last.
    const fn streams(&self) -> &'static [&'static str] {
        match self.facts.recording {
            Recording::Video => &["-map", "0:v:0", "-map", "1:a:0?"],
            Recording::Audio => &["-map", "0:a:0"],
        }
    }

    fn copying(&self) -> Vec<OsString> {
        let mut arguments = Vec::new();
        give(&mut arguments, &["-nostdin", "-v", "error"]);
        let is_video = self.facts.recording == Recording::Video;
        // MP4 finds the key frame at its exact time, and would hide it for a time that is later. Other forms find the
        // one before, and have nothing to hide it with.
        let late = if is_video && !self.is_mp4() { LATE } else { 0 };
        let (start, length) = (self.start + late, self.length.saturating_sub(late).max(1_000));
        if is_video {
            // A copy ends by the order in which frames are stored, which is ahead of the order in which they are shown.
            // Sound is stored in the order in which it is heard.
            let shorter = length.saturating_sub(self.facts.reorder * 1_000).max(1_000);
            self.input(&mut arguments, &[], start, Some(shorter));
        }
        self.input(&mut arguments, &[], start, Some(length));
        // Sound before the start would be kept, and only hidden.
        let kept: &[&str] = if is_video { &["-c", "copy", "-copypriorss:a", "0"] } else { &["-c", "copy"] };
        give(&mut arguments, &["-map_chapters", "-1", "-sn", "-dn"]);
        give(&mut arguments, self.streams());
        give(&mut arguments, kept);
        if !self.is_mp4() {
            give(&mut arguments, &["-avoid_negative_ts", "make_zero"]);
        }
        self.output(&mut arguments);
        // The same packets once more, as a list of their times.
        give(&mut arguments, self.streams());
        give(&mut arguments, kept);
        give(&mut arguments, &["-f", "framecrc", "-"]);
        arguments
    }

    fn encoding(&self) -> Vec<OsString> {
        let mut arguments = Vec::new();
        give(&mut arguments, &["-nostdin", "-v", "error"]);
        let is_video = self.facts.recording == Recording::Video;
        if is_video {
            // From the key frame before the start, for the frame that is shown at the start.
            self.input(&mut arguments, &["-noaccurate_seek"], self.start, None);
        }
        self.input(&mut arguments, &[], self.start, None);
        give(&mut arguments, &["-t", &time(self.length), "-map_chapters", "-1", "-sn", "-dn"]);
        give(&mut arguments, self.streams());
        if is_video {
            give(&mut arguments, &["-vf", &self.picture(), "-af", "aresample=async=1:first_pts=0"]);
        }
        give(&mut arguments, codecs(self.form()));
        self.output(&mut arguments);
        arguments
    }

    /// The filter of the picture: it begins with the clip, black where the recording has none yet.
    fn picture(&self) -> String {
        let first = self.facts.key_frames.first().copied().unwrap_or(0);
        match first.checked_sub(self.start).filter(|missing| *missing > TOLERANCE * 1_000) {
            Some(missing) => {
                let missing = time(missing);
                format!("setpts=PTS-STARTPTS,fps='{RATE}',tpad=start_duration={missing}:color=black")
            }
            None => format!("fps=fps='{RATE}':start_time=0"),
        }
    }

    fn output(&self, arguments: &mut Vec<OsString>) {
        if self.is_mp4() || self.form() == "m4a" {
            give(arguments, &["-movflags", "+faststart"]);
        }
        give(arguments, &["-fflags", "+bitexact", "-y"]);
        arguments.push(file(self.target));
    }
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
