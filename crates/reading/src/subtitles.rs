//! Subtitles in SubRip and WebVTT form: what is said when.

use crate::extension_of;

/// Extensions of subtitles, in the order in which they are preferred.
const SUBTITLES: [&str; 2] = [".srt", ".vtt"];
/// Extensions of recordings.
const RECORDINGS: [&str; 17] = [
    ".mp4", ".m4v", ".mov", ".mkv", ".webm", ".avi", ".mpg", ".mpeg", ".ogv", ".mp3", ".wav", ".m4a", ".aac",
    ".ogg", ".oga", ".opus", ".flac",
];

/// Whether a file has the name of a recording.
pub fn is_named_as_recording(path: &str) -> bool {
    RECORDINGS.contains(&extension_of(path).as_str())
}

/// Where the subtitles of a recording may stand: at its path, but for the extension. The preferred comes first.
pub fn subtitles_beside(path: &str) -> [String; 2] {
    let stem = path.get(..path.len() - extension_of(path).len()).unwrap_or(path);
    SUBTITLES.map(|extension| format!("{stem}{extension}"))
}

/// Cues that are read at most.
const MOST_CUES: usize = 200_000;
/// Characters of a cue that are kept.
const CUE_CHARS: usize = 1_000;

/// What is said during a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cue {
    /// Its start, in milliseconds.
    pub start: u64,
    /// Its end, in milliseconds.
    pub end: u64,
    /// Its words, without marks.
    pub text: String,
}

/// The cues of a file, in order of time. Lines that are neither times nor words are passed over.
pub fn cues(text: &str) -> Vec<Cue> {
    let mut cues: Vec<Cue> = Vec::new();
    let mut current: Option<Cue> = None;
    for line in text.trim_start_matches('\u{feff}').lines() {
        let line = line.trim();
        if let Some((start, end)) = times(line) {
            cues.extend(current.take().filter(|cue| !cue.text.is_empty()));
            current = Some(Cue { start, end, text: String::new() });
        } else if line.is_empty() {
            cues.extend(current.take().filter(|cue| !cue.text.is_empty()));
        } else if let Some(cue) = &mut current {
            if !cue.text.is_empty() {
                cue.text.push(' ');
            }
            let room = CUE_CHARS.saturating_sub(cue.text.chars().count());
            cue.text.extend(without_marks(line).chars().take(room));
        }
        if cues.len() == MOST_CUES {
            break;
        }
    }
    cues.extend(current.filter(|cue| !cue.text.is_empty()));
    cues.sort_by_key(|cue| (cue.start, cue.end));
    cues
}

/// `00:01:02,500 --> 00:01:05,000`, hours being optional and settings of WebVTT following.
fn times(line: &str) -> Option<(u64, u64)> {
    let (start, rest) = line.split_once("-->")?;
    let start = milliseconds(start.trim())?;
    let end = milliseconds(rest.split_whitespace().next()?)?;
    (end > start).then_some((start, end))
}

fn milliseconds(text: &str) -> Option<u64> {
    let (clock, fraction) = text.split_once([',', '.']).unwrap_or((text, "0"));
    let mut seconds = 0_u64;
    for part in clock.split(':') {
        let part = part.parse::<u32>().ok()?;
        seconds = seconds.checked_mul(60)?.checked_add(part.into())?;
    }
    let fraction = fraction.get(..fraction.len().min(3))?;
    let fraction = format!("{fraction:0<3}").parse::<u64>().ok()?;
    seconds.checked_mul(1_000)?.checked_add(fraction)
}

/// The words without `<i>`, `<v Name>` and `{\an8}`.
fn without_marks(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut until: Option<char> = None;
    for each in line.chars() {
        match until {
            Some(end) if each == end => until = None,
            Some(_) => {}
            None if each == '<' => until = Some('>'),
            None if each == '{' => until = Some('}'),
            None => out.push(each),
        }
    }
    crate::html::resolved(out.trim()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subtitles_stand_beside_recordings() {
        assert_eq!(subtitles_beside("a/talk.1.MP4"), ["a/talk.1.srt", "a/talk.1.vtt"]);
        assert_eq!(subtitles_beside("a.b/talk"), ["a.b/talk.srt", "a.b/talk.vtt"]);
        assert!(is_named_as_recording("x/Talk.MKV") && !is_named_as_recording("talk.txt"));
    }

    #[test]
    fn both_forms_are_read() {
        let subrip = "1\r\n00:00:01,000 --> 00:00:02,500\r\n<i>Hello</i>\r\nthere\r\n\r\n2\r\n00:00:03,000 --> 00:00:02,000\r\nback\r\n";
        let hello = Cue { start: 1_000, end: 2_500, text: "Hello there".into() };
        assert_eq!(cues(subrip), [hello]);
        let marked = "1\n00:00:01,000 --> 00:00:02,000\nFish &amp; chips &lt;3&nbsp;A&B\n";
        assert_eq!(cues(marked)[0].text, "Fish & chips <3\u{a0}A&B");
        let web = "WEBVTT - title\n\nNOTE x\n\nid\n01:02.5 --> 01:00:03.250 align:start\n<v Ann>Yes\n\n00:00.000 --> 00:01.000\nNo";
        let found = cues(web);
        assert_eq!(found.iter().map(|cue| cue.text.as_str()).collect::<Vec<_>>(), ["No", "Yes"]);
        assert_eq!((found[1].start, found[1].end), (62_500, 3_603_250));
        assert!(cues("--> \n1 --> x\n99999999999999999999:00 --> 1\n").is_empty());
    }
}
