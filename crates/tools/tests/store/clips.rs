//! Clips of recordings whose streams begin apart, whose frames are rare, or whose frames are stored out of order.

use std::{collections::HashSet, process::Command};

use serde_json::json;
use shelf_testkit::{TestLibrary, can_run, error_of};

fn run(program: &str, arguments: &[&str]) -> Vec<u8> {
    let ran = Command::new(program).args(arguments).output().unwrap();
    assert!(ran.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
    ran.stdout
}

/// A recording that ffmpeg makes of these arguments.
fn made(library: &TestLibrary, name: &str, arguments: &str) -> String {
    let path = library.path(name).to_str().unwrap().to_owned();
    let mut all = vec!["-v", "error", "-y"];
    all.extend(arguments.split(' '));
    all.push(&path);
    run("ffmpeg", &all);
    library.ok("add", json!({ "path": path, "resource_id": name }));
    path
}

fn clip(library: &TestLibrary, name: &str, start: &str, end: &str) -> String {
    let address = format!("video://{name}#t={start}-{end}");
    library.ok("resolve", json!({ "address": address }))["output_path"].as_str().unwrap().to_owned()
}

/// Type, start and end of each stream.
fn streams(path: &str) -> Vec<(String, f64, f64)> {
    let shown =
        ["-v", "error", "-show_entries", "stream=codec_type,start_time,duration", "-of", "csv=p=0", path];
    let text = String::from_utf8(run("ffprobe", &shown)).unwrap();
    let read = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let (start, length): (f64, f64) = (fields[1].parse().unwrap(), fields[2].parse().unwrap());
        (fields[0].to_owned(), start, start + length)
    };
    text.lines().filter(|line| !line.is_empty()).map(read).collect()
}

/// Picture and sound both begin with the clip and end with it.
fn is_exact(path: &str, length: f64) {
    let found = streams(path);
    assert_eq!(found.len(), 2, "{path}: {found:?}");
    for (kind, start, end) in &found {
        assert!(*start <= 0.05 && (end - length).abs() <= 0.05, "{path}: {kind} {start}-{end} of {length}");
    }
}

/// The brightness of each frame.
fn brightness(path: &str) -> Vec<u8> {
    let scaled = [
        "-v",
        "error",
        "-i",
        path,
        "-map",
        "0:v",
        "-vf",
        "scale=1:1",
        "-vsync",
        "0",
        "-f",
        "rawvideo",
        "-pix_fmt",
        "gray",
        "-",
    ];
    run("ffmpeg", &scaled)
}

fn packets(path: &str) -> HashSet<String> {
    let hashes = [
        "-v",
        "error",
        "-select_streams",
        "v",
        "-show_entries",
        "packet=data_hash",
        "-show_data_hash",
        "md5",
        "-of",
        "csv=p=0",
        path,
    ];
    String::from_utf8(run("ffprobe", &hashes)).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn a_clip_before_the_first_frame_is_black_and_has_its_sound() {
    if !can_run("ffmpeg", "-version") {
        return;
    }
    let library = TestLibrary::new();
    made(
        &library,
        "late.mp4",
        "-f lavfi -i sine=frequency=440 -itsoffset 2 -f lavfi -i color=white:size=64x48:rate=25 -t 10 -vsync 0 -g 50 -c:v libx264 -preset ultrafast -c:a aac",
    );
    let early = clip(&library, "late.mp4", "0", "1");
    is_exact(&early, 1.0);
    assert!(brightness(&early).iter().all(|each| *each < 20), "{:?}", brightness(&early));
    let across = clip(&library, "late.mp4", "1.5", "4.5");
    is_exact(&across, 3.0);
    let shown = brightness(&across);
    assert!(shown[5] < 20 && shown[20] > 200, "{shown:?}");
    is_exact(&clip(&library, "late.mp4", "4", "6"), 2.0);
}

#[test]
fn a_clip_shows_the_frame_that_is_shown_at_its_start() {
    if !can_run("ffmpeg", "-version") {
        return;
    }
    let library = TestLibrary::new();
    let source = made(
        &library,
        "slow.mp4",
        "-f lavfi -i nullsrc=size=64x48:rate=5,geq=lum=16+N*7:cb=128:cr=128 -t 6 -g 10 -c:v libx264 -preset ultrafast",
    );
    let all = brightness(&source);
    let path = clip(&library, "slow.mp4", "3.1", "4");
    let shown = brightness(&path);
    let is_frame = |found: u8, number: usize| found.abs_diff(all[number]) <= 3;
    assert!(is_frame(shown[0], 15) && is_frame(*shown.last().unwrap(), 19), "{shown:?} of {all:?}");
    let (_, start, end) = streams(&path).remove(0);
    assert!(start.abs() <= 0.01 && (end - 0.9).abs() <= 0.05, "{start}-{end}");
    // A moment within one frame is that frame.
    let moment = brightness(&clip(&library, "slow.mp4", "3.11", "3.15"));
    assert!(!moment.is_empty() && moment.iter().all(|each| is_frame(*each, 15)), "{moment:?}");
}

#[test]
fn a_clip_on_key_frames_is_copied_with_all_its_frames_and_sound() {
    if !can_run("ffmpeg", "-version") {
        return;
    }
    let library = TestLibrary::new();
    let closed = made(
        &library,
        "closed.mp4",
        "-f lavfi -i testsrc=size=64x48:rate=25 -f lavfi -i sine=frequency=440 -t 12 -g 50 -sc_threshold 0 -bf 3 -c:v libx264 -preset fast -c:a aac",
    );
    let all = packets(&closed);
    for (start, end) in [("2", "4"), ("4", "8"), ("0", "2")] {
        let path = clip(&library, "closed.mp4", start, end);
        let length = end.parse::<f64>().unwrap() - start.parse::<f64>().unwrap();
        is_exact(&path, length);
        let copied = packets(&path);
        assert!(!copied.is_empty() && copied.is_subset(&all), "{start}-{end} was encoded anew");
        assert_eq!(brightness(&path).len() as f64, length * 25.0);
    }
    // Frames before a key frame that are stored after it: a copy would miss them.
    let open = made(
        &library,
        "open.mp4",
        "-f lavfi -i nullsrc=size=64x48:rate=25,geq=lum=16+mod(N\\,50)*4:cb=128:cr=128 -t 4 -g 50 -c:v libx264 -preset fast -x264-params open-gop=1:bframes=3:b-adapt=0:scenecut=0",
    );
    let shown = brightness(&clip(&library, "open.mp4", "0", "2"));
    assert_eq!(shown.len(), 50);
    let all = brightness(&open);
    assert!(shown.iter().zip(&all).all(|(found, frame)| found.abs_diff(*frame) <= 3), "{shown:?} of {all:?}");
}

#[test]
fn a_recording_whose_clock_begins_late_ends_where_it_ends() {
    if !can_run("ffmpeg", "-version") {
        return;
    }
    let library = TestLibrary::new();
    for name in ["late.mp4", "late.mkv", "late.ts"] {
        let made_of = "-f lavfi -i testsrc=size=64x48:rate=25 -f lavfi -i sine -t 8 -g 25 -c:v libx264 -preset ultrafast -c:a aac -output_ts_offset 5";
        made(&library, name, made_of);
        let past = error_of(library.call("resolve", json!({ "address": format!("video://{name}#t=9-12") })));
        assert!(past.contains("s long"), "{name}: {past}");
        assert!(!packets(&clip(&library, name, "6", "8")).is_empty(), "{name}");
    }
}

#[test]
fn clips_of_an_imported_recording_are_copied() {
    if !can_run("ffmpeg", "-version") {
        return;
    }
    let library = TestLibrary::new();
    let path = made(
        &library,
        "other.mp4",
        "-f lavfi -i testsrc=size=64x48:rate=25 -t 8 -g 50 -sc_threshold 0 -c:v libx264 -preset ultrafast",
    );
    let path = {
        let copy = library.path("imported.mp4");
        std::fs::copy(path, &copy).unwrap();
        std::fs::write(&copy, [std::fs::read(&copy).unwrap(), b"\0\0\0\x08free".to_vec()].concat()).unwrap();
        copy.to_str().unwrap().to_owned()
    };
    let location = json!({ "modality": "video", "start": 2.0, "end": 4.0 });
    let map = json!({
        "resource_id": "imported", "type": "video", "source_path": path,
        "nodes": [{ "id": "part", "title": "Part", "type": "section", "location": location }],
    });
    let (caller, call) = (shelf_engine::Caller::owner(), shelf_base::CallContext::new());
    assert!(library.library.import_map(&caller, &map.to_string(), &[], &call).unwrap().added);
    let copied = packets(&clip(&library, "imported", "2", "4"));
    assert!(!copied.is_empty() && copied.is_subset(&packets(&path)), "it was encoded anew");
}
