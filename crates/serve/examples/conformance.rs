//! The fixture of the official conformance suite: the real server over HTTP, with the suite's tools, prompts and resources
//! beside the library's own. `cargo xtask conformance` builds and starts it; it needs the feature `conformance`.
//!
//! Usage: `conformance FOLDER ADDRESS`, where FOLDER becomes the library and ADDRESS is a loopback address.
#![allow(clippy::print_stderr, reason = "the address is read by whoever started it")]

use std::{error::Error, net::SocketAddr, path::Path};

use shelf_engine::{Library, Options};
use shelf_serve::{
    App, BLOCKING_THREADS, Setup, Timeouts,
    http::{ConnectionLimits, HttpLimits, Server, Settings},
};
use shelf_tools::{Limits, policy::Selection, prompts::Prompts};
use tokio_util::sync::CancellationToken;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, address] = arguments.as_slice() else {
        return Err("usage: conformance FOLDER ADDRESS".into());
    };
    let listen: SocketAddr = address.parse()?;
    if !listen.ip().is_loopback() {
        return Err("the fixture needs no token, so it listens on loopback addresses only".into());
    }
    let setup = Setup {
        selection: Selection::default(),
        limits: Limits::default(),
        timeouts: Timeouts { call: None },
        prompts: Prompts::default(),
        give_back: || {},
        is_single: false,
    };
    let app = App::new(Library::open(Path::new(folder), Options::default())?, setup);
    let settings = Settings {
        listen,
        other_ports: Vec::new(),
        admin_listen: None,
        admin_required: false,
        no_auth: true,
        allowed_hosts: Vec::new(),
        allowed_origins: Vec::new(),
        limits: HttpLimits::default(),
        connections: ConnectionLimits { total: 256, per_address: 256 },
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .max_blocking_threads(BLOCKING_THREADS)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let server =
            Server::bind(app, settings).await.map_err(|error| format!("cannot listen: {}", error.source))?;
        eprintln!("listening on http://{}/mcp", server.address()?);
        server.serve(CancellationToken::new()).await?;
        Ok(())
    })
}
