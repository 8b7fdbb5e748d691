//! A map in memory, with what is needed to use it: nodes by id, and how large the resource is.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use shelf_base::{
    Digest,
    address::{Clip, Modality, Place, Region, Seconds},
    ids::DocumentId,
};
use shelf_reading::{
    MediaFacts, Recording,
    map::{Location, Map, MapNode, contains},
};

use super::{
    CitationError,
    wire::{self, NodeJson},
};

/// Nodes of all maps that are kept in memory.
const KEPT_NODES: usize = 150_000;
/// Bytes that a map may unpack to.
const MOST_BYTES: usize = 256 << 20;
/// How far beyond its end a clip may reach, in hundredths of a second: the length of a recording is not exact.
const TOLERANCE: u64 = 5;

/// How large a resource is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    Lines(u32),
    Pages(u32),
    Picture,
    Recording(MediaFacts),
    /// None of its own: every node leads to another resource.
    Elsewhere,
}

impl Extent {
    pub(super) const fn modality(&self) -> Modality {
        match self {
            Self::Lines(_) => Modality::Text,
            Self::Pages(_) => Modality::Document,
            Self::Picture => Modality::Image,
            Self::Recording(facts) => match facts.recording {
                Recording::Video => Modality::Video,
                Recording::Audio => Modality::Audio,
            },
            Self::Elsewhere => Modality::Virtual,
        }
    }

    /// The place as it is in the resource: within its bounds, and with an end. Fails for what it does not have.
    pub(super) fn within(&self, place: &Place) -> Result<Place, CitationError> {
        let outside = |what: String| Err(CitationError::NoPlace(what));
        match (self, place) {
            (Self::Lines(count), Place::Text(lines)) => match lines {
                Some(lines) if lines.last() <= *count => Ok(place.clone()),
                Some(lines) => {
                    outside(format!("the text has {count} lines, so there is no line {}", lines.last()))
                }
                None if *count == 0 => outside("the text is empty".into()),
                None => Ok(Place::Text(Some(shelf_base::address::Lines::new(1, *count)?))),
            },
            (Self::Pages(count), Place::Document(pages)) => match pages {
                Some(pages) if pages.last() <= *count => Ok(place.clone()),
                Some(pages) => {
                    outside(format!("the document has {count} pages, so there is no page {}", pages.last()))
                }
                None => Ok(Place::Document(Some(shelf_base::address::Pages::range(1, *count)?))),
            },
            (Self::Picture, Place::Image(Some(region))) => Ok(Place::Image(Some(*region))),
            (Self::Picture, Place::Image(None)) => {
                Ok(Place::Image(Some(Region::from_millionths([0, 0, 1_000_000, 1_000_000])?)))
            }
            (Self::Recording(facts), Place::Video(clip) | Place::Audio(clip)) => {
                let clip = clip_within(facts, *clip)?;
                Ok(match facts.recording {
                    Recording::Video => Place::Video(Some(clip)),
                    Recording::Audio => Place::Audio(Some(clip)),
                })
            }
            (own, place) => {
                let (own, found) = (own.modality(), place.modality());
                outside(format!(
                    "the resource is cited with {}://, not with {}://",
                    own.scheme(),
                    found.scheme()
                ))
            }
        }
    }
}

/// Addresses are rounded outward to whole seconds, so an end in the last second begun means the end.
fn clip_within(facts: &MediaFacts, clip: Option<Clip>) -> Result<Clip, CitationError> {
    let length = facts.duration / 10;
    let end_of_all = Seconds::from_hundredths(length)?;
    let clip = clip.unwrap_or(Clip::starting(Seconds::default()));
    let end = clip.end().unwrap_or(end_of_all);
    let outside =
        |what: &str| Err(CitationError::NoPlace(format!("the recording is {end_of_all} s long, so {what}")));
    if clip.start() >= end_of_all {
        return outside(&format!("there is nothing at {} s", clip.start()));
    }
    let last_second = length.div_ceil(100) * 100;
    if end.hundredths() > last_second.max(length + TOLERANCE) {
        return outside(&format!("it does not go on to {end} s"));
    }
    let end = end.min(end_of_all);
    if end <= clip.start() {
        return Err(CitationError::NoPlace(format!("the clip at {} s has no length", clip.start())));
    }
    Ok(Clip::new(clip.start(), end)?)
}

/// What a map that was given says of its resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct About {
    /// The title that it gives the resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What else it says; never what the library itself knows.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub metadata: serde_json::Map<String, serde_json::Value>,
}

/// A map that is ready to be used.
#[derive(Debug)]
pub(super) struct Mapped {
    pub map: Map,
    pub extent: Extent,
    /// Who gave it, and for which content; `None` for one that was made.
    pub given: Option<(String, Digest)>,
    /// What it came with.
    pub about: About,
    index: HashMap<String, u32>,
}

impl Mapped {
    pub(super) fn new(map: Map, extent: Extent) -> Self {
        let index = map.nodes.iter().enumerate().map(|(at, node)| (node.id.clone(), at as u32)).collect();
        Self { map, extent, given: None, about: About::default(), index }
    }

    pub(super) fn node(&self, id: &str) -> Option<&MapNode> {
        self.index.get(id).and_then(|at| self.map.nodes.get(*at as usize))
    }

    /// The smallest node that contains a place: the one to which no child goes on.
    pub(super) fn smallest(&self, place: &Place) -> Option<&MapNode> {
        let mut found: Option<&MapNode> = None;
        let mut waiting = &self.map.roots;
        loop {
            let holds = |at: &&u32| {
                let node = self.map.nodes.get(**at as usize);
                node.is_some_and(|node| match &node.location {
                    Location::Here(own) => contains(own, place),
                    Location::Elsewhere(_) => false,
                })
            };
            // Sections that share a page both contain it; the last one to begin is the narrower.
            let Some(next) = waiting.iter().rev().find(holds) else { return found };
            found = self.map.nodes.get(*next as usize);
            waiting = found.map_or(&self.map.roots, |node| &node.children);
        }
    }
}

/// What a map was made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum MapKey {
    /// Of a content, by a reader.
    Made { content: Digest, variant: u64 },
    /// By somebody, for a document.
    Given { document: DocumentId, number: u32 },
}

/// Maps in memory, the last used ones first.
#[derive(Default)]
pub(crate) struct MapCache {
    kept: Mutex<VecDeque<(MapKey, Arc<Mapped>)>>,
}

impl MapCache {
    pub(super) fn get(&self, key: &MapKey) -> Option<Arc<Mapped>> {
        let mut kept = self.kept.lock();
        let at = kept.iter().position(|(known, _)| known == key)?;
        let entry = kept.remove(at)?;
        let map = entry.1.clone();
        kept.push_front(entry);
        Some(map)
    }

    pub(super) fn keep(&self, key: MapKey, map: &Arc<Mapped>) {
        let mut kept = self.kept.lock();
        kept.retain(|(known, _)| *known != key);
        kept.push_front((key, map.clone()));
        let mut nodes = 0;
        let mut first = true;
        kept.retain(|(_, map)| {
            nodes += map.map.nodes.len() + 64;
            std::mem::take(&mut first) || nodes <= KEPT_NODES
        });
    }

    pub(crate) fn clear(&self) {
        self.kept.lock().clear();
    }
}

/// A map as it is kept on disk.
#[derive(Serialize, Deserialize)]
struct Kept {
    extent: KeptExtent,
    nodes: Vec<NodeJson>,
    #[serde(default)]
    about: About,
}

#[derive(Serialize, Deserialize)]
enum KeptExtent {
    Lines(u32),
    Pages(u32),
    Picture,
    Recording {
        is_video: bool,
        duration: u64,
        has_subtitles: bool,
        has_sound: bool,
        codec: String,
        reorder: u64,
        clock: u64,
        key_frames: Vec<u64>,
    },
    Elsewhere,
}

pub(super) fn encode(mapped: &Mapped) -> Option<Vec<u8>> {
    let extent = match &mapped.extent {
        Extent::Lines(count) => KeptExtent::Lines(*count),
        Extent::Pages(count) => KeptExtent::Pages(*count),
        Extent::Picture => KeptExtent::Picture,
        Extent::Recording(facts) => KeptExtent::Recording {
            is_video: facts.recording == Recording::Video,
            duration: facts.duration,
            has_subtitles: facts.has_subtitles,
            has_sound: facts.has_sound,
            codec: facts.codec.clone(),
            reorder: facts.reorder,
            clock: facts.clock,
            key_frames: facts.key_frames.clone(),
        },
        Extent::Elsewhere => KeptExtent::Elsewhere,
    };
    let (nodes, about) = (wire::tree_json(&mapped.map), mapped.about.clone());
    let json = serde_json::to_vec(&Kept { extent, nodes, about }).ok()?;
    zstd::bulk::compress(&json, 3).ok()
}

pub(super) fn decode(bytes: &[u8]) -> Option<Mapped> {
    let json = zstd::bulk::decompress(bytes, MOST_BYTES).ok()?;
    let kept: Kept = serde_json::from_slice(&json).ok()?;
    let extent = match kept.extent {
        KeptExtent::Lines(count) => Extent::Lines(count),
        KeptExtent::Pages(count) => Extent::Pages(count),
        KeptExtent::Picture => Extent::Picture,
        KeptExtent::Recording {
            is_video,
            duration,
            has_subtitles,
            has_sound,
            codec,
            reorder,
            clock,
            key_frames,
        } => Extent::Recording(MediaFacts {
            recording: if is_video { Recording::Video } else { Recording::Audio },
            duration,
            chapters: Vec::new(),
            has_subtitles,
            has_sound,
            codec,
            reorder,
            clock,
            key_frames,
        }),
        KeptExtent::Elsewhere => Extent::Elsewhere,
    };
    let (map, problems) = wire::map_of(kept.nodes, extent.modality());
    problems.is_empty().then(|| Mapped { about: kept.about, ..Mapped::new(map, extent) })
}
