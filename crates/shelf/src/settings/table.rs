//! The table of settings and the names of environment variables: the one place that knows them.

/// One setting.
pub(crate) struct Setting {
    /// Its key in `shelf.toml`.
    pub key: &'static str,
    /// Its environment variable.
    pub variable: &'static str,
    /// What it decides.
    pub about: &'static str,
}

/// The environment variable that names the configuration file.
pub(crate) const CONFIG_VARIABLE: &str = "SHELF_CONFIG";
/// The environment variable that gives a stdio server the identity of a token.
pub(crate) const TOKEN_VARIABLE: &str = "SHELF_TOKEN";

const fn setting(key: &'static str, variable: &'static str, about: &'static str) -> Setting {
    Setting { key, variable, about }
}

/// Every setting.
pub(crate) const SETTINGS: &[Setting] = &[
    setting("data_dir", "SHELF_DATA_DIR", "Folder of the library; empty means the platform's data folder"),
    setting("http.listen", "SHELF_HTTP_LISTEN", "Address that `shelf serve --http` listens on"),
    setting("http.admin_listen", "SHELF_ADMIN_LISTEN", "Address of Prometheus metrics; `off` for none"),
    setting(
        "http.allowed_hosts",
        "SHELF_ALLOWED_HOSTS",
        "Host names, beside loopback, under which the server may be reached",
    ),
    setting(
        "http.allowed_origins",
        "SHELF_ALLOWED_ORIGINS",
        "Origins, beside loopback, from which browsers may call",
    ),
    setting("http.import_roots", "SHELF_IMPORT_ROOTS", "Folders that `add` may read from over HTTP"),
    setting(
        "http.export_roots",
        "SHELF_EXPORT_ROOTS",
        "Folders that `get` and `restore` may write to over HTTP",
    ),
    setting("tools.toolsets", "SHELF_TOOLSETS", "Families of tools on offer"),
    setting("tools.only", "SHELF_TOOLS", "Only these tools; empty means all of the families"),
    setting("tools.exclude", "SHELF_EXCLUDE_TOOLS", "Tools that are not offered"),
    setting("tools.read_only", "SHELF_READ_ONLY", "Only tools that change nothing"),
    setting(
        "embedding.url",
        "SHELF_EMBEDDING_URL",
        "OpenAI-compatible endpoint, such as http://localhost:11434/v1",
    ),
    setting("embedding.model", "SHELF_EMBEDDING_MODEL", "Model to ask it for"),
    setting(
        "embedding.key",
        "SHELF_EMBEDDING_KEY",
        "Its key; better given by the environment than by a file",
    ),
    setting(
        "embedding.timeout_seconds",
        "SHELF_EMBEDDING_TIMEOUT",
        "Seconds that one request to it may take",
    ),
    setting(
        "limits.call_seconds",
        "SHELF_CALL_SECONDS",
        "Seconds that one tool call may take; 0 for no limit",
    ),
    setting("download.over_http", "SHELF_DOWNLOAD_OVER_HTTP", "Whether the tool `download` works over HTTP"),
    setting(
        "download.private_addresses",
        "SHELF_DOWNLOAD_PRIVATE",
        "Whether this machine and private networks may be downloaded from",
    ),
    setting("download.megabytes", "SHELF_DOWNLOAD_MEGABYTES", "Size of one download at most, in MiB"),
    setting("download.seconds", "SHELF_DOWNLOAD_SECONDS", "Seconds that one download may take"),
    setting(
        "prompts.folder",
        "SHELF_PROMPTS",
        "Folder with prompts of your own (`PROMPT-*.md`); empty: the folder `prompts` in the library",
    ),
    setting(
        "workspace.root",
        "SHELF_WORKSPACE",
        "Folder of the workspace tools; empty: the working directory on stdio, none over HTTP",
    ),
    setting(
        "workspace.read",
        "SHELF_WORKSPACE_READ",
        "Globs that read_repo_file may read beside the usual folders",
    ),
    setting(
        "workspace.accounts",
        "SHELF_WORKSPACE_ACCOUNTS",
        "Accounts that may use the workspace over HTTP, beside administrators",
    ),
    setting(
        "limits.read_repo_file_per_minute",
        "SHELF_READ_REPO_FILE_PER_MINUTE",
        "Calls of `read_repo_file` a minute; 0 for no limit",
    ),
    setting(
        "limits.write_memory_entry_per_minute",
        "SHELF_WRITE_MEMORY_ENTRY_PER_MINUTE",
        "Calls of `write_memory_entry` a minute; 0 for no limit",
    ),
    setting("limits.hello_per_minute", "SHELF_HELLO_PER_MINUTE", "Calls of `hello` a minute; 0 for no limit"),
    setting(
        "accounts.registration",
        "SHELF_REGISTRATION",
        "Whether people may register by themselves over HTTP",
    ),
    setting(
        "limits.register_per_hour",
        "SHELF_REGISTER_PER_HOUR",
        "Accounts that one address may register in an hour; 0 for no limit",
    ),
    setting(
        "limits.login_per_minute",
        "SHELF_LOGIN_PER_MINUTE",
        "Logins that one address may try in a minute; 0 for no limit",
    ),
    setting(
        "limits.refresh_per_minute",
        "SHELF_REFRESH_PER_MINUTE",
        "Refreshes that one address may try in a minute; 0 for no limit",
    ),
    setting(
        "limits.calls_per_minute",
        "SHELF_CALLS_PER_MINUTE",
        "Calls that one token may make in a minute over HTTP; 0 for no limit",
    ),
    setting(
        "limits.connections",
        "SHELF_CONNECTIONS",
        "Connections that may be open at once over HTTP; 0 for as many as the system grants",
    ),
    setting(
        "limits.connections_per_address",
        "SHELF_CONNECTIONS_PER_ADDRESS",
        "Of those, connections from one address; 0 for no limit of its own",
    ),
    setting("log.level", "SHELF_LOG_LEVEL", "error, warn, info, debug, trace, or a filter"),
    setting("log.format", "SHELF_LOG_FORMAT", "text or json"),
];
