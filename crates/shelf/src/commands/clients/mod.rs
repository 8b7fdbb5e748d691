//! `client`: sets up the programs that agents run in, and says whether they are.

mod add;
mod file;
mod jsonc;
mod probe;
mod splice;
mod table;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use shelf_engine::maintain::{Advice, Diagnosis};

use self::table::{CLIENTS, Client, Connection};
use super::running;
use crate::{
    cli::setup,
    outcome::Outcome,
    output::{Output, Tone},
    settings::Settings,
};

/// The name of the server in the settings of clients, unless another is given.
const USUAL_NAME: &str = "shelfmark";

pub(super) fn run(command: &setup::Client, settings: &Settings, output: &Output) -> Outcome {
    match command {
        setup::Client::Add(command) => add::run(command, settings, output),
        setup::Client::List { no_check } => list(*no_check, settings, output),
    }
}

/// What is known of one client.
struct State {
    client: &'static Client,
    path: Option<PathBuf>,
    is_installed: bool,
    connection: Option<Connection>,
    trouble: Option<String>,
}

fn states() -> Vec<State> {
    let look = |client: &'static Client| {
        let path = client.user_file();
        let found = path.as_deref().map(|path| file::server(client, path, USUAL_NAME));
        let (server, trouble) = match found {
            Some(Ok(server)) => (server, None),
            Some(Err(error)) => (None, Some(error.message)),
            None => (None, None),
        };
        let connection = server.as_ref().and_then(Client::connection);
        State { client, path, is_installed: client.is_installed(USUAL_NAME), connection, trouble }
    };
    CLIENTS.iter().map(look).collect()
}

/// Asks the server that the settings name. Where it does not answer although the library is served, that is worth saying.
fn ask(connection: &Connection, library: Option<&Path>) -> Result<String, String> {
    probe::ask(connection).map_err(|why| {
        let Connection::Http { url, .. } = connection else { return why };
        let running = library.map(running::of).unwrap_or_default();
        match running.first() {
            Some(server) if !running.iter().any(|found| url.contains(&found.address.to_string())) => {
                format!(
                    "{why}; this library is served at http://{}: run `shelf client add` again",
                    server.address
                )
            }
            _ => why,
        }
    })
}

fn list(no_check: bool, settings: &Settings, output: &Output) -> Outcome {
    let states = states();
    let library = settings.data_dir().ok();
    let works = |state: &State| match (&state.connection, no_check) {
        (Some(connection), false) => Some(ask(connection, library.as_deref())),
        _ => None,
    };
    let tried: Vec<Option<Result<String, String>>> = states.iter().map(works).collect();
    if output.json {
        let all: Vec<Value> =
            states.iter().zip(&tried).map(|(state, tried)| view(state, tried.as_ref())).collect();
        return output.print_json(&json!({ "clients": all }));
    }
    let row = |(state, tried): (&State, &Option<Result<String, String>>)| {
        let set_up = match &state.connection {
            Some(Connection::Stdio { .. }) => "stdio",
            Some(Connection::Http { .. }) => "HTTP",
            None if state.trouble.is_some() => "?",
            None => "no",
        };
        let works = match (tried, &state.trouble) {
            (Some(Ok(version)), _) => format!("yes: {version}"),
            (Some(Err(why)), _) => format!("no: {why}"),
            (None, Some(trouble)) => trouble.clone(),
            (None, None) => String::new(),
        };
        let installed = if state.is_installed { "yes" } else { "no" };
        vec![state.client.word(), installed.to_owned(), set_up.to_owned(), works]
    };
    let rows: Vec<Vec<String>> = states.iter().zip(&tried).map(row).collect();
    output.table(&["CLIENT", "INSTALLED", "SET UP", "WORKS"], &rows)?;
    output.say(Tone::Good, "set one up with: shelf client add CLIENT");
    Ok(())
}

fn view(state: &State, tried: Option<&Result<String, String>>) -> Value {
    let transport = match &state.connection {
        Some(Connection::Stdio { .. }) => json!("stdio"),
        Some(Connection::Http { .. }) => json!("http"),
        None => Value::Null,
    };
    json!({
        "client": state.client.word(),
        "title": state.client.title,
        "installed": state.is_installed,
        "settings_file": state.path,
        "transport": transport,
        "works": tried.map(Result::is_ok),
        "problem": tried.and_then(|tried| tried.as_ref().err()).or(state.trouble.as_ref()),
    })
}

/// What `doctor` says of the clients that are set up.
pub(super) fn diagnosis(settings: &Settings) -> Vec<Diagnosis> {
    let library = settings.data_dir().ok();
    let line = |advice, text| Diagnosis { subject: "clients", advice, text };
    let mut lines = Vec::new();
    for state in states() {
        let title = state.client.title;
        match state.connection.as_ref().map(|connection| ask(connection, library.as_deref())) {
            Some(Ok(version)) => {
                lines.push(line(Advice::Fine, format!("{title}: set up, {version} answers")))
            }
            Some(Err(why)) => lines.push(line(Advice::Problem, format!("{title}: set up, but {why}"))),
            None => {}
        }
    }
    if lines.is_empty() {
        let text = "none is set up; `shelf client list` shows which can be".to_owned();
        lines.push(line(Advice::Note, text));
    }
    lines
}
