//! Explaining the state of an installation.

use std::{
    fs, io,
    time::{Duration, Instant},
};

use rustix::fs::{Access, access, statvfs};
use shelf_base::ErrorInfo;
use shelf_blocks::objects::{ByteRange, Objects};

use crate::{Library, Result, status::Storage};

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
        let mut lines = vec![self.look_at_folder(), self.look_at_catalog()?];
        let objects = self.look_at_objects();
        let is_away = objects.as_ref().is_some_and(|line| line.advice == Advice::Problem);
        lines.extend(objects);
        if is_away {
            // Everything else would say the same, and take its time.
            lines.extend(self.look_at_disk());
            return Ok(lines);
        }
        let storage = self.storage()?;
        lines.push(look_at_storage(&storage));
        lines.push(self.look_at_loose(&storage)?);
        lines.push(self.look_at_index(&storage)?);
        lines.push(self.look_at_tokens()?);
        lines.extend(self.look_at_disk());
        Ok(lines)
    }

    fn look_at_folder(&self) -> Diagnosis {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(self.folder()).map_or(0, |found| found.permissions().mode() & 0o777);
        if access(self.folder(), Access::WRITE_OK).is_err() {
            let folder = self.folder().display();
            line(
                "data directory",
                Advice::Note,
                format!(
                    "{folder} is read-only for this user: what is in it can be found and read, and nothing can be stored"
                ),
            )
        } else if mode & 0o077 == 0 {
            line(
                "data directory",
                Advice::Fine,
                format!("{} (only its owner may open it)", self.folder().display()),
            )
        } else {
            let folder = self.folder().display();
            line(
                "data directory",
                Advice::Note,
                format!("{folder} is open to others (mode {mode:o}): chmod 700 keeps it private"),
            )
        }
    }

    fn look_at_catalog(&self) -> Result<Diagnosis> {
        let broken = self.catalog.integrity()?;
        let mut text =
            format!("schema {}, journal at {}", self.catalog.schema_version()?, self.catalog.sequence()?);
        if self.catalog.is_shared() {
            text = format!("{}: {text}", self.catalog.place());
        }
        if let Some(lost) = self.lost_records()? {
            let text = format!("{text}; not whole: {lost}: run `shelf recover`");
            return Ok(line("catalog", Advice::Problem, text));
        }
        Ok(match broken.first() {
            None => line("catalog", Advice::Fine, text),
            Some(first) => {
                line("catalog", Advice::Problem, format!("{text}; damaged: {first}: run `shelf check`"))
            }
        })
    }

    /// Whether a bucket answers, may be written to, and gives back what was written; nothing for a folder.
    fn look_at_objects(&self) -> Option<Diagnosis> {
        let objects = self.blocks.truth();
        if !objects.is_remote() {
            return None;
        }
        let place = objects.describe();
        let tried = objects.ping().and_then(|()| try_out(objects));
        Some(match tried {
            Ok(elapsed) => {
                let text =
                    format!("{place} answers in {} ms and keeps what is written to it", elapsed.as_millis());
                line("objects", Advice::Fine, text)
            }
            Err(source) => {
                let error = shelf_blocks::Error::Storage { action: "use", object: place, source };
                let hints = error.hints().join("; ");
                line("objects", Advice::Problem, format!("{error}: {hints}"))
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

    fn look_at_disk(&self) -> Option<Diagnosis> {
        let found = statvfs(self.folder()).ok()?;
        let free = found.f_bavail.saturating_mul(found.f_frsize);
        let text = format!("{} MiB free", free / (1 << 20));
        Some(if free < 512 << 20 {
            line("disk", Advice::Problem, format!("{text}: make room soon"))
        } else {
            line("disk", Advice::Fine, text)
        })
    }
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
