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
    let urls = context.library.asset_urls(context.caller, &assets)?;
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
