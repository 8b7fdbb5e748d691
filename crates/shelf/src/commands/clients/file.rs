//! Changes one server in a client's settings file and leaves everything else as it is.

use std::{
    fs,
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
};

use serde_json::{Map, Value};
use shelf_base::Kind;

use super::{
    jsonc, splice,
    table::{Client, Format},
};
use crate::outcome::{CliError, Outcome};

/// The server of this name in the file, if there is one.
pub(super) fn server(client: &Client, path: &Path, name: &str) -> Outcome<Option<Value>> {
    let Some(text) = read(path)? else { return Ok(None) };
    let whole = match client.format {
        Format::Json => parse_json(path, &jsonc::plain(&text))?,
        Format::Toml => parse_toml(path, &text)?,
    };
    Ok(whole.get(client.key).and_then(|servers| servers.get(name)).cloned())
}

/// Whether settings hold anything beside the server of this name: then somebody else wrote them.
pub(super) fn holds_others(client: &Client, text: &str, name: &str) -> bool {
    let whole = match client.format {
        Format::Json => parse_json(Path::new(""), text),
        Format::Toml => parse_toml(Path::new(""), text),
    };
    let Ok(Value::Object(mut whole)) = whole else { return true };
    if let Some(servers) = whole.get_mut(client.key).and_then(Value::as_object_mut) {
        servers.remove(name);
        if servers.is_empty() {
            whole.remove(client.key);
        }
    }
    !whole.is_empty()
}

/// Makes sure that the file can be changed, before anything is made for it.
pub(super) fn must_be_plain(client: &Client, path: &Path) -> Outcome {
    let Some(text) = read(path)? else { return Ok(()) };
    match client.format {
        Format::Json => parse_json(path, &text).map(drop).map_err(left_as_it_is),
        Format::Toml => parse_toml(path, &text).map(drop),
    }
}

/// Sets the server, or removes it; says whether the file changed.
pub(super) fn change(client: &Client, path: &Path, name: &str, server: Option<&Value>) -> Outcome<bool> {
    let before = read(path)?;
    let text = before.as_deref().unwrap_or_default();
    let after = match client.format {
        Format::Json => changed_json(client, path, text, name, server)?,
        Format::Toml => changed_toml(client, path, text, name, server)?,
    };
    if before.is_none() && server.is_none() || before.as_deref() == Some(after.as_str()) {
        return Ok(false);
    }
    write(path, &after)?;
    Ok(true)
}

/// What would be written into an empty file: what `--print` shows.
pub(super) fn snippet(client: &Client, name: &str, server: &Value) -> Outcome<String> {
    let path = Path::new("");
    match client.format {
        Format::Json => changed_json(client, path, "", name, Some(server)),
        Format::Toml => changed_toml(client, path, "", name, Some(server)),
    }
}

fn read(path: &Path) -> Outcome<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => {
            Err(CliError::new(Kind::of_io(&error), format!("cannot read {}: {error}", path.display())))
        }
    }
}

fn parse_json(path: &Path, text: &str) -> Outcome<Value> {
    if text.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    match serde_json::from_str(text) {
        Ok(whole @ Value::Object(_)) => Ok(whole),
        _ => {
            let message = format!("{} is not plain JSON (it may have comments)", path.display());
            Err(CliError::new(Kind::Invalid, message))
        }
    }
}

/// The error about a file that should have been changed.
fn left_as_it_is(error: CliError) -> CliError {
    let message = format!("{}; it was left as it is", error.message);
    CliError { message, ..error }.hint("add the settings by hand: --print shows them")
}

fn changed_json(
    client: &Client,
    path: &Path,
    text: &str,
    name: &str,
    server: Option<&Value>,
) -> Outcome<String> {
    let whole = parse_json(path, text).map_err(left_as_it_is)?;
    let Some(server) = server else {
        return Ok(splice::removed(text, client.key, name).unwrap_or_else(|| text.to_owned()));
    };
    if whole.get(client.key).and_then(|servers| servers.get(name)) == Some(server) {
        return Ok(text.to_owned());
    }
    splice::set(text, client.key, name, server).ok_or_else(|| {
        let message = format!("'{}' in {} is not an object", client.key, path.display());
        left_as_it_is(CliError::new(Kind::Invalid, message))
    })
}

fn parse_toml(path: &Path, text: &str) -> Outcome<Value> {
    let table: toml::Table = text.parse().map_err(|error| {
        CliError::new(Kind::Invalid, format!("{} is not valid TOML: {error}", path.display()))
    })?;
    Ok(serde_json::to_value(table).map_err(|error| anyhow::anyhow!(error))?)
}

/// Works on the text, so that comments and order stay: the server's own tables are taken out and written again at the end.
fn changed_toml(
    client: &Client,
    path: &Path,
    text: &str,
    name: &str,
    server: Option<&Value>,
) -> Outcome<String> {
    parse_toml(path, text)?;
    let own = format!("{}.{name}", client.key);
    let mut kept = String::new();
    let mut is_own = false;
    for line in text.split_inclusive('\n') {
        if let Some(table) = line.trim().strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            let table: String = table.chars().filter(|sign| !" \t\"'[".contains(*sign)).collect();
            is_own = table == own || table.starts_with(&format!("{own}."));
        }
        if !is_own {
            kept.push_str(line);
        }
    }
    let Some(server) = server else { return Ok(kept) };
    let mut servers = toml::Table::new();
    let as_toml = toml::Value::try_from(server).map_err(|error| anyhow::anyhow!(error))?;
    servers.insert(name.to_owned(), as_toml);
    let mut whole = toml::Table::new();
    whole.insert(client.key.to_owned(), toml::Value::Table(servers));
    if !kept.is_empty() {
        kept = format!("{}\n\n", kept.trim_end());
    }
    kept.push_str(&toml::to_string(&whole).map_err(|error| anyhow::anyhow!(error))?);
    let written = parse_toml(path, &kept)?;
    if written[client.key][name] != *server {
        let message = format!("{} defines {own} in a way that cannot be changed here", path.display());
        return Err(
            CliError::new(Kind::Invalid, message).hint("change it by hand: --print shows the settings")
        );
    }
    Ok(kept)
}

/// Writes the file whole or not at all, readable for its owner only when it is new: it may hold a token. A link is
/// followed, because settings are often links into a folder that is kept elsewhere.
fn write(path: &Path, text: &str) -> Outcome {
    let failed = |error: std::io::Error| {
        CliError::new(Kind::of_io(&error), format!("cannot write {}: {error}", path.display()))
    };
    let target: PathBuf = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if let Some(folder) = target.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let permissions = fs::metadata(&target).ok().map(|found| found.permissions());
    let temporary = target.with_extension(format!("{}.shelf", std::process::id()));
    let written = || {
        use std::os::unix::fs::OpenOptionsExt;
        let mut file = fs::OpenOptions::new().create_new(true).write(true).mode(0o600).open(&temporary)?;
        file.write_all(text.as_bytes())?;
        if let Some(permissions) = permissions.clone() {
            file.set_permissions(permissions)?;
        }
        file.sync_all()?;
        fs::rename(&temporary, &target)
    };
    written().map_err(|error| {
        let _ = fs::remove_file(&temporary);
        failed(error)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::setup::ClientName;

    fn client(name: ClientName) -> &'static Client {
        Client::of(name).unwrap()
    }

    #[test]
    fn other_settings_stay_and_removing_undoes_adding() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/mcp.json");
        let (cursor, server) = (client(ClientName::Cursor), json!({ "command": "shelf", "args": ["serve"] }));
        assert!(change(cursor, &path, "shelfmark", Some(&server)).unwrap());
        assert!(!change(cursor, &path, "shelfmark", Some(&server)).unwrap(), "nothing changes twice");
        let before = "{\n  \"zebra\": 1,\n  \"mcpServers\": {\n    \"other\": {\n      \"command\": \"x\"\n    }\n  }\n}\n";
        fs::write(&path, before).unwrap();
        assert!(change(cursor, &path, "shelfmark", Some(&server)).unwrap());
        assert_eq!(super::server(cursor, &path, "shelfmark").unwrap(), Some(server));
        assert!(super::server(cursor, &path, "other").unwrap().is_some());
        assert!(change(cursor, &path, "shelfmark", None).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), before);
    }

    #[test]
    fn a_client_that_has_nothing_but_our_settings_is_no_sign() {
        let cursor = client(ClientName::Cursor);
        let of = |text: &str| holds_others(cursor, text, "shelfmark");
        assert!(!of("{\"mcpServers\": {\"shelfmark\": {\"command\": \"x\"}}}") && !of("{}") && !of(""));
        assert!(of("{\"mcpServers\": {\"other\": {}}}") && of("{\"theme\": \"dark\"}") && of("// mine"));
        let codex = client(ClientName::Codex);
        assert!(!holds_others(codex, "[mcp_servers.shelfmark]\ncommand = \"x\"\n", "shelfmark"));
        assert!(holds_others(codex, "model = \"x\"\n", "shelfmark"));
    }

    #[test]
    fn a_file_with_comments_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.json");
        let text = "{\n  // my theme\n  \"theme\": \"dark\"\n}\n";
        fs::write(&path, text).unwrap();
        let error = change(client(ClientName::Zed), &path, "shelfmark", Some(&json!({}))).unwrap_err();
        assert!(error.message.contains("comments") && error.hints[0].contains("--print"), "{error:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }

    #[test]
    fn toml_keeps_its_comments() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        let text = "# mine\nmodel = \"x\"\n\n[mcp_servers.other]\ncommand = \"y\" # why\n";
        fs::write(&path, text).unwrap();
        let codex = client(ClientName::Codex);
        let first =
            json!({ "url": "http://127.0.0.1:1/mcp", "http_headers": { "Authorization": "Bearer t" } });
        assert!(change(codex, &path, "shelfmark", Some(&first)).unwrap());
        assert_eq!(server(codex, &path, "shelfmark").unwrap(), Some(first));
        let second = json!({ "command": "shelf", "args": ["serve"] });
        assert!(change(codex, &path, "shelfmark", Some(&second)).unwrap());
        assert_eq!(server(codex, &path, "shelfmark").unwrap(), Some(second));
        assert!(fs::read_to_string(&path).unwrap().starts_with(text));
        assert!(change(codex, &path, "shelfmark", None).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap().trim_end(), text.trim_end());
    }
}
