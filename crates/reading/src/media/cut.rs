//! Clips of recordings.
//!
//! A clip must begin and end where it says, and hold nothing else: a player's list of edits that hides the footage
//! before the first frame is no cut. So streams are copied only where the clip begins with a frame that needs no other,
//! and encoded anew otherwise. The program that copies also tells which packets it copied; from their times follows whether
//! the clip is as long as it should be and begins where it should, and it is encoded anew when it does not. So a clip
//! that needs no encoding takes one run of one program.

use std::{ffi::OsString, fs, path::Path};

use shelf_base::CallContext;

use super::{
    MediaError, MediaFacts, Recording, Task,
    probe::length,
    run::{Ran, run},
};

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
        let copied = ffmpeg(source, facts, (from, wanted * 1_000), target, Way::Copy, call);
        match copied.and_then(|ran| is_exact(&ran, target, facts.recording, wanted, call)) {
            Ok(true) => return Ok(()),
            Err(error @ (MediaError::Stopped(_) | MediaError::Absent { .. })) => return Err(error),
            Ok(false) | Err(_) => {}
        }
        let _ = fs::remove_file(target);
    }
    ffmpeg(source, facts, (start * 1_000, wanted * 1_000), target, Way::Encode, call).map(|_| ())
}

/// The key frame at which a clip that starts at a time may begin, in microseconds.
fn key_frame_near(facts: &MediaFacts, start: u64) -> Option<u64> {
    let (start, near) = (start * 1_000, TOLERANCE * 500);
    let at = facts.key_frames.partition_point(|time| time + near < start);
    facts.key_frames.get(at).copied().filter(|time| time.abs_diff(start) <= near)
}

/// Whether a copy begins where it should and is as long as it should be, by what the program says that it copied.
fn is_exact(
    ran: &Ran,
    clip: &Path,
    recording: Recording,
    wanted: u64,
    call: &CallContext,
) -> Result<bool, MediaError> {
    let is_long_enough = |found: u64| found.abs_diff(wanted) <= TOLERANCE;
    // The list of packets is not all there: the clip itself is looked at.
    if ran.is_cut() {
        return Ok(length(clip, recording, call)?.is_some_and(is_long_enough));
    }
    let packets = Packets::read(&String::from_utf8_lossy(&ran.output));
    Ok(packets.is_some_and(|packets| {
        packets.first.unsigned_abs() <= TOLERANCE && is_long_enough(packets.last.abs_diff(packets.first))
    }))
}

/// When the packets of a copy are shown, in milliseconds of the clip. What is before 0 would be hidden, not cut.
#[derive(Debug, PartialEq, Eq)]
struct Packets {
    /// When the first of them begins.
    first: i64,
    /// When the last of them ends.
    last: i64,
}

impl Packets {
    /// Reads lines such as `0, 512, 1024, 512, 2048, 0x1a2b3c4d`, of which the third number is the time of a packet and
    /// the fourth its length, in the unit that a line such as `#tb 0: 1/12800` gives.
    fn read(list: &str) -> Option<Self> {
        let unit = list.lines().find_map(|line| line.strip_prefix("#tb 0: "))?;
        let (numerator, denominator) = unit.trim().split_once('/')?;
        let (numerator, denominator): (i32, i32) = (numerator.parse().ok()?, denominator.parse().ok()?);
        let milliseconds = |time: i64| {
            let thousandths = i128::from(time) * i128::from(numerator) * 1_000;
            i64::try_from(thousandths.checked_div_euclid(denominator.into())?).ok()
        };
        let times = list.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
            let mut fields = line.split(',').skip(2).map(|field| field.trim().parse::<i64>());
            let (start, length) = (fields.next()?.ok()?, fields.next()?.ok()?);
            Some((start, start.checked_add(length)?))
        });
        let (first, last) = times.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)))?;
        Some(Self { first: milliseconds(first)?, last: milliseconds(last)? })
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
) -> Result<Ran, MediaError> {
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
    let main = match recording {
        Recording::Video => "0:v:0",
        Recording::Audio => "0:a:0",
    };
    give(&["-map", main]);
    if recording == Recording::Video {
        give(&["-map", "0:a:0?"]);
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
    if way == Way::Copy {
        // The same packets once more, as a list of their times.
        let list = ["-t", &time(length), "-map", main, "-c", "copy", "-f", "framecrc", "-"];
        arguments.extend(list.iter().map(OsString::from));
    }
    run(Task { program: "ffmpeg", seconds: CUT_SECONDS, call }, &arguments)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_packets_are_read() {
        let list = "#software: Lavf59.27.100\n#tb 0: 1/12800\n#media_type 0: video\n\
                    0,      -1024,          0,      512,    33193, 0xd3a9a9b5\n\
                    0,       -512,       1024,      512,     1210, 0x1c8c1c5e, F=0x0\n\
                    0,          0,        512,      512,      301, 0x52a0a8c5, F=0x0\n";
        assert_eq!(Packets::read(list), Some(Packets { first: 0, last: 120 }));
        let early = list.replace("         0,      512,    33193", "      -640,      512,    33193");
        assert_eq!(Packets::read(&early), Some(Packets { first: -50, last: 120 }));
        for nothing in
            ["", "#tb 0: 1/12800\n", "#tb 0: 1/0\n0, 0, 0, 512, 1, 0x0\n", "0, 0, 0, 512, 1, 0x0\n"]
        {
            assert_eq!(Packets::read(nothing), None, "{nothing}");
        }
        let far = format!("#tb 0: {}/1\n0, 0, {}, 1, 1, 0x0\n", i32::MAX, i64::MAX - 1);
        assert_eq!(Packets::read(&far), None);
    }
}
