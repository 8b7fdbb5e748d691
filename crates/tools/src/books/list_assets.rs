//! `list_assets`: lists the assets of a book.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply_list,
    schema,
};

use super::{AssetView, views};

pub(crate) const TOOL: Tool = Tool {
    name: "list_assets",
    title: "List assets",
    description: "List the assets of a book, optionally of one type only. A book that does not exist has none.",
    family: Family::Books,
    audience: Audience::Personal,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{"book_id": "ai-native-python", "asset_type": "images"}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Vec<AssetView>>,
    run: |context, arguments| {
        let Arguments { book_id, asset_type } = arguments::read(arguments)?;
        let (library, caller) = (context.library, context.caller);
        let assets = library.assets(caller, &book_id, asset_type.as_deref(), context.call)?;
        reply_list(&views(context, assets)?)
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Book identifier
    book_id: String,
    /// One of: images, slides, videos, audio; all types when it is left out
    asset_type: Option<String>,
}
