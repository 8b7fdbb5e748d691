//! `client`: sets up the programs that agents run in, and says whether they are.

mod file;
mod probe;
mod table;

use std::path::PathBuf;

use serde_json::{Value, json};
use shelf_base::Kind;
use shelf_engine::maintain::{Advice, Diagnosis};

use self::table::{CLIENTS, Client, Connection};
use super::open;
use crate::{
    cli::setup,
    outcome::{CliError, Outcome},
    output::{Output, Tone},
    settings::Settings,
};

/// The name of the server in the settings of clients, unless another is given.
const USUAL_NAME: &str = "shelfmark";

pub(super) fn run(command: &setup::Client, settings: &Settings, output: &Output) -> Outcome {
    match command {
        setup::Client::Add(command) => add(command, settings, output),
        setup::Client::List { no_check } => list(*no_check, output),
    }
}

fn add(command: &setup::Add, settings: &Settings, output: &Output) -> Outcome {
    for name in &command.clients {
        let Some(client) = Client::of(*name) else { continue };
        if command.http.is_some() && !client.takes_http {
            let message = format!("{} cannot send a token over HTTP", client.title);
            return Err(CliError::new(Kind::Invalid, message).hint(
                "leave --http out: it then starts its own server on the same library, next to any other",
            ));
        }
        let path = path_of(client, command)?;
        if command.remove {
            remove(client, &path, &command.name, output)?;
            continue;
        }
        let connection = connection(client, command, settings)?;
        let server = client.server(&connection);
        if command.print {
            output.say(Tone::Good, &format!("{}: add this to {}", client.title, path.display()));
            output.print(file::snippet(client, &command.name, &server)?.trim_end())?;
            continue;
        }
        let changed = file::change(client, &path, &command.name, Some(&server))?;
        let verb = if changed { "written to" } else { "were already in" };
        output.say(Tone::Good, &format!("{}: settings {verb} {}", client.title, path.display()));
        if changed {
            output.say(Tone::Good, "restart the client, then ask it what is in your library");
        }
    }
    Ok(())
}

fn remove(client: &Client, path: &std::path::Path, name: &str, output: &Output) -> Outcome {
    if file::change(client, path, name, None)? {
        output.say(Tone::Good, &format!("{}: '{name}' removed from {}", client.title, path.display()));
        return Ok(());
    }
    let message = format!("{}: there is no server '{name}' in {}", client.title, path.display());
    Err(CliError::new(Kind::NotFound, message).hint("`shelf client list` shows which clients are set up"))
}

fn path_of(client: &Client, command: &setup::Add) -> Outcome<PathBuf> {
    match (&command.project, client.project_file) {
        (Some(folder), Some(file)) => Ok(folder.join(file)),
        (Some(_), None) => {
            let message = format!("{} has no settings of its own for a project", client.title);
            Err(CliError::new(Kind::Invalid, message).hint("leave --project out"))
        }
        (None, _) => client
            .user_file()
            .ok_or_else(|| CliError::new(Kind::Unavailable, "this system defines no home folder; set HOME")),
    }
}

/// How the client will reach the library.
fn connection(client: &Client, command: &setup::Add, settings: &Settings) -> Outcome<Connection> {
    let Some(url) = &command.http else {
        let program = std::env::current_exe()?;
        let mut arguments = Vec::new();
        if !settings.is_default("data_dir") {
            arguments.extend(["--data-dir".to_owned(), settings.data_dir()?.display().to_string()]);
        }
        arguments.push("serve".to_owned());
        return Ok(Connection::Stdio { command: program.display().to_string(), arguments });
    };
    let url = match url.as_str() {
        "" => format!("http://{}/mcp", settings.address("http.listen")?),
        given if !given.starts_with("http://") && !given.starts_with("https://") => {
            let message = format!("'{given}' is not a URL");
            return Err(
                CliError::new(Kind::Invalid, message).hint("for example: --http http://127.0.0.1:7433/mcp")
            );
        }
        given => given.to_owned(),
    };
    let token = match &command.token {
        Some(token) => token.clone(),
        None if command.print => "YOUR_TOKEN".to_owned(),
        None => {
            let minted = open(settings)?.mint_local_token(&client.word(), None)?;
            minted.text.reveal().to_owned()
        }
    };
    Ok(Connection::Http { url, token: Some(token) })
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
        State { client, path, is_installed: client.is_installed(), connection, trouble }
    };
    CLIENTS.iter().map(look).collect()
}

fn list(no_check: bool, output: &Output) -> Outcome {
    let states = states();
    let works = |state: &State| match (&state.connection, no_check) {
        (Some(connection), false) => Some(probe::ask(connection)),
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
pub(super) fn diagnosis() -> Vec<Diagnosis> {
    let line = |advice, text| Diagnosis { subject: "clients", advice, text };
    let mut lines = Vec::new();
    for state in states() {
        let title = state.client.title;
        match state.connection.as_ref().map(probe::ask) {
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
