//! Resolving: from a node or an address to the evidence itself.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use shelf_base::{
    CallContext,
    address::{Address, Clip, Lines, Modality, Place},
};
use shelf_reading::{
    Recording, extension_of,
    map::{Location, MapNode},
    media,
};

use super::{
    Answer, CitationError, Opened, Source, address_of,
    lines::cut_lines,
    mapped::{Extent, Mapped},
    targets::{leads_on, names_no_node},
    wire::{self, NodeJson},
};
use crate::{
    Caller, Error, FileAccess, Library, OpenFile, Result, books::links::encoded, readings::EXTRACTED_BYTES,
    signing::Purpose,
};

/// Changes whenever other evidence is cut out of the same place.
const RESOLVER: u32 = 4;
/// Bytes of text that come with a reply.
const TEXT_BYTES: u64 = 1 << 20;
/// Bytes of an image or clip that come with a reply.
const MEDIA_BYTES: u64 = 4 << 20;
/// Bytes of a text that lines are cut out of.
const SOURCE_BYTES: u64 = 1 << 30;
/// Bytes of the name of a file.
const NAME_BYTES: usize = 200;

/// What is to be resolved.
#[derive(Clone, Debug, Default)]
pub struct ResolveRequest {
    /// The resource, with `node_id`.
    pub resource_id: Option<String>,
    /// The node.
    pub node_id: Option<String>,
    /// An address, in place of both.
    pub address: Option<String>,
    /// Only the address; nothing is cut.
    pub is_virtual: bool,
    /// Whether the content comes with the reply.
    pub include_content: bool,
}

/// The content of evidence.
#[derive(Clone, Debug, Default)]
pub struct EvidenceContent {
    /// Its text: that of the lines or pages.
    pub text: Option<String>,
    /// Its type.
    pub mime: String,
    /// Its bytes, when it is an image or a short clip.
    pub bytes: Option<Vec<u8>>,
    /// The address that it can be read from again.
    pub address: String,
    /// The name of its file.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
}

/// What was resolved.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The file; `None` when nothing was to be cut.
    pub output_path: Option<String>,
    /// Where the file can be fetched over HTTP.
    pub evidence_url: Option<String>,
    /// The modality.
    pub modality: Modality,
    /// The address, rounded outward to whole seconds.
    pub address: String,
    /// The address with fractions of a second, when that differs.
    pub exact_address: Option<String>,
    /// The node, or the smallest one that contains what was asked for.
    pub node: NodeJson,
    /// The resource's id in addresses.
    pub resource_id: String,
    /// Whether the document has other content by now.
    pub source_changed: bool,
    /// The content, when it was asked for.
    pub content: Option<EvidenceContent>,
}

/// What of a resource is meant.
enum Wanted {
    Node(String),
    Place(Place),
}

/// Something that can be cut out.
struct Piece {
    opened: Opened,
    place: Place,
    /// What names it: the id of the node, or the place itself.
    name: String,
}

/// What the address of evidence says.
#[derive(Serialize, Deserialize)]
struct Claims {
    key: String,
    name: String,
    mime: String,
    expires_at: i64,
}

/// Evidence on disk.
struct Cut {
    path: PathBuf,
    key: String,
    name: String,
    mime: String,
}

impl Library {
    /// Resolves a node or an address.
    pub fn resolve(&self, caller: &Caller, request: &ResolveRequest, call: &CallContext) -> Answer<Resolved> {
        caller.must_read()?;
        self.resolved(caller, request, call).map_err(|error| error.seen_by(caller))
    }

    fn resolved(&self, caller: &Caller, request: &ResolveRequest, call: &CallContext) -> Answer<Resolved> {
        let (id, wanted) = wanted(request)?;
        let source = self.cited(caller, &id)?.ok_or_else(|| CitationError::NoResource(id.clone()))?;
        let opened = self.opened(caller, source, call)?;
        let resource_id = opened.source.id();
        let source_changed = opened.source_changed;
        let (node, address, place, name) = match wanted {
            Wanted::Node(node_id) => {
                let node = opened.mapped.node(&node_id).ok_or(CitationError::NoNode(node_id))?.clone();
                let address = address_of(&resource_id, &node)?;
                (node.clone(), address, node.location, node.id)
            }
            Wanted::Place(place) => {
                let place = opened.mapped.extent.within(&place)?;
                let address = Address::new(resource_id.as_str(), place.clone())?;
                let node = around(&opened.mapped, &place, &opened.source.document.title);
                let name = fragment(&address);
                (node, address, Location::Here(place), name)
            }
        };
        let piece = match place {
            Location::Here(place) => {
                let place = opened.mapped.extent.within(&place)?;
                Piece { opened, place, name }
            }
            Location::Elsewhere(target) => self.led_to(caller, &target, name, call)?,
        };
        let mut resolved = Resolved {
            output_path: None,
            evidence_url: None,
            modality: node.location.modality(),
            exact_address: address.exact(),
            address: address.to_string(),
            node: wire::node_json(&node),
            resource_id,
            source_changed: source_changed || piece.opened.source_changed,
            content: None,
        };
        if !request.is_virtual {
            let cut = self.cut(&resolved.resource_id, &piece, call)?;
            (resolved.output_path, resolved.evidence_url) = self.shown(caller, &cut);
            if request.include_content {
                let again = resolved.exact_address.as_ref().unwrap_or(&resolved.address).clone();
                resolved.content = Some(self.content_of(&piece, &cut, again, call)?);
            }
        }
        Ok(resolved)
    }

    /// The bytes of evidence at an address, and their type.
    pub fn evidence(&self, caller: &Caller, address: &str, call: &CallContext) -> Answer<(String, Vec<u8>)> {
        let request = ResolveRequest {
            address: Some(address.to_owned()),
            include_content: true,
            ..ResolveRequest::default()
        };
        caller.must_read()?;
        // The path inside the data directory is the same for everyone; only what is shown of it differs.
        let local = Caller { file_access: FileAccess::OperatingSystem, ..caller.clone() };
        let resolved = self.resolved(&local, &request, call).map_err(|error| error.seen_by(caller))?;
        let (Some(path), Some(content)) = (resolved.output_path, resolved.content) else {
            return Err(CitationError::NoPlace("there is nothing to read".into()));
        };
        if content.size > shelf_base::bounds::REQUEST_BYTES as u64 {
            let limit = format!("{} MiB", shelf_base::bounds::REQUEST_BYTES >> 20);
            return Err(Error::TooLarge { what: "the evidence".into(), limit }.into());
        }
        let _share = self.budget.take(content.size, call)?;
        let bytes = fs::read(&path).map_err(|error| Error::reading("the evidence", error))?;
        Ok((content.mime, bytes))
    }

    /// What a virtual node leads to. One step only: what it leads to must be a place.
    fn led_to(&self, caller: &Caller, target: &Address, name: String, call: &CallContext) -> Answer<Piece> {
        let id = target.resource();
        let source = self.cited(caller, id)?.ok_or_else(|| CitationError::NoResource(id.to_owned()))?;
        let opened = self.opened(caller, source, call)?;
        let place = match target.place() {
            Place::Virtual(Some(node_id)) => {
                let node = opened.mapped.node(node_id.as_str());
                let node = node.ok_or_else(|| CitationError::NoNode(node_id.as_str().to_owned()))?;
                match &node.location {
                    Location::Here(place) => place.clone(),
                    Location::Elsewhere(_) => return Err(leads_on(target)),
                }
            }
            Place::Virtual(None) => return Err(names_no_node(target)),
            place => place.clone(),
        };
        let place = opened.mapped.extent.within(&place)?;
        Ok(Piece { opened, place, name })
    }

    /// Where evidence is, as the caller may see it.
    fn shown(&self, caller: &Caller, cut: &Cut) -> (Option<String>, Option<String>) {
        match caller.file_access {
            FileAccess::OperatingSystem => (Some(cut.path.display().to_string()), None),
            FileAccess::Configured => {
                (Some(format!("evidence/{}/{}", cut.key, cut.name)), self.evidence_url(caller, cut))
            }
        }
    }

    /// The signed address from which evidence can be fetched over HTTP for a while.
    fn evidence_url(&self, caller: &Caller, cut: &Cut) -> Option<String> {
        let base = self.address_for(caller)?;
        let seconds = i64::try_from(self.options.links.seconds).ok()?;
        let claims = Claims {
            key: cut.key.clone(),
            name: cut.name.clone(),
            mime: cut.mime.clone(),
            expires_at: self.now().micros().saturating_add(seconds.saturating_mul(1_000_000)),
        };
        let proof = self.url_keys().ok()?.sign(Purpose::Evidence, &claims)?;
        Some(format!("{base}/evidence/{}?k={proof}", encoded(&cut.name)))
    }

    /// The file of evidence whose address was given, while the address works.
    pub fn open_evidence(&self, proof: &str) -> Result<Option<OpenFile>> {
        let claims: Option<Claims> = self.url_keys()?.read(Purpose::Evidence, proof);
        let Some(claims) = claims.filter(|claims| self.now().micros() < claims.expires_at) else {
            return Ok(None);
        };
        let Some(file) = self.evidence.open(&claims.key, &claims.name) else { return Ok(None) };
        let size = file.metadata().map_err(|error| Error::reading("evidence", error))?.len();
        let Claims { key, name, mime, .. } = claims;
        Ok(Some(OpenFile { file, size, state: key, name, mime }))
    }

    /// Cuts a piece out, unless it has been.
    fn cut(&self, resource_id: &str, piece: &Piece, call: &CallContext) -> Answer<Cut> {
        let Piece { opened, place, name } = piece;
        let source = &opened.source;
        let (extension, mime) = form_of(source, &opened.mapped.extent, place);
        let described = format!(
            "evidence {RESOLVER}\0{}\0{resource_id}\0{name}\0{}\0{}",
            source.document.id,
            source.version.hash,
            exactly(place)
        );
        let key = blake3::hash(described.as_bytes()).to_hex()[..32].to_owned();
        let name = file_name(resource_id, name, &extension);
        let path = self.evidence.get_or_make(&key, &name, |target| self.make(piece, target, call))?;
        Ok(Cut { path, key, name, mime })
    }

    fn make(&self, piece: &Piece, target: &Path, call: &CallContext) -> Answer<()> {
        let Piece { opened, place, .. } = piece;
        let source = &opened.source;
        let path = source.document.path.as_str();
        let bytes = match (&opened.mapped.extent, place) {
            (Extent::Lines(_), Place::Text(Some(lines))) => self.lines_of(source, *lines, call)?,
            (Extent::Pages(_), Place::Document(Some(pages))) => {
                let whole = self.whole(source, EXTRACTED_BYTES, call)?;
                shelf_reading::cut_pages(&whole, pages).map_err(|error| CitationError::cut(path, error))?
            }
            (Extent::Picture, Place::Image(region)) => {
                let whole = self.whole(source, EXTRACTED_BYTES, call)?;
                match region.filter(|region| !is_everything(region)) {
                    Some(region) => shelf_reading::crop(&whole, region)
                        .map_err(|error| CitationError::unreadable(path, error))?,
                    None => whole,
                }
            }
            (Extent::Recording(facts), Place::Video(Some(clip)) | Place::Audio(Some(clip))) => {
                let file = self.source_file(source, call)?;
                let times = milliseconds(*clip, facts.duration);
                return media::cut_clip(&file, facts, times, target, call)
                    .map_err(|error| CitationError::media(path, error));
            }
            _ => return Err(CitationError::NoPlace("the resource has no such place".into())),
        };
        fs::write(target, bytes).map_err(|error| Error::writing("the evidence", error).into())
    }

    fn whole(&self, source: &Source, limit: u64, call: &CallContext) -> Answer<Vec<u8>> {
        if source.version.size > limit {
            let limit = format!("{} MiB", limit >> 20);
            return Err(Error::TooLarge { what: source.document.path.clone(), limit }.into());
        }
        let _share = self.budget.take(source.version.size, call)?;
        Ok(self.blobs.read_blob(call, &source.version.hash)?)
    }

    /// Lines of the text, with their own bytes where the document is stored as it reads.
    fn lines_of(&self, source: &Source, lines: Lines, call: &CallContext) -> Answer<Vec<u8>> {
        if keeps_lines(source) {
            let whole = self.whole(source, SOURCE_BYTES, call)?;
            return Ok(cut_lines(&whole, lines).to_vec());
        }
        self.with_text(source, call, |text| Ok(cut_lines(text.text.as_bytes(), lines).to_vec()))
    }

    fn content_of(
        &self,
        piece: &Piece,
        cut: &Cut,
        address: String,
        call: &CallContext,
    ) -> Answer<EvidenceContent> {
        let reading = |error| CitationError::Engine(Error::reading("the evidence", error));
        let size = fs::metadata(&cut.path).map_err(reading)?.len();
        let mut content = EvidenceContent {
            mime: cut.mime.clone(),
            address,
            name: cut.name.clone(),
            size,
            ..EvidenceContent::default()
        };
        match &piece.place {
            Place::Text(Some(lines)) if size <= TEXT_BYTES => {
                let bytes = fs::read(&cut.path).map_err(reading)?;
                content.text = match String::from_utf8(bytes) {
                    // Every second byte of UTF-16 may be none.
                    Ok(text) if !text.contains('\0') => Some(text),
                    _ => Some(self.with_text(&piece.opened.source, call, |text| {
                        let cut = cut_lines(text.text.as_bytes(), *lines);
                        Ok(String::from_utf8_lossy(cut).into_owned())
                    })?),
                };
            }
            Place::Document(Some(pages)) => {
                let text = self.with_text(&piece.opened.source, call, |text| {
                    let start = |page: u32| {
                        text.pages.get(page as usize).map_or(text.text.len(), |start| *start as usize)
                    };
                    let page = |page: u32| text.text.get(start(page.saturating_sub(1))..start(page));
                    Ok(pages.iter().filter_map(page).collect::<String>())
                })?;
                content.text = Some(text).filter(|text| text.len() as u64 <= TEXT_BYTES);
            }
            Place::Image(_) | Place::Video(_) | Place::Audio(_) if size <= MEDIA_BYTES => {
                content.bytes = Some(fs::read(&cut.path).map_err(reading)?);
            }
            _ => {}
        }
        Ok(content)
    }
}

fn wanted(request: &ResolveRequest) -> Answer<(String, Wanted)> {
    match (&request.resource_id, &request.node_id, &request.address) {
        (Some(resource), Some(node), None) => Ok((resource.clone(), Wanted::Node(node.clone()))),
        (None, None, Some(address)) => {
            let address: Address = address.trim().parse()?;
            let wanted = match address.place() {
                Place::Virtual(Some(node)) => Wanted::Node(node.as_str().to_owned()),
                Place::Virtual(None) => return Err(names_no_node(&address)),
                place => Wanted::Place(place.clone()),
            };
            Ok((address.resource().to_owned(), wanted))
        }
        _ => Err(CitationError::NoPlace("provide resource_id and node_id, or address alone".into())),
    }
}

/// The smallest node around a place, or one for the place itself when no node contains it.
fn around(mapped: &Mapped, place: &Place, title: &str) -> MapNode {
    mapped.smallest(place).cloned().unwrap_or_else(|| MapNode {
        id: exactly(place),
        title: title.to_owned(),
        kind: shelf_reading::map::SECTION.into(),
        location: Location::Here(place.clone()),
        summary: None,
        parent: None,
        children: Vec::new(),
    })
}

/// A place in its exact spelling: `lines=3-9`.
fn exactly(place: &Place) -> String {
    Address::new("x", place.clone()).map(|address| fragment(&address)).unwrap_or_default()
}

fn fragment(address: &Address) -> String {
    let text = address.exact().unwrap_or_else(|| address.to_string());
    text.split_once('#').map_or_else(|| "whole".to_owned(), |(_, fragment)| fragment.to_owned())
}

/// `{resource_id}_{node_id}.{ext}` in characters that every system takes.
fn file_name(resource_id: &str, node: &str, extension: &str) -> String {
    let safe = |text: &str, dot: char| -> String {
        let keep = |each: char| match each {
            '.' => dot,
            each if each.is_alphanumeric() || matches!(each, '-' | '_') => each,
            _ => '_',
        };
        text.chars().map(keep).collect()
    };
    let mut name = format!("{}_{}", safe(resource_id, '.'), safe(node, '_'));
    name.truncate(name.floor_char_boundary(NAME_BYTES));
    name.push_str(extension);
    name
}

/// Extension and type of the evidence of a place.
fn form_of(source: &Source, extent: &Extent, place: &Place) -> (String, String) {
    let document = &source.document;
    let own = extension_of(&document.path);
    match (extent, place) {
        (Extent::Pages(_), _) => (".pdf".into(), "application/pdf".into()),
        (Extent::Lines(_), _) if !keeps_lines(source) => (".md".into(), "text/markdown".into()),
        (Extent::Lines(_), _) => (if own.is_empty() { ".txt".into() } else { own }, document.mime.clone()),
        (Extent::Picture, Place::Image(Some(region))) if !is_everything(region) => {
            (".png".into(), "image/png".into())
        }
        (Extent::Picture | Extent::Elsewhere, _) => (own, document.mime.clone()),
        (Extent::Recording(facts), _) => {
            let extension = media::extension_of_clip(&own, facts.recording);
            let mime = match (extension, facts.recording) {
                (".mp4" | ".m4v", _) => "video/mp4",
                (".mov", _) => "video/quicktime",
                (".mkv", Recording::Video) => "video/x-matroska",
                (".mkv", Recording::Audio) => "audio/x-matroska",
                (".webm", Recording::Video) => "video/webm",
                (".webm", Recording::Audio) => "audio/webm",
                (".mp3", _) => "audio/mpeg",
                (".wav", _) => "audio/wav",
                (".m4a", _) => "audio/mp4",
                (".ogg" | ".opus", _) => "audio/ogg",
                _ => "audio/flac",
            };
            (extension.to_owned(), mime.to_owned())
        }
    }
}

fn is_everything(region: &shelf_base::address::Region) -> bool {
    region.millionths() == [0, 0, 1_000_000, 1_000_000]
}

/// Whether the lines of the text are those of the stored bytes.
fn keeps_lines(source: &Source) -> bool {
    let mime = source.document.mime.split(';').next().unwrap_or_default().trim();
    source.document.is_text && !matches!(mime, "text/html" | "application/xhtml+xml")
}

fn milliseconds(clip: Clip, duration: u64) -> (u64, u64) {
    let end = clip.end().map_or(duration, |end| end.hundredths() * 10);
    (clip.start().hundredths() * 10, end.min(duration))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_as_the_contract_shows() {
        assert_eq!(file_name("lecture_01", "chapter_1.intro", ".mp4"), "lecture_01_chapter_1_intro.mp4");
        assert_eq!(file_name("a/../b", "x y/z", ".md"), "a_.._b_x_y_z.md");
        assert_eq!(file_name("r", &"é".repeat(300), ".pdf").len(), NAME_BYTES + 4);
    }
}
