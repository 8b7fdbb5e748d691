//! `upload_asset`: stores an asset, or gives a URL to send a large one to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shelf_engine::UploadRequest;

use crate::{
    Family, Hints, Tool, arguments,
    family::ToolError,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "upload_asset",
    title: "Upload asset",
    description: "Upload a binary asset of a book. Below 10 MB, send it as base64 in binary_data. For anything larger give file_size instead: the reply has an upload_url that takes the raw bytes by HTTP PUT, once, without a token. The same name again makes a new version.",
    family: Family::Books,
    audience: Audience::Personal,
    access: Access::Write,
    hints: Hints { read_only: false, destructive: true, idempotent: false, open_world: false },
    example: r#"{"book_id": "ai-native-python", "asset_type": "images", "filename": "diagram.png", "binary_data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let Arguments { book_id, asset_type, filename, binary_data, file_size } = arguments::read(arguments)?;
        let (library, caller) = (context.library, context.caller);
        let request = UploadRequest { book: book_id, kind: asset_type, filename, binary_data, file_size };
        match library.upload_asset(caller, &request, context.call)? {
            Ok(asset) => {
                let cdn_url =
                    library.asset_urls(caller, std::slice::from_ref(&asset), context.upload_door)?.pop();
                reply(&Reply {
                    cdn_url: cdn_url.unwrap_or_default(),
                    file_size: Some(asset.size),
                    sha256: Some(asset.hash.to_string()),
                    path: asset.full_path(),
                    mime_type: Some(asset.mime),
                    ..Reply::new("direct")
                })
            }
            Err(ticket) => {
                let base = match library.address_for(caller) {
                    Some(base) => base,
                    None => (context.upload_door)().map_err(|what| {
                        ToolError::from(shelf_engine::Error::Unavailable {
                            what,
                            hint: "start `shelf serve --http` and set http.public_url".into(),
                        })
                    })?,
                };
                reply(&Reply {
                    cdn_url: library.awaited_url(caller, &base, &ticket)?,
                    upload_url: Some(format!("{base}/uploads/{}", ticket.text)),
                    expires_at: Some(ticket.expires_at.to_string()),
                    upload_id: Some(ticket.id),
                    path: ticket.path,
                    ..Reply::new("presigned")
                })
            }
        }
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Book identifier
    book_id: String,
    /// One of: images, slides, videos, audio
    asset_type: String,
    /// Original filename (sanitized on the server)
    filename: String,
    /// Base64-encoded binary content, for less than 10 MB
    binary_data: Option<String>,
    /// File size in bytes, for an upload to a URL
    #[schemars(range(min = 1))]
    file_size: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// success
    status: &'static str,
    /// direct: the asset is stored. presigned: its content is awaited at upload_url
    method: &'static str,
    /// Where the asset can be downloaded, once it is stored
    cdn_url: String,
    /// Size in bytes
    #[serde(skip_serializing_if = "Option::is_none")]
    file_size: Option<u64>,
    /// MIME type
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<String>,
    /// Full path of the asset
    path: String,
    /// SHA-256 of the content
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    /// Takes the raw content by HTTP PUT, once
    #[serde(skip_serializing_if = "Option::is_none")]
    upload_url: Option<String>,
    /// Until when upload_url works
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    /// Identifies the upload
    #[serde(skip_serializing_if = "Option::is_none")]
    upload_id: Option<String>,
}

impl Reply {
    const fn new(method: &'static str) -> Self {
        Self {
            status: "success",
            method,
            cdn_url: String::new(),
            file_size: None,
            mime_type: None,
            path: String::new(),
            sha256: None,
            upload_url: None,
            expires_at: None,
            upload_id: None,
        }
    }
}
