//! `client add`: writes the settings of clients, and takes them out again.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use shelf_base::Kind;
use shelf_engine::TokenRow;

use super::{
    super::{existing, must_exist, open, running},
    file,
    table::{Client, Connection},
};
use crate::{
    cli::setup,
    outcome::{CliError, Outcome, Setbacks},
    output::{Output, Tone},
    settings::Settings,
};

/// Sets up every client that was named; one that fails does not stop the others.
pub(super) fn run(command: &setup::Add, settings: &Settings, output: &Output) -> Outcome {
    let mut setbacks = Setbacks::new(command.clients.len());
    let mut replies = Vec::new();
    for name in &command.clients {
        let Some(client) = Client::of(*name) else { continue };
        match one(client, command, settings, output) {
            Ok(reply) => replies.push(reply),
            Err(error) => setbacks.take(&client.word(), error, output)?,
        }
    }
    if output.json {
        output.print_json(&json!({ "clients": replies }))?;
    }
    setbacks.end(if command.remove {
        "some clients were not cleared"
    } else {
        "some clients were not set up"
    })
}

fn one(client: &Client, command: &setup::Add, settings: &Settings, output: &Output) -> Outcome<Value> {
    if command.http.is_some() && !client.takes_http {
        let message = format!("{} cannot send a token over HTTP", client.title);
        return Err(CliError::new(Kind::Invalid, message)
            .hint("leave --http out: it then starts its own server on the same library, next to any other"));
    }
    let path = path_of(client, command)?;
    if command.remove {
        return remove(client, &path, &command.name, settings, output);
    }
    let before = if command.print {
        None
    } else {
        file::must_be_plain(client, &path)?;
        file::server(client, &path, &command.name)?
    };
    let is_installed = command.project.is_some() || client.is_installed(&command.name);
    let connection = connection(client, command, settings, output)?;
    let server = client.server(&connection);
    let reply = |changed: bool| json!({ "client": client.word(), "settings_file": path, "changed": changed });
    if command.print {
        if output.json {
            let mut reply = reply(false);
            reply["settings"] = json!({ client.key: { command.name.as_str(): server } });
            return Ok(reply);
        }
        output.say(Tone::Good, &format!("{}: add this to {}", client.title, path.display()));
        output.print(file::snippet(client, &command.name, &server)?.trim_end())?;
        say_variables(&connection, settings, output);
        return Ok(reply(false));
    }
    let changed = file::change(client, &path, &command.name, Some(&server))?;
    let kept = match &connection {
        Connection::Http { token, .. } => token.as_deref(),
        Connection::Stdio { .. } => None,
    };
    retire(client, before.as_ref(), kept, settings)?;
    let verb = if changed { "written to" } else { "were already in" };
    output.say(Tone::Good, &format!("{}: settings {verb} {}", client.title, path.display()));
    if !is_installed {
        let note =
            format!("{} does not seem to be installed here; it finds the settings once it is", client.title);
        output.say(Tone::Warning, &note);
    } else if changed {
        output.say(Tone::Good, "restart the client, then ask it what is in your library");
    }
    say_variables(&connection, settings, output);
    Ok(reply(changed))
}

/// What the settings do not contain, because it is secret or concerns more than this program.
fn say_variables(connection: &Connection, settings: &Settings, output: &Output) {
    let variables = settings.variables(|name| std::env::var(name).ok());
    if matches!(connection, Connection::Stdio { .. }) && !variables.is_empty() {
        let names = variables.join(", ");
        output.say(Tone::Warning, &format!("the client must have these variables when it starts: {names}"));
    }
}

fn remove(client: &Client, path: &Path, name: &str, settings: &Settings, output: &Output) -> Outcome<Value> {
    let before = file::server(client, path, name)?;
    if before.is_none() || !file::change(client, path, name, None)? {
        let message = format!("{}: there is no server '{name}' in {}", client.title, path.display());
        return Err(
            CliError::new(Kind::NotFound, message).hint("`shelf client list` shows which clients are set up")
        );
    }
    let revoked = retire(client, before.as_ref(), None, settings)?;
    let token = if revoked { ", and its token was revoked" } else { "" };
    output.say(Tone::Good, &format!("{}: '{name}' removed from {}{token}", client.title, path.display()));
    Ok(json!({ "client": client.word(), "settings_file": path, "changed": true, "token_revoked": revoked }))
}

/// Revokes the token that the settings held before, if it was made for this client by this library; a token that somebody
/// brought may be used elsewhere too.
fn retire(client: &Client, before: Option<&Value>, kept: Option<&str>, settings: &Settings) -> Outcome<bool> {
    let Some(Connection::Http { token: Some(token), .. }) = before.and_then(Client::connection) else {
        return Ok(false);
    };
    if kept == Some(token.as_str()) || must_exist(settings).is_err() {
        return Ok(false);
    }
    let library = existing(settings)?;
    let Some(id) = library.verify_token(&token).ok().and_then(|pass| pass.token()) else { return Ok(false) };
    let is_own = |found: &TokenRow| found.token.id == id && found.token.label == client.word();
    Ok(library.local_tokens()?.iter().any(is_own) && library.revoke_local_token(id)?)
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
fn connection(
    client: &Client,
    command: &setup::Add,
    settings: &Settings,
    output: &Output,
) -> Outcome<Connection> {
    let Some(url) = &command.http else {
        let program = std::env::current_exe()?;
        let mut arguments = settings.flags()?;
        arguments.push("serve".to_owned());
        return Ok(Connection::Stdio { command: program.display().to_string(), arguments });
    };
    let url = match url.as_str() {
        "" => own_url(command.print, settings, output)?,
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

/// Where this library is served, or will be: the configured address, unless somebody else has it.
fn own_url(only_shown: bool, settings: &Settings, output: &Output) -> Outcome<String> {
    let configured = running::reachable(settings.address("http.listen")?);
    if let Some(server) = running::best(&settings.data_dir()?, Some(configured)) {
        if server.address != configured {
            let note = format!(
                "this library is served at {} and not at its usual address {configured}; if it is served elsewhere later, \
                 run this again. `shelf serve --http ADDR` chooses an address",
                server.address
            );
            output.say(Tone::Warning, &note);
        }
        return Ok(format!("http://{}/mcp", server.address));
    }
    if !only_shown && running::is_shelfmark(configured).is_some() {
        let message = format!("this library is not served, and {configured} is in use by another program");
        return Err(CliError::new(Kind::Conflict, message)
            .hint("start its server first with `shelf serve --http`, or name one: --http URL"));
    }
    if !only_shown {
        output
            .say(Tone::Warning, "this library is not served now: start its server with `shelf serve --http`");
    }
    Ok(format!("http://{configured}/mcp"))
}
