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
    map::{Map, MapNode, contains},
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
    /// From where to where each node goes, at most: a list that is read through faster than the nodes.
    bounds: Vec<(u32, u32)>,
}

impl Mapped {
    pub(super) fn new(map: Map, extent: Extent) -> Self {
        let index = map.nodes.iter().enumerate().map(|(at, node)| (node.id.clone(), at as u32)).collect();
        let bounds = map.nodes.iter().map(|node| node.location.place().map_or(NOWHERE, bounds)).collect();
        Self { map, extent, given: None, about: About::default(), index, bounds }
    }

    pub(super) fn node(&self, id: &str) -> Option<&MapNode> {
        self.index.get(id).and_then(|at| self.map.nodes.get(*at as usize))
    }

    /// The smallest node that contains a place; of several, the last one, which lies deepest.
    pub(super) fn smallest(&self, place: &Place) -> Option<&MapNode> {
        let (first, last) = bounds(place);
        let around = self.bounds.iter().enumerate().filter(|(_, (from, to))| *from <= first && last <= *to);
        let nodes = around.filter_map(|(at, _)| self.map.nodes.get(at));
        let mut found: Option<(u64, &MapNode)> = None;
        for node in nodes {
            let Some(own) = node.location.place().filter(|own| contains(own, place)) else { continue };
            let size = size(own);
            if found.is_none_or(|(smallest, _)| size <= smallest) {
                found = Some((size, node));
            }
        }
        found.map(|(_, node)| node)
    }
}

/// The bounds of a node that has no place of its own.
const NOWHERE: (u32, u32) = (u32::MAX, 0);

/// From where to where a place goes: lines, pages, hundredths of a second, or from left to right.
fn bounds(place: &Place) -> (u32, u32) {
    let number = |hundredths: u64| u32::try_from(hundredths).unwrap_or(u32::MAX);
    match place {
        Place::Text(Some(lines)) => (lines.first(), lines.last()),
        Place::Document(Some(pages)) => (pages.first(), pages.last()),
        Place::Image(Some(region)) => (region.millionths()[0], region.millionths()[2]),
        Place::Video(Some(clip)) | Place::Audio(Some(clip)) => {
            (number(clip.start().hundredths()), clip.end().map_or(u32::MAX, |end| number(end.hundredths())))
        }
        Place::Text(None)
        | Place::Document(None)
        | Place::Image(None)
        | Place::Video(None)
        | Place::Audio(None) => (0, u32::MAX),
        Place::Virtual(_) => NOWHERE,
    }
}

/// How large a place is, in a unit of its modality.
fn size(place: &Place) -> u64 {
    match place {
        Place::Document(Some(pages)) if pages.as_range().is_none() => pages.iter().count() as u64,
        Place::Image(Some(region)) => {
            let [left, top, right, bottom] = region.millionths().map(u64::from);
            (right - left) * (bottom - top)
        }
        Place::Image(None) => u64::MAX,
        Place::Text(_) | Place::Document(_) | Place::Video(_) | Place::Audio(_) | Place::Virtual(_) => {
            let (first, last) = bounds(place);
            u64::from(last.saturating_sub(first)) + 1
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

#[cfg(test)]
mod tests {
    use shelf_base::address::{Lines, Pages};
    use shelf_reading::map::Location;

    use super::*;

    /// A map of nodes: the place of each and its parent.
    fn mapped(nodes: Vec<(Location, Option<u32>)>, extent: Extent) -> Mapped {
        let mut map = Map::default();
        for (at, (location, parent)) in (0_u32..).zip(nodes) {
            match parent {
                Some(parent) => map.nodes[parent as usize].children.push(at),
                None => map.roots.push(at),
            }
            let (id, title) = (format!("n{at}"), String::new());
            let kind = shelf_reading::map::SECTION.into();
            map.nodes.push(MapNode {
                id,
                title,
                kind,
                location,
                summary: None,
                parent,
                children: Vec::new(),
            });
        }
        Mapped::new(map, extent)
    }

    fn lines(first: u32, last: u32) -> Place {
        Place::Text(Some(Lines::new(first, last).unwrap()))
    }

    fn pages(first: u32, last: u32) -> Place {
        Place::Document(Some(Pages::range(first, last).unwrap()))
    }

    fn smallest<'a>(mapped: &'a Mapped, place: &Place) -> Option<&'a str> {
        mapped.smallest(place).map(|node| node.id.as_str())
    }

    #[test]
    fn the_smallest_node_is_found_wherever_it_stands() {
        let here = |places: &[(Place, Option<u32>)]| {
            places.iter().map(|(place, parent)| (Location::Here(place.clone()), *parent)).collect()
        };
        let doubled = mapped(
            here(&[
                (pages(7, 7), None),
                (pages(7, 10), None),
                (pages(7, 10), Some(1)),
                (pages(7, 10), Some(2)),
            ]),
            Extent::Pages(10),
        );
        assert_eq!(smallest(&doubled, &pages(7, 7)), Some("n0"));
        assert_eq!(smallest(&doubled, &pages(7, 8)), Some("n3"), "of equal ones the deepest");
        assert_eq!(smallest(&doubled, &pages(1, 7)), None);
        let roots = mapped(here(&[(lines(1, 3), None), (lines(1, 11), None)]), Extent::Lines(11));
        assert_eq!(smallest(&roots, &lines(2, 2)), Some("n0"));
        assert_eq!(smallest(&roots, &lines(4, 4)), Some("n1"));
        let elsewhere = Location::Elsewhere("text://other#lines=1".parse().unwrap());
        let led = vec![(elsewhere, None), (Location::Here(lines(5, 7)), Some(0))];
        assert_eq!(smallest(&mapped(led, Extent::Lines(9)), &lines(6, 6)), Some("n1"));
    }

    #[test]
    fn many_nodes_are_looked_through_at_once() {
        let mut nodes = vec![(Location::Here(lines(1, 200_000)), None)];
        nodes.extend((1..100_000).map(|at| (Location::Here(lines(2 * at, 2 * at + 1)), Some(0))));
        let mapped = mapped(nodes, Extent::Lines(200_000));
        let begun = std::time::Instant::now();
        for at in 1..=100 {
            assert_eq!(smallest(&mapped, &lines(2 * at, 2 * at)), Some(format!("n{at}").as_str()));
        }
        assert!(begun.elapsed().as_millis() < 1_000, "{:?}", begun.elapsed());
    }
}
