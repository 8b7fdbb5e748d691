//! The books family (contract 000): lessons, chapter summaries, assets, finding them, and archives.

mod batch_hashes;
mod book_history;
mod delete_content;
mod delete_summary;
mod get_asset;
mod get_book_archive;
mod glob_search;
mod grep_search;
mod list_assets;
mod list_books;
mod plan_build;
mod read_content;
mod read_summary;
mod upload_asset;
mod write_content;
mod write_summary;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use shelf_base::book_names::{is_book_id, is_book_path};
use shelf_engine::Asset;

use crate::{Context, Tool, family::ToolError};

/// What replies say about where content is stored: packs are files.
const BACKEND: &str = "fs";

/// The family's tools, in the contract's order.
pub(crate) const TOOLS: &[Tool] = &[
    read_content::TOOL,
    write_content::TOOL,
    delete_content::TOOL,
    read_summary::TOOL,
    write_summary::TOOL,
    delete_summary::TOOL,
    upload_asset::TOOL,
    get_asset::TOOL,
    list_assets::TOOL,
    glob_search::TOOL,
    grep_search::TOOL,
    list_books::TOOL,
    get_book_archive::TOOL,
];

/// Tools beyond the contract, for build pipelines.
pub(crate) const EXTRAS: &[Tool] = &[plan_build::TOOL, batch_hashes::TOOL, book_history::TOOL];

/// The path that arguments are about, as far as they name one in the right form, for an error that comes before they are read.
fn file_meant(arguments: &Map<String, Value>) -> Option<String> {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    match (text("path"), text("chapter_id"), text("asset_type"), text("filename")) {
        (Some(path), ..) => Some(path.to_owned()),
        (None, Some(chapter), ..) => Some(format!("chapters/{chapter}/.summary.md")),
        (None, None, Some(kind), Some(name)) => Some(format!("assets/{kind}/{name}")),
        _ => None,
    }
}

/// The same with the book, as replies show it.
pub(crate) fn meant(arguments: &Map<String, Value>) -> Option<String> {
    let book = arguments.get("book_id").and_then(Value::as_str).filter(|book| is_book_id(book))?;
    let file = file_meant(arguments).filter(|path| is_book_path(path));
    Some(file.map_or_else(|| format!("books/{book}"), |path| format!("books/{book}/{path}")))
}

/// An asset, as two tools show it.
#[derive(Serialize, JsonSchema)]
struct AssetView {
    /// Where the asset can be downloaded
    cdn_url: String,
    /// Size in bytes
    file_size: u64,
    /// MIME type
    mime_type: String,
    /// When it was uploaded
    upload_timestamp: String,
    /// Who uploaded it
    uploaded_by_agent_id: String,
    /// images, slides, videos or audio
    asset_type: String,
    /// The name it is stored under
    filename: String,
    /// Full path of the asset
    path: String,
    /// SHA-256 of its content
    sha256: String,
}

/// Assets with their addresses.
fn views(context: &Context<'_>, assets: Vec<Asset>) -> Result<Vec<AssetView>, ToolError> {
    let urls = context.library.asset_urls(context.caller, &assets, context.upload_door)?;
    let view = |(asset, cdn_url): (Asset, String)| AssetView {
        cdn_url,
        file_size: asset.size,
        upload_timestamp: asset.uploaded_at.to_string(),
        path: asset.full_path(),
        mime_type: asset.mime,
        uploaded_by_agent_id: asset.uploaded_by,
        asset_type: asset.kind,
        filename: asset.name,
        sha256: asset.hash.to_string(),
    };
    Ok(assets.into_iter().zip(urls).map(view).collect())
}
