//! `get_asset`: describes an asset.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

use super::{AssetView, views};

pub(crate) const TOOL: Tool = Tool {
    name: "get_asset",
    title: "Get asset",
    description: "Get the metadata of an asset, with the URL that it can be downloaded from. The filename is the one it was uploaded with or the one it is stored under; list_assets shows the latter.",
    family: Family::Books,
    audience: Audience::Personal,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{"book_id": "ai-native-python", "asset_type": "images", "filename": "diagram.png"}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<AssetView>,
    run: |context, arguments| {
        let Arguments { book_id, asset_type, filename } = arguments::read(arguments)?;
        let place = (book_id.as_str(), asset_type.as_str(), filename.as_str());
        let asset = context.library.asset(context.caller, place, context.call)?;
        let view = views(context, vec![asset])?.pop();
        reply(&view.ok_or(crate::family::ToolError::Defect)?)
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Book identifier
    book_id: String,
    /// One of: images, slides, videos, audio
    asset_type: String,
    /// Original or stored filename
    filename: String,
}
