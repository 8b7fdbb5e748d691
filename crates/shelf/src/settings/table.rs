//! The table of settings and their environment variables: the only place that defines them.

/// One setting.
pub(crate) struct Setting {
    /// Its key in `shelf.toml`.
    pub key: &'static str,
    /// Its environment variable.
    pub variable: &'static str,
    /// What it controls.
    pub about: &'static str,
}

/// The environment variable with the path of the configuration file.
pub(crate) const CONFIG_VARIABLE: &str = "SHELF_CONFIG";
/// The environment variable that gives a stdio server the identity of a token.
pub(crate) const TOKEN_VARIABLE: &str = "SHELF_TOKEN";

/// The environment variable with the password of the catalog's database, as other programs for PostgreSQL read it.
pub(crate) const DATABASE_PASSWORD_VARIABLE: &str = "PGPASSWORD";

/// The environment variables that say how a bucket is reached, as other programs for S3 read them: address, region, key,
/// secret, and the token of temporary keys.
pub(crate) const BUCKET_VARIABLES: [&str; 6] = [
    "AWS_ENDPOINT_URL",
    "AWS_REGION",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_EC2_METADATA_DISABLED",
];

const fn setting(key: &'static str, variable: &'static str, about: &'static str) -> Setting {
    Setting { key, variable, about }
}

/// Every setting.
pub(crate) const SETTINGS: &[Setting] = &[
    setting("data_dir", "SHELF_DATA_DIR", "Library folder; empty for the platform's data folder"),
    setting(
        "library.catalog",
        "SHELF_CATALOG",
        "Database that holds the catalog, such as postgres://shelf@db.example.org/shelf; empty for a file in the library folder",
    ),
    setting(
        "library.objects",
        "SHELF_OBJECTS",
        "Where packs are kept: s3://bucket/prefix, or folder; empty for the place that the library has",
    ),
    setting(
        "library.cache",
        "SHELF_CACHE",
        "Folder for this machine's copies of what is in a bucket; empty for the folder `cache` in the library",
    ),
    setting(
        "library.cache_megabytes",
        "SHELF_CACHE_MEGABYTES",
        "Maximum size of those copies, in MiB; at least 16",
    ),
    setting("http.listen", "SHELF_HTTP_LISTEN", "Address that `shelf serve --http` listens on"),
    setting(
        "http.admin_listen",
        "SHELF_ADMIN_LISTEN",
        "Address for Prometheus metrics; `off` to disable them",
    ),
    setting(
        "http.allowed_hosts",
        "SHELF_ALLOWED_HOSTS",
        "Host names, besides loopback, that requests may use to reach the server",
    ),
    setting(
        "http.allowed_origins",
        "SHELF_ALLOWED_ORIGINS",
        "Origins, besides loopback, that browsers may call from",
    ),
    setting("http.import_roots", "SHELF_IMPORT_ROOTS", "Folders that `add` may read from over HTTP"),
    setting(
        "http.export_roots",
        "SHELF_EXPORT_ROOTS",
        "Folders that `get` and `restore` may write to over HTTP",
    ),
    setting(
        "http.public_url",
        "SHELF_PUBLIC_URL",
        "Address under which clients reach the server, such as https://library.example.org; empty for the one they used",
    ),
    setting("tools.toolsets", "SHELF_TOOLSETS", "Toolsets to offer"),
    setting("tools.only", "SHELF_TOOLS", "Offer only these tools; empty for all tools of the toolsets"),
    setting("tools.exclude", "SHELF_EXCLUDE_TOOLS", "Tools not to offer"),
    setting("tools.read_only", "SHELF_READ_ONLY", "Offer only read-only tools"),
    setting(
        "embedding.url",
        "SHELF_EMBEDDING_URL",
        "OpenAI-compatible embedding endpoint, such as http://localhost:11434/v1",
    ),
    setting("embedding.model", "SHELF_EMBEDDING_MODEL", "Model to request from the endpoint"),
    setting(
        "embedding.key",
        "SHELF_EMBEDDING_KEY",
        "API key for the endpoint; preferably set in the environment rather than in a file",
    ),
    setting(
        "embedding.timeout_seconds",
        "SHELF_EMBEDDING_TIMEOUT",
        "Timeout of one request to the endpoint, in seconds",
    ),
    setting(
        "embedding.deepen",
        "SHELF_EMBEDDING_DEEPEN",
        "When passages get the vectors of the deep model: idle, always or off",
    ),
    setting(
        "limits.call_seconds",
        "SHELF_CALL_SECONDS",
        "Maximum duration of one tool call, in seconds; 0 for no limit",
    ),
    setting(
        "download.over_http",
        "SHELF_DOWNLOAD_OVER_HTTP",
        "Whether the tool `download` is enabled over HTTP",
    ),
    setting(
        "download.private_addresses",
        "SHELF_DOWNLOAD_PRIVATE",
        "Whether downloads from this machine and from private networks are allowed",
    ),
    setting(
        "download.megabytes",
        "SHELF_DOWNLOAD_MEGABYTES",
        "Maximum size of one download, in MiB; 0 for no limit",
    ),
    setting(
        "download.seconds",
        "SHELF_DOWNLOAD_SECONDS",
        "Maximum duration of one download, in seconds; 0 for no limit",
    ),
    setting(
        "books.cdn_base_url",
        "SHELF_CDN_BASE_URL",
        "Address where the assets of books are served from; empty for this server",
    ),
    setting(
        "books.upload_megabytes",
        "SHELF_UPLOAD_MEGABYTES",
        "Maximum size of one upload to a signed URL, in MiB; 0 for no limit",
    ),
    setting(
        "books.url_seconds",
        "SHELF_URL_SECONDS",
        "How long URLs of uploads and archives work, in seconds; at most a week",
    ),
    setting(
        "prompts.folder",
        "SHELF_PROMPTS",
        "Folder with your own prompts (`PROMPT-*.md`); empty for the folder `prompts` in the library",
    ),
    setting(
        "workspace.root",
        "SHELF_WORKSPACE",
        "Workspace folder; empty for the working directory on stdio, and for no workspace over HTTP",
    ),
    setting(
        "workspace.read",
        "SHELF_WORKSPACE_READ",
        "Globs that `read_repo_file` may read in addition to the default folders",
    ),
    setting(
        "workspace.accounts",
        "SHELF_WORKSPACE_ACCOUNTS",
        "Usernames that may use the workspace over HTTP, in addition to administrators",
    ),
    setting(
        "limits.read_repo_file_per_minute",
        "SHELF_READ_REPO_FILE_PER_MINUTE",
        "Calls of `read_repo_file` per minute; 0 for no limit",
    ),
    setting(
        "limits.write_memory_entry_per_minute",
        "SHELF_WRITE_MEMORY_ENTRY_PER_MINUTE",
        "Calls of `write_memory_entry` per minute; 0 for no limit",
    ),
    setting(
        "limits.hello_per_minute",
        "SHELF_HELLO_PER_MINUTE",
        "Calls of `hello` per minute; 0 for no limit",
    ),
    setting(
        "accounts.registration",
        "SHELF_REGISTRATION",
        "Whether people may register themselves over HTTP",
    ),
    setting(
        "limits.register_per_hour",
        "SHELF_REGISTER_PER_HOUR",
        "Registrations per hour from one address; 0 for no limit",
    ),
    setting(
        "limits.login_per_minute",
        "SHELF_LOGIN_PER_MINUTE",
        "Login attempts per minute from one address; 0 for no limit",
    ),
    setting(
        "limits.refresh_per_minute",
        "SHELF_REFRESH_PER_MINUTE",
        "Token refreshes per minute from one address; 0 for no limit",
    ),
    setting(
        "limits.calls_per_minute",
        "SHELF_CALLS_PER_MINUTE",
        "Calls per minute over HTTP with one token; 0 for no limit",
    ),
    setting(
        "limits.connections",
        "SHELF_CONNECTIONS",
        "Maximum number of open HTTP connections; 0 for as many as the system allows",
    ),
    setting(
        "limits.connections_per_address",
        "SHELF_CONNECTIONS_PER_ADDRESS",
        "Maximum number of open HTTP connections from one address; 0 for no separate limit",
    ),
    setting("watch.folders", "SHELF_WATCH", "Folders that a server keeps in step with the library"),
    setting("watch.collection", "SHELF_WATCH_COLLECTION", "Collection that watched folders are stored in"),
    setting(
        "watch.keep_removed",
        "SHELF_WATCH_KEEP",
        "Whether documents stay when their files are removed from a watched folder",
    ),
    setting(
        "watch.settle_milliseconds",
        "SHELF_WATCH_SETTLE",
        "How long a watched folder must be quiet before its changes are stored, in milliseconds",
    ),
    setting("log.level", "SHELF_LOG_LEVEL", "error, warn, info, debug, trace, or a filter"),
    setting("log.format", "SHELF_LOG_FORMAT", "text or json"),
];
