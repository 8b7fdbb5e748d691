//! `page_image`: one page of a PDF document as an image.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::{Attachment, reply},
    schema,
};

/// Width of an image when none is given.
const USUAL_WIDTH: u32 = 1_000;

pub(crate) const TOOL: Tool = Tool {
    name: "page_image",
    title: "Draw a page",
    description: "Draw one page of a PDF document as a PNG image, to see figures, tables and formulas as they were set. \
                  Use read_text for the text of the pages, and resolve to cut pages out as a PDF document.",
    family: Family::Store,
    audience: Audience::Personal,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{"document_id": "550e8400-e29b-41d4-a716-446655440006", "page": 1, "width": 300}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let arguments: Arguments = arguments::read(arguments)?;
        let of = (arguments.document_id.as_str(), arguments.hash.as_deref());
        let size = (arguments.page, arguments.width.unwrap_or(USUAL_WIDTH));
        let image = context.library.page_image(context.caller, of, size, context.call)?;
        let mut answer = reply(&Reply {
            page: arguments.page,
            width: image.width,
            height: image.height,
            size: image.png.len() as u64,
            mime_type: "image/png",
        })?;
        let data = STANDARD.encode(image.png);
        answer.attachments.push(Attachment::Image { mime: "image/png".into(), data });
        Ok(answer)
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Document UUID
    document_id: String,
    /// Page, from 1
    #[schemars(range(min = 1, max = 10_000))]
    page: u32,
    /// Width of the image in pixels
    #[schemars(range(min = 32, max = 2_400), extend("default" = 1_000))]
    width: Option<u32>,
    /// Hash of an older version, or its beginning
    hash: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// The page
    page: u32,
    /// Width of the image in pixels
    width: u32,
    /// Height of the image in pixels
    height: u32,
    /// Size of the image in bytes
    size: u64,
    /// image/png
    mime_type: &'static str,
}
