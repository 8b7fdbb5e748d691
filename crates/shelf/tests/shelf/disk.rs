//! A disk that is really full: the whole program on a file system of a few megabytes.
//!
//! Mounting needs privileges that are not always available. Where mounting fails, these tests are skipped, and only the
//! simulated disk of the engine's tests covers the case.

use std::{path::Path, process::Command};

use serde_json::Value;

use crate::{assert_sound, shelf};

struct Small<'a>(&'a Path);

impl<'a> Small<'a> {
    fn mount(path: &'a Path, size: &str) -> Option<Self> {
        std::fs::create_dir_all(path).ok()?;
        let options = format!("size={size}");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(path).output().ok()?;
        mounted.status.success().then_some(Self(path))
    }
}

impl Drop for Small<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).output();
    }
}

#[test]
fn a_full_file_system_is_said_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("small");
    let Some(_small) = Small::mount(&place, "4m") else {
        return;
    };
    let library = place.join("library");
    let noise = |seed: u64, length: usize| {
        let mut state = seed * 2 + 1;
        let bytes: Vec<u8> = (0..length)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 24) as u8
            })
            .collect();
        bytes
    };
    let mut kept = Vec::new();
    let mut refused = 0;
    for number in 0..60 {
        let file = folder.path().join(format!("file-{number}"));
        let size = if number % 2 == 0 { 200_000 } else { 3_000 };
        std::fs::write(&file, noise(number, size)).unwrap();
        let (code, out, err) = shelf(&library, &["add", "--json", file.to_str().unwrap()]);
        if code == 0 {
            kept.push((
                file,
                serde_json::from_str::<Value>(&out).unwrap()["hash"].as_str().unwrap().to_owned(),
            ));
        } else {
            refused += 1;
            assert!(
                code == 8 && err.contains("storage_full") && err.contains("free some disk space"),
                "{code} {err}"
            );
        }
    }
    assert!(kept.len() > 5 && refused > 5, "{} kept, {refused} refused", kept.len());
    assert_sound(&library);
    for (file, hash) in &kept {
        let copy = folder.path().join("copy");
        let (code, _, err) = shelf(&library, &["get", hash, "-o", copy.to_str().unwrap(), "--overwrite"]);
        assert_eq!(code, 0, "{err}");
        assert_eq!(std::fs::read(file).unwrap(), std::fs::read(&copy).unwrap());
    }
}

/// With no space left at all, everything can still be read, and garbage collection can still free space.
#[test]
fn a_full_disk_does_not_block_its_own_cure() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("small");
    let Some(_small) = Small::mount(&place, "40m") else {
        return;
    };
    let library = place.join("library");
    for number in 0..30 {
        let file = folder.path().join(format!("file-{number}"));
        let mut state = number * 2 + 1_u64;
        let bytes: Vec<u8> = (0..400_000)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 24) as u8
            })
            .collect();
        std::fs::write(&file, bytes).unwrap();
        let (code, _, err) = shelf(&library, &["add", file.to_str().unwrap()]);
        assert_eq!(code, 0, "{err}");
    }
    for number in 1..30 {
        assert_eq!(shelf(&library, &["delete", &format!("file-{number}")]).0, 0);
    }
    // Another program takes the remaining space, to the last byte.
    let filler = place.join("filler");
    let mut size = 1 << 20;
    let mut file = std::fs::File::create(&filler).unwrap();
    while size > 0 {
        use std::io::Write;
        if file.write_all(&vec![7; size]).is_err() {
            size /= 2;
        }
    }
    let (code, out, err) = shelf(&library, &["list"]);
    assert!(code == 0 && out.contains("file-0"), "{code} {out}{err}");
    let copy = folder.path().join("copy");
    let (code, _, err) = shelf(&library, &["get", "file-0", "-o", copy.to_str().unwrap()]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(std::fs::read(folder.path().join("file-0")).unwrap(), std::fs::read(&copy).unwrap());
    let (code, _, err) = shelf(&library, &["add", folder.path().join("file-3").to_str().unwrap()]);
    assert!(code == 8 && err.contains("free some disk space"), "{code} {err}");
    let packs = || -> u64 {
        std::fs::read_dir(library.join("packs"))
            .unwrap()
            .map(|one| one.unwrap().metadata().unwrap().len())
            .sum()
    };
    let before = packs();
    let (code, out, err) = shelf(&library, &["gc", "--keep-last", "1"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(packs() < before / 2, "{before} -> {}", packs());
    assert_eq!(shelf(&library, &["add", folder.path().join("file-3").to_str().unwrap()]).0, 0);
    assert_sound(&library);
}

/// Whatever was written last, it is listed and found while nothing can be written any more.
#[test]
fn a_full_disk_is_still_read() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("small");
    let Some(_small) = Small::mount(&place, "60m") else {
        return;
    };
    let library = place.join("library");
    for number in 0..12 {
        // More than the index takes into memory as long as it can write.
        let file = folder.path().join(format!("file-{number}.txt"));
        let text: String = (0..60_000).map(|line| format!("line {line} of text {number}\n")).collect();
        std::fs::write(&file, text).unwrap();
        let (code, _, err) = shelf(&library, &["add", file.to_str().unwrap()]);
        assert_eq!(code, 0, "{err}");
    }
    let filler = place.join("filler");
    let mut size = 1 << 20;
    let mut file = std::fs::File::create(&filler).unwrap();
    while size > 0 {
        use std::io::Write;
        if file.write_all(&vec![7; size]).is_err() {
            size /= 2;
        }
    }
    for command in [
        &["list", "--json", "--limit", "2"][..],
        &["search", "--json", "line of text 7"],
        &["snapshot", "list", "--json"],
        &["graph", "file-3.txt", "--json"],
    ] {
        let (code, out, err) = shelf(&library, command);
        assert_eq!(code, 0, "{command:?} {out}{err}");
    }
    assert!(shelf(&library, &["search", "line of text 7"]).1.contains("file-"));
}

/// A backup that does not fit leaves nothing, and neither does a restored library that does not fit.
#[test]
fn a_full_disk_leaves_no_half_of_a_backup() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("small");
    let Some(_small) = Small::mount(&place, "2m") else {
        return;
    };
    let (library, file) = (folder.path().join("library"), folder.path().join("file"));
    let mut state = 99_u64;
    let bytes: Vec<u8> = (0..4_000_000)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 24) as u8
        })
        .collect();
    std::fs::write(&file, bytes).unwrap();
    assert_eq!(shelf(&library, &["add", file.to_str().unwrap()]).0, 0);
    let is_full = |code: i32, err: &str| code == 8 && err.contains("free some disk space");
    let (code, _, err) = shelf(&library, &["backup", place.join("backup").to_str().unwrap()]);
    assert!(is_full(code, &err), "{code} {err}");
    assert_eq!(std::fs::read_dir(&place).unwrap().count(), 0);
    let backup = folder.path().join("backup");
    assert_eq!(shelf(&library, &["backup", backup.to_str().unwrap()]).0, 0);
    let restored = place.join("restored");
    let (code, _, err) = shelf(&restored, &["restore-library", backup.to_str().unwrap()]);
    assert!(is_full(code, &err), "{code} {err}");
    assert!(!restored.join("packs").exists() && !restored.join("restoring").exists());
}
