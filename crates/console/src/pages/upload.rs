//! Storing files from the browser.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use maud::{Markup, html};
use serde_json::json;

use super::{Answer, ask, invalid};
use crate::{Host, Reply, Request, frame};

/// Where files can be dropped. The script sends each file by itself and shows how far it is.
pub(super) fn area(host: &dyn Host, collection: &str, folder: &str) -> Markup {
    let command = frame::has_commands(host).then_some("shelf add");
    html! {
        div.drop id="upload" tabindex="-1" data-drop="" data-most=(MOST) data-command=[command] data-collection=(collection) data-folder=(folder) hidden {
            p { strong { "Drop files or folders here" } " or "
                label.link { "choose files" input type="file" multiple hidden data-pick=""; } ", "
                label.link { "choose a folder" input type="file" webkitdirectory hidden data-pick=""; } "." }
            p.note { "Up to " (MOST >> 20) " MiB each" @if let Some(command) = command { "; larger files are stored with " code { (command) } } "." }
            (progress())
        }
    }
}

/// Bytes of a file that a browser may send.
const MOST: usize = shelf_base::bounds::REQUEST_BYTES;

/// How far the files are, in all and one by one, and a way to stop.
pub(super) fn progress() -> Markup {
    html! {
        p data-total="" role="status" hidden { progress max="1" value="0" {} " " span {} " " button type="button" data-stop="" { "Stop" } }
        ul.progress data-progress="" {}
    }
}

/// Takes one file: its bytes are the body.
pub(super) fn take(host: &dyn Host, request: &Request) -> Answer {
    let name = request.query("name").ok_or_else(|| invalid("the file has no name"))?;
    let collection = request.query("collection").unwrap_or("default");
    let content = STANDARD.encode(&request.body);
    let stored = ask(
        host,
        "add",
        json!({ "content": content, "encoding": "base64", "name": name, "collection": collection }),
    )?;
    Ok(Reply::json(200, &stored))
}
