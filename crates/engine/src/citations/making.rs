//! Makes the map of a content, once, and keeps it as derived data.

use std::{io::Read, path::Path, sync::Arc};

use shelf_base::CallContext;
use shelf_index::DerivedKey;
use shelf_reading::{
    Cue, MediaFacts, Text, Unreadable,
    map::{self, Map},
    media,
};

use super::{
    Answer, CitationError, Source,
    mapped::{self, Extent, MapKey, Mapped},
};
use crate::{
    Caller, Error, Library,
    ingest::Source as OpenSource,
    readings::{EXTRACTED_BYTES, Origin},
};

/// Changes whenever another map is made of the same bytes.
const VERSION: u32 = 3;
/// Bytes of a text that is mapped at most.
const TEXT_BYTES: u64 = 256 << 20;
/// Bytes of a file with subtitles that are read.
const SUBTITLE_BYTES: u64 = 16 << 20;

/// What sort of content a document has, as far as citing goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Text,
    Picture,
    Recording,
}

pub(super) fn sort_of(source: &Source) -> Answer<Sort> {
    let document = &source.document;
    sort_of_type(&document.path, &document.mime, document.is_text)
}

fn sort_of_type(path: &str, mime: &str, is_text: bool) -> Answer<Sort> {
    if is_text || shelf_reading::is_extracted(mime) {
        return Ok(Sort::Text);
    }
    match mime.split('/').next() {
        Some("image") => Ok(Sort::Picture),
        Some("video" | "audio") => Ok(Sort::Recording),
        _ => Err(CitationError::NotCitable { path: path.to_owned(), mime: mime.to_owned() }),
    }
}

pub(super) fn origin(source: &Source) -> Origin<'_> {
    let document = &source.document;
    Origin {
        hash: source.version.hash,
        path: &document.path,
        mime: &document.mime,
        is_text: document.is_text,
    }
}

impl Library {
    /// The map that is made of a content.
    pub(super) fn made_map(
        &self,
        caller: &Caller,
        source: &Source,
        call: &CallContext,
    ) -> Answer<Arc<Mapped>> {
        let sort = sort_of(source)?;
        let subtitles = match sort {
            Sort::Recording => self.subtitles_beside(caller, source)?,
            Sort::Text | Sort::Picture => None,
        };
        let key = derived_key(source, subtitles.as_ref());
        let map_key = MapKey::Made { content: key.content, variant: key.variant };
        if let Some(known) = self.maps.get(&map_key) {
            return Ok(known);
        }
        let kept = self.blobs.readings.derived(&key).and_then(|record| mapped::decode(&record));
        let mapped = match kept {
            Some(mapped) => Arc::new(mapped),
            None => {
                let mapped = match sort {
                    Sort::Text => self.text_map(source, call)?,
                    Sort::Picture => Mapped::new(map::image_map(), Extent::Picture),
                    Sort::Recording => self.recording_map(source, subtitles.as_ref(), call)?,
                };
                if let Some(record) = mapped::encode(&mapped) {
                    self.blobs.readings.keep_derived(&key, &record);
                }
                Arc::new(mapped)
            }
        };
        self.maps.keep(map_key, &mapped);
        Ok(mapped)
    }

    /// The text of a source, with the reason when it has none.
    pub(super) fn with_text<T>(
        &self,
        source: &Source,
        call: &CallContext,
        work: impl FnOnce(&Text<'_>) -> Answer<T>,
    ) -> Answer<T> {
        let origin = origin(source);
        if let Some(Some(text)) = self.blobs.readings.extracted(&origin) {
            return work(&text);
        }
        let size = source.version.size;
        let limit = if source.document.is_text { TEXT_BYTES } else { EXTRACTED_BYTES };
        if size > limit {
            let too_large = Unreadable::TooLarge { what: "bytes", limit };
            return Err(CitationError::unreadable(&source.document.path, too_large));
        }
        let _share = self.budget.take(size, call)?;
        let bytes = self.blobs.read_blob(call, &source.version.hash)?;
        match self.blobs.readings.text(&origin, &bytes) {
            Some((text, _)) => work(&text),
            None => {
                // What was remembered is only that there is no text; reading it again tells why.
                let again = shelf_reading::text_of(origin.path, origin.mime, origin.is_text, &bytes);
                match again {
                    Ok(Some(text)) => work(&text),
                    Ok(None) => {
                        let (path, mime) = (source.document.path.clone(), source.document.mime.clone());
                        Err(CitationError::NotCitable { path, mime })
                    }
                    Err(error) => Err(CitationError::unreadable(&source.document.path, error)),
                }
            }
        }
    }

    /// How large the resource would be that a file makes, before it is added.
    pub(super) fn extent_of_file(&self, caller: &Caller, path: &Path, call: &CallContext) -> Answer<Extent> {
        let source = OpenSource::open(self, caller.file_access, path)?;
        let name = path.display().to_string();
        let reading = |error| CitationError::Engine(Error::reading(name.clone(), error));
        if source.is_folder() {
            return Err(CitationError::BadMap { problems: vec![format!("'{name}' is a folder")] });
        }
        let (file, facts) = source.open_file(&source.path).map_err(reading)?;
        let mut bytes = Vec::new();
        (&file).take(shelf_reading::SAMPLE as u64).read_to_end(&mut bytes).map_err(reading)?;
        let shelf_reading::Detected { mime, is_text } = shelf_reading::detect(&name, &bytes);
        match sort_of_type(&name, &mime, is_text)? {
            Sort::Picture => Ok(Extent::Picture),
            Sort::Recording => {
                let mut facts = facts_of_recording(&source.path, &name, call)?;
                facts.chapters = Vec::new();
                Ok(Extent::Recording(facts))
            }
            Sort::Text => {
                let limit = if is_text { TEXT_BYTES } else { EXTRACTED_BYTES };
                if facts.size > limit {
                    let too_large = Unreadable::TooLarge { what: "bytes", limit };
                    return Err(CitationError::unreadable(&name, too_large));
                }
                let _share = self.budget.take(facts.size, call)?;
                (&file).take(limit).read_to_end(&mut bytes).map_err(reading)?;
                match shelf_reading::text_of(&name, &mime, is_text, &bytes) {
                    Ok(Some(text)) => Ok(extent_of(&text)),
                    Ok(None) => Err(CitationError::NotCitable { path: name, mime }),
                    Err(error) => Err(CitationError::unreadable(&name, error)),
                }
            }
        }
    }

    fn text_map(&self, source: &Source, call: &CallContext) -> Answer<Mapped> {
        self.with_text(source, call, |text| {
            let map = map::text_map(&source.document.path, &source.document.mime, text);
            Ok(Mapped::new(map, extent_of(text)))
        })
    }

    fn recording_map(
        &self,
        source: &Source,
        subtitles: Option<&Source>,
        call: &CallContext,
    ) -> Answer<Mapped> {
        let file = self.source_file(source, call)?;
        self.look_at(source, &file, subtitles, call)
    }

    fn look_at(
        &self,
        source: &Source,
        file: &Path,
        subtitles: Option<&Source>,
        call: &CallContext,
    ) -> Answer<Mapped> {
        let failed = |error| CitationError::media(&source.document.path, error);
        let mut facts = facts_of_recording(file, &source.document.path, call)?;
        let mut cues: Vec<Cue> = Vec::new();
        if let Some(subtitles) = subtitles {
            let range = 0..subtitles.version.size.min(SUBTITLE_BYTES);
            let bytes = self.blobs.read_range(call, &subtitles.version.hash, range)?;
            cues = shelf_reading::cues(&String::from_utf8_lossy(&bytes));
        }
        if cues.is_empty() && facts.has_subtitles {
            // Subtitles that are pictures cannot be read; the recording is mapped without them.
            cues = match media::subtitles(file, call) {
                Err(error @ media::MediaError::Stopped(_)) => return Err(failed(error)),
                found => found.unwrap_or_default(),
            };
        }
        let mut cuts = Vec::new();
        if cues.is_empty() && facts.chapters.is_empty() {
            cuts = match media::cut_times(file, &facts, call) {
                Err(error @ media::MediaError::Stopped(_)) => return Err(failed(error)),
                found => found.unwrap_or_default(),
            };
        }
        let map: Map = map::media_map(&facts, &cues, &cuts);
        facts.chapters = Vec::new();
        Ok(Mapped::new(map, Extent::Recording(facts)))
    }

    /// The subtitles that stand beside a recording: a document with its path, but for the extension.
    fn subtitles_beside(&self, caller: &Caller, source: &Source) -> Answer<Option<Source>> {
        let document = &source.document;
        for path in shelf_reading::subtitles_beside(&document.path) {
            let scope = caller.pass.scope();
            let found = self.catalog.named(scope, Some(&document.collection_name), &path, 1)?;
            if let Some(found) = found.into_iter().find(|found| found.path == path && found.is_text) {
                return Ok(Some(super::present(found)));
            }
        }
        Ok(None)
    }

    /// The stored content of a recording as a file, for the programs that need one.
    pub(super) fn source_file(&self, source: &Source, call: &CallContext) -> Answer<std::path::PathBuf> {
        let hash = source.version.hash;
        let name = format!("source{}", source.document.extension);
        self.evidence.get_or_make(&format!("source-{hash}"), &name, |target| {
            let failed = |error| CitationError::Engine(Error::writing("the copy of a recording", error));
            let mut file = std::fs::File::create(target).map_err(failed)?;
            self.blobs.stream_blob(call, &hash, |piece| {
                std::io::Write::write_all(&mut file, piece)
                    .map_err(|error| Error::writing("the copy of a recording", error))
            })?;
            Ok(())
        })
    }
}

/// What a recording holds, with the frames at which copies may begin.
fn facts_of_recording(file: &Path, name: &str, call: &CallContext) -> Answer<MediaFacts> {
    let failed = |error| CitationError::media(name, error);
    let mut facts = media::probe(file, call).map_err(failed)?;
    facts.key_frames = media::key_frames(file, &facts, call).map_err(failed)?;
    Ok(facts)
}

fn extent_of(text: &Text<'_>) -> Extent {
    match text.pages.len() {
        0 => Extent::Lines(map::line_count(&text.text)),
        pages => Extent::Pages(pages as u32),
    }
}

/// Where a map is kept. Other readers, another type and other subtitles give another map.
fn derived_key(source: &Source, subtitles: Option<&Source>) -> DerivedKey {
    let origin = origin(source);
    let beside = subtitles.map(|subtitles| subtitles.version.hash.to_string()).unwrap_or_default();
    let described = format!(
        "map {VERSION} {} {} {} {} {beside}",
        shelf_reading::VERSION,
        origin.mime,
        shelf_reading::extension_of(origin.path),
        origin.is_text
    );
    let hash = blake3::hash(described.as_bytes());
    let variant = hash.as_bytes().first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    DerivedKey { content: origin.hash, variant }
}
