//! The clients: where each keeps its settings, and how a server is written there.

use std::path::{Path, PathBuf};

use directories::BaseDirs;
use serde_json::{Value, json};

use crate::cli::setup::ClientName;

/// How a settings file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Json,
    Toml,
}

/// How a client names the fields of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spelling {
    /// `command` and `args`, or `url` and `headers`.
    Plain,
    /// The same, with a `type`.
    Typed,
    /// Over HTTP, `httpUrl`.
    HttpUrl,
    /// Over HTTP, `serverUrl`.
    ServerUrl,
    /// Over HTTP, `http_headers`.
    HttpHeaders,
    /// One list for the command and its arguments, and `local` or `remote`.
    Listed,
}

/// A client.
pub(super) struct Client {
    pub name: ClientName,
    /// What people call it.
    pub title: &'static str,
    /// Its program, when it is one that is found on the path.
    program: Option<&'static str>,
    /// The key below which servers are listed.
    pub key: &'static str,
    pub format: Format,
    spelling: Spelling,
    /// Whether it can connect over HTTP with a header of ours.
    pub takes_http: bool,
    /// The settings file of a project, relative to its folder.
    pub project_file: Option<&'static str>,
}

/// Every client.
pub(super) const CLIENTS: &[Client] = &[
    Client {
        name: ClientName::ClaudeCode,
        title: "Claude Code",
        program: Some("claude"),
        key: "mcpServers",
        format: Format::Json,
        spelling: Spelling::Typed,
        takes_http: true,
        project_file: Some(".mcp.json"),
    },
    Client {
        name: ClientName::ClaudeDesktop,
        title: "Claude Desktop",
        program: None,
        key: "mcpServers",
        format: Format::Json,
        spelling: Spelling::Plain,
        takes_http: false,
        project_file: None,
    },
    Client {
        name: ClientName::Cursor,
        title: "Cursor",
        program: Some("cursor"),
        key: "mcpServers",
        format: Format::Json,
        spelling: Spelling::Plain,
        takes_http: true,
        project_file: Some(".cursor/mcp.json"),
    },
    Client {
        name: ClientName::Vscode,
        title: "VS Code",
        program: Some("code"),
        key: "servers",
        format: Format::Json,
        spelling: Spelling::Typed,
        takes_http: true,
        project_file: Some(".vscode/mcp.json"),
    },
    Client {
        name: ClientName::Codex,
        title: "Codex",
        program: Some("codex"),
        key: "mcp_servers",
        format: Format::Toml,
        spelling: Spelling::HttpHeaders,
        takes_http: true,
        project_file: Some(".codex/config.toml"),
    },
    Client {
        name: ClientName::GeminiCli,
        title: "Gemini CLI",
        program: Some("gemini"),
        key: "mcpServers",
        format: Format::Json,
        spelling: Spelling::HttpUrl,
        takes_http: true,
        project_file: Some(".gemini/settings.json"),
    },
    Client {
        name: ClientName::Zed,
        title: "Zed",
        program: Some("zed"),
        key: "context_servers",
        format: Format::Json,
        spelling: Spelling::Plain,
        takes_http: true,
        project_file: Some(".zed/settings.json"),
    },
    Client {
        name: ClientName::Windsurf,
        title: "Windsurf",
        program: Some("windsurf"),
        key: "mcpServers",
        format: Format::Json,
        spelling: Spelling::ServerUrl,
        takes_http: true,
        project_file: None,
    },
    Client {
        name: ClientName::Opencode,
        title: "opencode",
        program: Some("opencode"),
        key: "mcp",
        format: Format::Json,
        spelling: Spelling::Listed,
        takes_http: true,
        project_file: Some("opencode.json"),
    },
    Client {
        name: ClientName::LmStudio,
        title: "LM Studio",
        program: Some("lms"),
        key: "mcpServers",
        format: Format::Json,
        spelling: Spelling::Plain,
        takes_http: true,
        project_file: None,
    },
];

/// How a client reaches the library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Connection {
    /// It starts this program.
    Stdio { command: String, arguments: Vec<String> },
    /// It calls this address.
    Http { url: String, token: Option<String> },
}

impl Client {
    pub(super) fn of(name: ClientName) -> Option<&'static Self> {
        CLIENTS.iter().find(|client| client.name == name)
    }

    /// The word that names it on the command line.
    pub(super) fn word(&self) -> String {
        use clap::ValueEnum;
        self.name.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// The settings file of the user.
    pub(super) fn user_file(&self) -> Option<PathBuf> {
        let base = BaseDirs::new()?;
        let (home, config) = (base.home_dir(), base.config_dir());
        Some(match self.name {
            ClientName::ClaudeCode => home.join(".claude.json"),
            ClientName::ClaudeDesktop => config.join("Claude/claude_desktop_config.json"),
            ClientName::Cursor => home.join(".cursor/mcp.json"),
            ClientName::Vscode => config.join("Code/User/mcp.json"),
            ClientName::Codex => home.join(".codex/config.toml"),
            ClientName::GeminiCli => home.join(".gemini/settings.json"),
            // It keeps to ~/.config on every system.
            ClientName::Zed => home.join(".config/zed/settings.json"),
            ClientName::Windsurf => home.join(".codeium/windsurf/mcp_config.json"),
            ClientName::Opencode => home.join(".config/opencode/opencode.json"),
            ClientName::LmStudio => home.join(".lmstudio/mcp.json"),
        })
    }

    /// Whether it seems to be installed: its program is on the path, or it has left something behind. A folder that holds
    /// nothing but our own settings says nothing.
    pub(super) fn is_installed(&self, server: &str) -> bool {
        let home = BaseDirs::new().map(|base| base.home_dir().to_owned());
        let left_behind = self.user_file().is_some_and(|file| {
            let own_folder = file.parent().filter(|folder| Some(*folder) != home.as_deref());
            let is_foreign = |text: String| super::file::holds_others(self, &text, server);
            std::fs::read_to_string(&file).is_ok_and(is_foreign)
                || own_folder.is_some_and(|folder| has_others(folder, &file))
        });
        left_behind || self.program.is_some_and(is_on_path)
    }

    /// A server, as this client writes it.
    pub(super) fn server(&self, connection: &Connection) -> Value {
        match connection {
            Connection::Stdio { command, arguments } => self.stdio_server(command, arguments),
            Connection::Http { url, token } => self.http_server(url, token.as_deref()),
        }
    }

    fn stdio_server(&self, command: &str, arguments: &[String]) -> Value {
        match self.spelling {
            Spelling::Typed => json!({ "type": "stdio", "command": command, "args": arguments }),
            Spelling::Listed => {
                let whole: Vec<&str> =
                    std::iter::once(command).chain(arguments.iter().map(String::as_str)).collect();
                json!({ "type": "local", "command": whole, "enabled": true })
            }
            Spelling::Plain | Spelling::HttpUrl | Spelling::ServerUrl | Spelling::HttpHeaders => {
                json!({ "command": command, "args": arguments })
            }
        }
    }

    fn http_server(&self, url: &str, token: Option<&str>) -> Value {
        let mut server = match self.spelling {
            Spelling::Plain | Spelling::HttpHeaders => json!({ "url": url }),
            Spelling::Typed => json!({ "type": "http", "url": url }),
            Spelling::HttpUrl => json!({ "httpUrl": url }),
            Spelling::ServerUrl => json!({ "serverUrl": url }),
            Spelling::Listed => json!({ "type": "remote", "url": url, "enabled": true }),
        };
        if let Some(token) = token {
            let key = if self.spelling == Spelling::HttpHeaders { "http_headers" } else { "headers" };
            server[key] = json!({ "Authorization": format!("Bearer {token}") });
        }
        server
    }

    /// Reads a server back, whichever way the client wrote it.
    pub(super) fn connection(server: &Value) -> Option<Connection> {
        let text = |key: &str| server[key].as_str().map(str::to_owned);
        if let Some(url) = text("url").or_else(|| text("httpUrl")).or_else(|| text("serverUrl")) {
            let headers = server.get("headers").or_else(|| server.get("http_headers"));
            let header = headers.and_then(|headers| headers["Authorization"].as_str());
            let token = header.and_then(|header| header.strip_prefix("Bearer ")).map(str::to_owned);
            return Some(Connection::Http { url, token });
        }
        let texts = |value: &Value| -> Vec<String> {
            value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let (command, arguments) = match &server["command"] {
            Value::String(command) => (command.clone(), texts(&server["args"])),
            list @ Value::Array(_) => {
                let mut whole = texts(list).into_iter();
                (whole.next()?, whole.collect())
            }
            _ => return None,
        };
        Some(Connection::Stdio { command, arguments })
    }
}

/// Whether a folder is there and is not merely the place of this file.
fn has_others(folder: &Path, file: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    let others = entries.flatten().filter(|entry| entry.path() != file).count();
    others > 0 || !file.exists()
}

fn is_on_path(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|paths| std::env::split_paths(&paths).any(|folder| folder.join(program).is_file()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_a_client_that_reads_what_it_writes() {
        use clap::ValueEnum;
        let connections = [
            Connection::Stdio { command: "/usr/bin/shelf".into(), arguments: vec!["serve".into()] },
            Connection::Http { url: "http://127.0.0.1:7433/mcp".into(), token: Some("pat_live_x".into()) },
            Connection::Http { url: "http://127.0.0.1:7433/mcp".into(), token: None },
        ];
        for name in ClientName::value_variants() {
            let client = Client::of(*name).unwrap();
            for connection in &connections {
                let read = Client::connection(&client.server(connection));
                assert_eq!(read.as_ref(), Some(connection), "{}", client.title);
            }
        }
    }
}
