//! `open`: the web console in a browser, signed in as the owner of the library.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream},
    process::{Command, Stdio},
    time::Duration,
};

use shelf_engine::Library;

use super::{open_with, serve};
use crate::{cli, outcome::Outcome, output::Output, settings::Settings};

/// How long a server may take to accept a connection.
const PATIENCE: Duration = Duration::from_millis(500);

pub(super) fn run(print: bool, settings: &Settings, output: &Output) -> Outcome {
    let listen = reachable(settings.address("http.listen")?);
    if TcpStream::connect_timeout(&listen, PATIENCE).is_ok() {
        return show(&open_with(settings, None)?, listen, print, output);
    }
    let command = cli::Serve { http: Some(String::new()), ..cli::Serve::default() };
    let then = |app: &shelf_serve::App, address| show(&app.library, reachable(address), print, output);
    serve::run(&command, Some(&then), settings, output)
}

/// The address at which a server that listens everywhere is reached from this machine.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address
}

/// Opens the link in a browser, or prints it when that is asked for or there is none.
fn show(library: &Library, address: SocketAddr, print: bool, output: &Output) -> Outcome {
    let link = format!("http://{address}/open/{}", library.console_link()?.reveal());
    if print || !launch(&link) {
        return output.print(&link);
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
