//! What `ffprobe` and `ffmpeg` say of a recording.

use std::{ffi::OsString, path::Path};

use shelf_base::CallContext;

use super::{Chapter, MediaError, MediaFacts, Recording, Task, run::run};
use crate::{Cue, subtitles as subtitle_files};

/// Seconds that looking at a file may take.
const PROBE_SECONDS: u64 = 30;
/// Seconds that listening to all of it may take.
const ANALYSIS_SECONDS: u64 = 120;
/// Chapters that are taken.
const MOST_CHAPTERS: usize = 10_000;

fn arguments(before: &[&str], file: &Path, after: &[&str]) -> Vec<OsString> {
    let mut all: Vec<OsString> = before.iter().map(OsString::from).collect();
    // A name with a protocol in front is taken as a file and nothing else.
    let mut name = OsString::from("file:");
    name.push(file);
    all.push(name);
    all.extend(after.iter().map(OsString::from));
    all
}

/// Looks at a recording.
pub fn probe(file: &Path, call: &CallContext) -> Result<MediaFacts, MediaError> {
    let task = Task { program: "ffprobe", seconds: PROBE_SECONDS, call };
    let before = ["-v", "error", "-protocol_whitelist", "file", "-show_entries"];
    let shown = "format=format_name,duration,start_time:chapter=start_time,end_time:chapter_tags=title:stream=codec_type,codec_name,start_time,duration,has_b_frames,r_frame_rate:stream_disposition=attached_pic";
    let options: Vec<&str> = before.into_iter().chain([shown, "-of", "flat", "-i"]).collect();
    let ran = run(task, &arguments(&options, file, &[]))?;
    let mut found = facts(&String::from_utf8_lossy(&ran.output))?;
    for chapter in &mut found.chapters {
        chapter.start = chapter.start.saturating_sub(found.clock);
        chapter.end = chapter.end.saturating_sub(found.clock);
    }
    Ok(found)
}

#[derive(Default)]
struct Stream {
    kind: String,
    codec: String,
    start: Option<u64>,
    duration: Option<u64>,
    is_picture: bool,
    /// Frames that are stored before one that is shown earlier.
    ahead: u64,
    /// Frames of so many seconds.
    rate: (u64, u64),
}

/// Reads lines such as `streams.stream.0.codec_type="video"`.
fn facts(flat: &str) -> Result<MediaFacts, MediaError> {
    let mut streams: Vec<Stream> = Vec::new();
    let mut chapters: Vec<Chapter> = Vec::new();
    let (mut duration, mut clock, mut form) = (None, 0, "");
    for line in flat.lines() {
        let Some((name, value)) = line.split_once('=') else { continue };
        let value = value.trim();
        let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value);
        let parts: Vec<&str> = name.split('.').collect();
        match parts.as_slice() {
            ["format", "start_time"] => clock = milliseconds(value).unwrap_or(0),
            ["format", "duration"] => duration = milliseconds(value),
            ["format", "format_name"] => form = value,
            ["streams", "stream", at, rest @ ..] => {
                if let Some(stream) = place(&mut streams, at, 64) {
                    match rest {
                        ["codec_type"] => stream.kind = value.to_owned(),
                        ["codec_name"] => stream.codec = value.to_owned(),
                        ["has_b_frames"] => stream.ahead = value.parse::<u64>().unwrap_or(0).min(64),
                        ["r_frame_rate"] => stream.rate = rate(value),
                        ["start_time"] => stream.start = milliseconds(value),
                        ["duration"] => stream.duration = milliseconds(value),
                        ["disposition", "attached_pic"] => stream.is_picture = value == "1",
                        _ => {}
                    }
                }
            }
            ["chapters", "chapter", at, rest @ ..] => {
                if let Some(chapter) = place(&mut chapters, at, MOST_CHAPTERS) {
                    match rest {
                        ["start_time"] => chapter.start = milliseconds(value).unwrap_or(0),
                        ["end_time"] => chapter.end = milliseconds(value).unwrap_or(0),
                        ["tags", "title"] => chapter.title = unescaped(value),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    chapters.retain(|chapter| chapter.end > chapter.start);
    for (number, chapter) in chapters.iter_mut().enumerate() {
        if chapter.title.trim().is_empty() {
            chapter.title = format!("Chapter {}", number + 1);
        }
    }
    let moving = streams.iter().find(|stream| stream.kind == "video" && !stream.is_picture);
    let sound = streams.iter().find(|stream| stream.kind == "audio");
    let Some(main) = moving.or(sound) else {
        return Err(MediaError::Damaged { what: "it holds neither picture nor sound".into() });
    };
    let duration = match duration {
        Some(end) if form.contains("matroska") => Some(end.saturating_sub(clock)),
        Some(said) if form.contains("mp4") => {
            Some(length_of_streams(&streams, clock).unwrap_or(said).min(said))
        }
        said => said.or(main.duration),
    };
    let duration = duration.filter(|duration| *duration > 0);
    Ok(MediaFacts {
        recording: if moving.is_some() { Recording::Video } else { Recording::Audio },
        duration: duration.ok_or_else(|| MediaError::Damaged { what: "its length is unknown".into() })?,
        has_subtitles: streams.iter().any(|stream| stream.kind == "subtitle"),
        has_sound: sound.is_some(),
        codec: main.codec.clone(),
        reorder: main.ahead * 1_000 * main.rate.1.min(10_000) / main.rate.0.max(1),
        clock,
        key_frames: Vec::new(),
        chapters,
    })
}

/// From the beginning of the clock to the end of the last stream. What MP4 says of the length of all may count from zero,
/// and so include what comes before the beginning, as that of Matroska always does.
fn length_of_streams(streams: &[Stream], clock: u64) -> Option<u64> {
    let lasting = streams.iter().filter(|stream| !stream.is_picture);
    let ends = lasting.filter_map(|stream| Some(stream.start? + stream.duration?));
    ends.max().map(|end| end.saturating_sub(clock)).filter(|length| *length > 0)
}

fn place<'a, T: Default>(list: &'a mut Vec<T>, at: &str, most: usize) -> Option<&'a mut T> {
    let at = at.parse::<usize>().ok().filter(|at| *at < most)?;
    while list.len() <= at {
        list.push(T::default());
    }
    list.get_mut(at)
}

/// A rate such as `30000/1001`.
fn rate(value: &str) -> (u64, u64) {
    let (frames, seconds) = value.split_once('/').unwrap_or((value, "1"));
    (frames.parse().unwrap_or(0), seconds.parse().unwrap_or(1))
}

fn unescaped(value: &str) -> String {
    value.replace("\\\"", "\"").replace("\\\\", "\\")
}

fn milliseconds(seconds: &str) -> Option<u64> {
    let seconds = seconds.parse::<f64>().ok().filter(|seconds| (0.0..4.0e9).contains(seconds))?;
    Some((seconds * 1_000.0).round() as u64)
}

/// The length of the picture of a clip, or of its sound when it has none, in milliseconds.
pub(super) fn length(
    file: &Path,
    recording: Recording,
    call: &CallContext,
) -> Result<Option<u64>, MediaError> {
    let task = Task { program: "ffprobe", seconds: PROBE_SECONDS, call };
    let stream = match recording {
        Recording::Video => "v:0",
        Recording::Audio => "a:0",
    };
    let options = [
        "-v",
        "error",
        "-protocol_whitelist",
        "file",
        "-select_streams",
        stream,
        "-show_entries",
        "stream=duration:format=duration",
        "-of",
        "csv=p=0",
        "-i",
    ];
    let ran = run(task, &arguments(&options, file, &[]))?;
    // The stream comes first, where its length is known.
    Ok(String::from_utf8_lossy(&ran.output).lines().find_map(|line| milliseconds(line.trim())))
}

/// The embedded subtitles.
pub fn subtitles(file: &Path, call: &CallContext) -> Result<Vec<Cue>, MediaError> {
    let task = Task { program: "ffmpeg", seconds: ANALYSIS_SECONDS, call };
    let before = ["-nostdin", "-v", "error", "-protocol_whitelist", "file,pipe", "-i"];
    let after = ["-map", "0:s:0", "-f", "webvtt", "-"];
    let ran = run(task, &arguments(&before, file, &after))?;
    Ok(subtitle_files::cues(&String::from_utf8_lossy(&ran.output)))
}

/// Times, in milliseconds, at which a silence ends or the scene changes.
pub fn cut_times(file: &Path, facts: &MediaFacts, call: &CallContext) -> Result<Vec<u64>, MediaError> {
    let task = Task { program: "ffmpeg", seconds: ANALYSIS_SECONDS, call };
    let before = ["-nostdin", "-v", "info", "-nostats", "-protocol_whitelist", "file,pipe", "-i"];
    let mut cuts = Vec::new();
    if facts.has_sound {
        let after = ["-vn", "-sn", "-af", "silencedetect=noise=-35dB:duration=0.6", "-f", "null", "-"];
        let ran = run(task, &arguments(&before, file, &after))?;
        cuts = after_word(&ran.talk, "silence_end: ");
    }
    if cuts.is_empty() && facts.recording == Recording::Video {
        // Only key frames are looked at, at a fraction of the cost; a change of scene nearly always is one.
        let before = [
            "-nostdin",
            "-v",
            "info",
            "-nostats",
            "-protocol_whitelist",
            "file,pipe",
            "-skip_frame",
            "nokey",
            "-i",
        ];
        let after = ["-an", "-sn", "-vf", "scale=160:-2,select='gt(scene,0.3)',showinfo", "-f", "null", "-"];
        let ran = run(task, &arguments(&before, file, &after))?;
        cuts = after_word(&ran.talk, "pts_time:");
    }
    Ok(cuts)
}

fn after_word(talk: &str, word: &str) -> Vec<u64> {
    let number = |rest: &str| {
        let rest = rest.trim_start();
        milliseconds(
            &rest[..rest.find(|each: char| !each.is_ascii_digit() && each != '.').unwrap_or(rest.len())],
        )
    };
    talk.lines().filter_map(|line| number(line.split_once(word)?.1)).collect()
}

/// The times of key frames, in microseconds: a copy must begin exactly at one. Only the container is read, nothing is
/// decoded.
pub fn key_frames(file: &Path, facts: &MediaFacts, call: &CallContext) -> Result<Vec<u64>, MediaError> {
    if facts.recording == Recording::Audio {
        return Ok(Vec::new());
    }
    let task = Task { program: "ffprobe", seconds: ANALYSIS_SECONDS, call };
    let options = [
        "-v",
        "error",
        "-protocol_whitelist",
        "file",
        "-select_streams",
        "v:0",
        "-show_entries",
        "packet=pts_time,flags",
        "-of",
        "csv=p=0",
        "-i",
    ];
    let ran = run(task, &arguments(&options, file, &[]))?;
    let output = String::from_utf8_lossy(&ran.output);
    let key_frame = |line: &str| {
        let (time, flags) = line.split_once(',')?;
        let seconds = time.trim().parse::<f64>().ok().filter(|seconds| (0.0..4.0e9).contains(seconds))?;
        let time = (seconds * 1e6).round() as u64;
        flags.starts_with('K').then(|| time.saturating_sub(facts.clock * 1_000))
    };
    let mut times: Vec<u64> = output.lines().filter_map(key_frame).collect();
    times.sort_unstable();
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flat_output_is_read() {
        let flat = "streams.stream.0.codec_name=\"h264\"\nstreams.stream.0.codec_type=\"video\"\n\
                    streams.stream.0.disposition.attached_pic=0\nstreams.stream.1.codec_type=\"audio\"\n\
                    streams.stream.2.codec_type=\"subtitle\"\nformat.duration=\"12.345000\"\n\
                    chapters.chapter.0.start_time=\"0.000000\"\nchapters.chapter.0.end_time=\"5.000000\"\n\
                    chapters.chapter.0.tags.title=\"One \\\"1\\\"\"\nchapters.chapter.99999999.start_time=\"1\"\n";
        let found = facts(flat).unwrap();
        assert_eq!(
            (found.recording, found.duration, found.codec.as_str()),
            (Recording::Video, 12_345, "h264")
        );
        assert!(found.has_subtitles && found.has_sound);
        assert_eq!(found.chapters, [Chapter { start: 0, end: 5_000, title: "One \"1\"".into() }]);
        assert!(facts("format.duration=\"N/A\"\n").is_err());
        let late = |form: &str, duration: &str| {
            let flat = format!(
                "streams.stream.0.codec_type=\"video\"\nstreams.stream.0.start_time=\"5.000000\"\n\
                 streams.stream.0.duration=\"20.000000\"\nformat.format_name=\"{form}\"\n\
                 format.start_time=\"5.000000\"\nformat.duration=\"{duration}\"\n"
            );
            facts(&flat).unwrap().duration
        };
        assert_eq!(late("mov,mp4,m4a,3gp,3g2,mj2", "25.000000"), 20_000);
        assert_eq!(late("mov,mp4,m4a,3gp,3g2,mj2", "20.000000"), 20_000);
        assert_eq!(late("matroska,webm", "25.000000"), 20_000);
        assert_eq!(late("mpegts", "20.000000"), 20_000);
        assert_eq!(after_word("[x] silence_end: 3.25 | silence_duration: 1\nfoo", "silence_end: "), [3_250]);
    }
}
