//! `open`: the web console in a browser, signed in as the owner of the library.

use std::{
    net::SocketAddr,
    process::{Command, Stdio},
};

use serde_json::json;
use shelf_engine::Library;

use super::{
    open_with,
    running::{self, reachable},
    serve,
};
use crate::{cli, outcome::Outcome, output::Output, settings::Settings};

pub(super) fn run(print: bool, settings: &Settings, output: &Output) -> Outcome {
    if let Some(server) = running::best(&settings.data_dir()?, settings.address("http.listen").ok()) {
        return show(&open_with(settings, None)?, server.address, print, output);
    }
    let command = cli::Serve { http: Some(String::new()), ..cli::Serve::default() };
    let then = |app: &shelf_serve::App, address| show(&app.library, reachable(address), print, output);
    serve::run(&command, Some(&then), settings, output)
}

/// Opens the link in a browser, or prints it when that is asked for or there is none.
fn show(library: &Library, address: SocketAddr, print: bool, output: &Output) -> Outcome {
    let link = format!("http://{address}/open/{}", library.console_link()?.reveal());
    if print || !launch(&link) {
        return if output.json { output.print_json(&json!({ "url": link })) } else { output.print(&link) };
    }
    output.tell(&format!("Opened http://{address}/ in the browser."));
    Ok(())
}

fn launch(link: &str) -> bool {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(program);
    command.arg(link).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
