//! Maps as the contract's JSON: how they come in, go out and are kept.

use serde::{Deserialize, Serialize};
use shelf_base::address::{Address, Clip, Lines, Modality, NotAnAddress, Pages, Place, Region, Seconds};
use shelf_reading::map::{Location, Map, MapNode};

/// A location.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LocationJson {
    /// The modality.
    #[serde(default)]
    pub modality: String,
    /// Seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<f64>,
    /// Seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<f64>,
    /// One page, the first and last of a range, or three and more pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<Vec<u32>>,
    /// First and last line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<Vec<u32>>,
    /// Corners from 0 to 1, from the top left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bbox: Option<Vec<f64>>,
    /// Where a virtual node leads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtual_address: Option<String>,
}

/// A node with its children.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeJson {
    /// Its id.
    pub id: String,
    /// Its title.
    #[serde(default)]
    pub title: String,
    /// Its type.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// Where it is.
    pub location: LocationJson,
    /// What it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Its parts.
    #[serde(default, deserialize_with = "or_nothing")]
    pub children: Vec<NodeJson>,
}

fn or_nothing<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<NodeJson>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// The JSON of a location.
pub fn location_json(location: &Location) -> LocationJson {
    let mut json = LocationJson { modality: location.modality().name().into(), ..LocationJson::default() };
    match location {
        Location::Elsewhere(address) => {
            json.virtual_address = Some(address.exact().unwrap_or_else(|| address.to_string()));
        }
        Location::Here(place) => match place {
            Place::Document(pages) => json.pages = pages.as_ref().map(pages_json),
            Place::Text(lines) => json.lines = lines.map(|lines| vec![lines.first(), lines.last()]),
            Place::Image(region) => json.bbox = region.map(|region| region.corners().to_vec()),
            Place::Video(clip) | Place::Audio(clip) => {
                json.start = clip.map(|clip| clip.start().as_f64());
                json.end = clip.and_then(Clip::end).map(Seconds::as_f64);
            }
            Place::Virtual(node) => json.virtual_address = node.as_ref().map(|node| node.as_str().to_owned()),
        },
    }
    json
}

/// Two pages mean all from one to the other, so two single ones are written with one of them twice.
fn pages_json(pages: &Pages) -> Vec<u32> {
    if let Some((first, last)) = pages.as_range() {
        return if first == last { vec![first] } else { vec![first, last] };
    }
    let all: Vec<u32> = pages.iter().collect();
    if let [first, last] = all.as_slice() { vec![*first, *first, *last] } else { all }
}

/// The location that some JSON means, in a resource of this modality. What is wrong is said in words.
pub(super) fn location(json: &LocationJson, resource: Modality) -> Result<Location, String> {
    if let Some(address) = &json.virtual_address {
        let address: Address = address.parse().map_err(|error: NotAnAddress| error.to_string())?;
        return Ok(Location::Elsewhere(address));
    }
    let modality = match json.modality.as_str() {
        "" => resource,
        name => Modality::ALL
            .into_iter()
            .find(|modality| modality.name() == name)
            .ok_or_else(|| format!("'{name}' is not a modality"))?,
    };
    let words = |error: NotAnAddress| error.to_string();
    Ok(Location::Here(match modality {
        Modality::Document => {
            Place::Document(Some(match json.pages.as_deref().ok_or("it names no pages")? {
                [page] => Pages::single(*page).map_err(words)?,
                [first, last] => Pages::range(*first, *last).map_err(words)?,
                pages => Pages::list(pages.to_vec()).map_err(words)?,
            }))
        }
        Modality::Text => Place::Text(Some(match json.lines.as_deref().ok_or("it names no lines")? {
            [line] => Lines::new(*line, *line).map_err(words)?,
            [first, last] => Lines::new(*first, *last).map_err(words)?,
            other => {
                return Err(format!(
                    "lines are the first and the last, but {} numbers are given",
                    other.len()
                ));
            }
        })),
        Modality::Image => {
            let corners = json.bbox.as_deref().ok_or("it has no bbox")?;
            let corners: [f64; 4] = corners.try_into().map_err(|_| {
                format!("a bbox has 4 numbers, x1,y1,x2,y2, but {} were given", corners.len())
            })?;
            Place::Image(Some(Region::nearest(corners).map_err(words)?))
        }
        Modality::Video => Place::Video(Some(clip(json)?)),
        Modality::Audio => Place::Audio(Some(clip(json)?)),
        Modality::Virtual => return Err("a virtual node needs a virtual_address".into()),
    }))
}

fn clip(json: &LocationJson) -> Result<Clip, String> {
    let (Some(start), Some(end)) = (json.start, json.end) else {
        return Err("it has no start and end".into());
    };
    let time = |seconds: f64| Seconds::nearest(seconds).map_err(|error| error.to_string());
    Clip::new(time(start)?, time(end)?).map_err(|error| error.to_string())
}

/// A node without its children.
pub(super) fn node_json(node: &MapNode) -> NodeJson {
    NodeJson {
        id: node.id.clone(),
        title: node.title.clone(),
        kind: node.kind.to_string(),
        location: location_json(&node.location),
        summary: node.summary.clone(),
        children: Vec::new(),
    }
}

/// The whole tree.
pub fn tree_json(map: &Map) -> Vec<NodeJson> {
    // From the last node to the first: every child is ready before its parent takes it.
    let mut made: Vec<Option<NodeJson>> = map.nodes.iter().map(|node| Some(node_json(node))).collect();
    for (at, node) in map.nodes.iter().enumerate().rev() {
        let children: Vec<NodeJson> =
            node.children.iter().filter_map(|child| made.get_mut(*child as usize)?.take()).collect();
        if let Some(own) = made.get_mut(at).and_then(Option::as_mut) {
            own.children = children;
        }
    }
    map.roots.iter().filter_map(|root| made.get_mut(*root as usize)?.take()).collect()
}

/// The map that a tree means. Nodes whose location cannot be understood are left out and reported with their ids.
pub(super) fn map_of(nodes: Vec<NodeJson>, resource: Modality) -> (Map, Vec<String>) {
    let mut map = Map::default();
    let mut problems = Vec::new();
    let mut waiting: Vec<(NodeJson, Option<u32>)> =
        nodes.into_iter().rev().map(|node| (node, None)).collect();
    while let Some((node, parent)) = waiting.pop() {
        let place = match location(&node.location, resource) {
            Ok(place) => place,
            Err(what) => {
                problems.push(format!("node '{}': {what}", node.id));
                continue;
            }
        };
        let at = map.nodes.len() as u32;
        match parent {
            Some(parent) => map.nodes[parent as usize].children.push(at),
            None => map.roots.push(at),
        }
        waiting.extend(node.children.into_iter().rev().map(|child| (child, Some(at))));
        map.nodes.push(MapNode {
            id: node.id,
            title: node.title,
            kind: node.kind.into(),
            location: place,
            summary: node.summary,
            parent,
            children: Vec::new(),
        });
    }
    (map, problems)
}
