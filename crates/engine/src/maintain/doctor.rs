//! Explaining the state of an installation.

use std::{
    fs, io,
    path::Path,
    time::{Duration, Instant},
};

use rustix::fs::{Access, access, statvfs};
use shelf_base::ErrorInfo;
use shelf_blocks::objects::{ByteRange, Objects};

use crate::{Error, Library, ObjectsPlace, Options, Result, status::Storage};

/// Seconds by which clocks may differ: a little is usual, and buckets refuse requests that are a quarter of an hour off.
const CLOCKS: (i64, i64) = (2, 60);

/// How serious a piece of advice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// All is well.
    Fine,
    /// Worth knowing.
    Note,
    /// Should be acted on.
    Problem,
}

/// One line of the diagnosis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// What was looked at.
    pub subject: &'static str,
    /// How it stands.
    pub advice: Advice,
    /// What was found, and what to do.
    pub text: String,
}

impl Library {
    /// Looks at the data directory, the catalog, the storage, the tokens and the disk.
    pub fn diagnose(&self) -> Result<Vec<Diagnosis>> {
        let mut lines = vec![look_at_folder(self.folder()), self.look_at_catalog()?];
        let objects = look_at_objects(self.blocks.truth());
        let clock = self.look_at_clock();
        let is_away = objects.as_ref().is_some_and(|line| line.advice == Advice::Problem);
        lines.extend(objects);
        lines.extend(clock);
        if is_away {
            // Everything else would say the same, and take its time.
            lines.extend(look_at_disk(self.folder()));
            return Ok(lines);
        }
        let storage = self.storage()?;
        lines.push(look_at_storage(&storage));
        lines.push(self.look_at_loose(&storage)?);
        lines.push(self.look_at_index(&storage)?);
        lines.push(self.look_at_tokens()?);
        lines.extend(look_at_disk(self.folder()));
        Ok(lines)
    }

    /// Looks at what can be reached of a library that cannot be opened, for this reason.
    pub fn diagnose_unopened(folder: &Path, options: &Options, reason: &Error) -> Vec<Diagnosis> {
        let hints = reason.hints();
        let text =
            if hints.is_empty() { reason.to_string() } else { format!("{reason}: {}", hints.join("; ")) };
        let mut lines = vec![look_at_folder(folder), line("library", Advice::Problem, text)];
        let storage = &options.storage;
        if let Ok(place @ ObjectsPlace::Bucket(..)) = storage.place(folder)
            && let Ok(objects) = storage.open(folder, &place)
        {
            lines.extend(look_at_objects(objects.source().unwrap_or(&*objects)));
        }
        lines.extend(look_at_disk(folder));
        lines
    }

    /// Compares the clock with those of the stores: tokens and retention go by it, and buckets refuse requests by it.
    fn look_at_clock(&self) -> Option<Diagnosis> {
        let there = self.catalog.clock().ok().flatten();
        let database = there.map(|there| (self.now().micros() - there.micros()) / 1_000_000);
        let bucket = self.blocks.truth().observed().clock_ahead;
        let found: Vec<(&str, i64)> = [("the database", database), ("the bucket", bucket)]
            .into_iter()
            .filter_map(|(whose, ahead)| Some((whose, ahead?)))
            .collect();
        let (whose, ahead) = *found.iter().max_by_key(|(_, ahead)| ahead.abs())?;
        let off = ahead.abs();
        let than = if ahead > 0 { "ahead of" } else { "behind" };
        Some(if off <= CLOCKS.0 {
            let all: Vec<&str> = found.iter().map(|(whose, _)| *whose).collect();
            line("clock", Advice::Fine, format!("agrees with that of {}", all.join(" and ")))
        } else {
            let advice = if off > CLOCKS.1 { Advice::Problem } else { Advice::Note };
            let text = format!(
                "{off} s {than} that of {whose}: let both machines take the time from a server (NTP)"
            );
            line("clock", advice, text)
        })
    }

    fn look_at_catalog(&self) -> Result<Diagnosis> {
        let broken = self.catalog.integrity()?;
        let mut text =
            format!("schema {}, journal at {}", self.catalog.schema_version()?, self.catalog.sequence()?);
        if self.catalog.is_shared() {
            text = format!("{}: {text}", self.catalog.place());
        }
        if let Some(lost) = self.lost_records()? {
            let text = format!("{text}; not whole: {lost}: {}", self.way_back());
            return Ok(line("catalog", Advice::Problem, text));
        }
        Ok(match broken.first() {
            None => line("catalog", Advice::Fine, text),
            Some(first) => {
                line("catalog", Advice::Problem, format!("{text}; damaged: {first}: run `shelf check`"))
            }
        })
    }

    fn look_at_loose(&self, storage: &Storage) -> Result<Diagnosis> {
        let (count, bytes) = storage.loose;
        let broken = self.broken_loose()?;
        Ok(match broken.first() {
            None => line(
                "loose blocks",
                Advice::Fine,
                if count == 1 {
                    format!("1 block, {bytes} bytes, waits to be folded into a pack")
                } else {
                    format!("{count} blocks, {bytes} bytes, wait to be folded into a pack")
                },
            ),
            Some(first) => line("loose blocks", Advice::Problem, format!("damaged: {first}")),
        })
    }

    fn look_at_index(&self, storage: &Storage) -> Result<Diagnosis> {
        let Some(index) = storage.index else {
            let text = "damaged: the next search builds it anew, or `shelf reindex`".into();
            return Ok(line("search index", Advice::Problem, text));
        };
        let behind = self.catalog.sequence()?.saturating_sub(index.sequence);
        let text = format!(
            "{}, {}, {}, {} to follow",
            counted(index.documents, "document"),
            counted(index.passages, "passage"),
            counted(index.segments, "segment"),
            counted(behind, "journal record")
        );
        Ok(line("search index", Advice::Fine, text))
    }

    fn look_at_tokens(&self) -> Result<Diagnosis> {
        let now = self.now();
        let tokens = self.local_tokens()?;
        let active = tokens
            .iter()
            .filter(|t| t.revoked_at.is_none() && t.token.expires_at.is_none_or(|at| now < at))
            .count();
        Ok(match active {
            0 => line(
                "tokens",
                Advice::Note,
                "none for HTTP yet: the first `shelf serve --http` makes one, or `shelf token create`".into(),
            ),
            count => line("tokens", Advice::Fine, format!("{count} active for the account local")),
        })
    }
}

fn look_at_folder(folder: &Path) -> Diagnosis {
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(folder).map_or(0, |found| found.permissions().mode() & 0o777);
    let is_read_only = access(folder, Access::WRITE_OK).is_err();
    let folder = folder.display();
    if is_read_only {
        let text = format!(
            "{folder} is read-only for this user: what is in it can be found and read, and nothing can be stored"
        );
        line("data directory", Advice::Note, text)
    } else if mode & 0o077 == 0 {
        line("data directory", Advice::Fine, format!("{folder} (only its owner may open it)"))
    } else {
        line(
            "data directory",
            Advice::Note,
            format!("{folder} is open to others (mode {mode:o}): chmod 700 keeps it private"),
        )
    }
}

/// Whether a bucket answers, may be written to, and gives back what was written; nothing for a folder.
fn look_at_objects(objects: &dyn Objects) -> Option<Diagnosis> {
    if !objects.is_remote() {
        return None;
    }
    let place = objects.describe();
    let tried = objects.ping().and_then(|()| try_out(objects));
    Some(match tried {
        Ok(elapsed) => {
            let versions = if objects.observed().keeps_versions {
                "; it keeps versions, so what is deleted goes on taking room: versioning is not needed"
            } else {
                ""
            };
            let text = format!(
                "{place} answers in {} ms and keeps what is written to it{versions} (not checked: a lifecycle rule that \
                 aborts incomplete uploads)",
                elapsed.as_millis()
            );
            let advice = if versions.is_empty() { Advice::Fine } else { Advice::Note };
            line("objects", advice, text)
        }
        Err(source) => {
            let error = shelf_blocks::Error::Storage { action: "use", object: place, source };
            let hints = error.hints().join("; ");
            line("objects", Advice::Problem, format!("{error}: {hints}"))
        }
    })
}

fn look_at_disk(folder: &Path) -> Option<Diagnosis> {
    let found = statvfs(folder).ok()?;
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    let text = format!("{} MiB free", free / (1 << 20));
    Some(if free < 512 << 20 {
        line("disk", Advice::Problem, format!("{text}: make room soon"))
    } else {
        line("disk", Advice::Fine, text)
    })
}

/// Writes a small object, reads it and deletes it; how long the reading took.
fn try_out(objects: &dyn Objects) -> io::Result<Duration> {
    let name = format!("doctor-{}.probe", std::process::id());
    objects.put(&name, &[b"probe"])?;
    let started = Instant::now();
    let read = objects.read(&name, &[ByteRange { offset: 0, length: 5 }]);
    let elapsed = started.elapsed();
    objects.delete(&name)?;
    if read?.first().is_some_and(|found| found == b"probe") {
        return Ok(elapsed);
    }
    Err(io::Error::other("it gave back something else than what was written"))
}

fn look_at_storage(storage: &Storage) -> Diagnosis {
    let packs = storage.packs;
    let text = format!(
        "{}, {}, {} bytes on disk for {} bytes",
        counted(packs.packs, "pack"),
        counted(packs.blocks, "block"),
        packs.stored_bytes,
        packs.raw_bytes
    );
    line("packs", Advice::Fine, text)
}

/// A number with its noun.
fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

fn line(subject: &'static str, advice: Advice, text: String) -> Diagnosis {
    Diagnosis { subject, advice, text }
}
