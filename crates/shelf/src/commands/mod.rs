//! The commands. Most of them build the arguments of a tool, call it, and show its reply.

mod backup;
mod books;
mod cite;
mod clients;
mod config;
mod connect;
mod demo;
mod doctor;
mod documents;
mod eval;
mod export;
mod find;
mod flags;
mod graph;
mod import;
mod near;
mod open;
mod reference;
mod running;
mod serve;
mod service;
mod shelves;
mod token;
mod tools;
mod upkeep;
mod user;
mod watch;
mod workspace;

use std::{
    collections::{BTreeMap, HashMap},
    io::IsTerminal,
    path::PathBuf,
    time::Duration,
};

use serde_json::{Map, Value, json};
use shelf_base::{CallContext, Kind, Secret, bounds};
use shelf_engine::{
    BucketAccess, Caller, CatalogAddress, Deepen, DownloadSettings, EndpointSettings, Library, LinkSettings,
    ObjectsPlace, Options, StorageSettings, WorkspaceSettings,
};
use shelf_tools::{
    Context, Limits,
    policy::{Access, Selection},
    verbatim,
};

use crate::{
    cli::{Arguments, Command, graph::Graph as GraphArguments},
    outcome::{CliError, Outcome},
    output::{Output, Tone},
    settings::{self, Settings},
};

/// Runs the command.
pub(crate) fn run(arguments: Arguments, output: &Output) -> Outcome {
    let flags = flags(&arguments);
    let settings =
        Settings::resolve(arguments.global.config.as_deref(), &flags, |name| std::env::var(name).ok())?;
    start_logging(&settings)?;
    if !matches!(arguments.command, Command::Config(_)) {
        settings.check_addresses()?;
        serve::check_toolsets(&settings)?;
    }
    match arguments.command {
        Command::Serve(command) => serve::run(&command, None, &settings, output),
        Command::Open { print } => open::run(print, &settings, output),
        Command::Add(command) => documents::add(&command, &open(&settings)?, output),
        Command::Watch(command) => watch::run(&command, &open(&settings)?, &settings, output),
        Command::Download(command) => documents::download(&command, &open(&settings)?, output),
        Command::Get(command) => documents::get(&command, &existing(&settings)?, output),
        Command::List(command) => documents::list(&command, &existing(&settings)?, output),
        Command::Search(command) => find::search(&command, &existing(&settings)?, output),
        Command::Grep(command) => find::grep(&command, &existing(&settings)?, output),
        Command::Cite(command) => cite::run(&command, &open_for(&settings, command.creates())?, output),
        Command::Graph(GraphArguments { read_only: Some(folder), .. }) => graph::read_only(&folder, output),
        Command::Graph(command) => graph::graph(&command, &existing(&settings)?, output),
        Command::Update(command) => documents::update(&command, &existing(&settings)?, output),
        Command::Delete(command) => documents::delete(&command, &existing(&settings)?, output),
        Command::Status(command) => shelves::status(&command, &existing(&settings)?, output),
        Command::Collections => shelves::collections(&existing(&settings)?, output),
        Command::Snapshot(command) => shelves::snapshot(&command, &existing(&settings)?, output),
        Command::Restore(command) => shelves::restore(&command, &existing(&settings)?, output),
        Command::Call(command) => call_tool(&command, &settings, output),
        Command::User(command) => user::run(&command, &settings, output),
        Command::Token(command) => {
            token::run(&command, &open_loudly(&settings, command.creates(), output)?, output)
        }
        Command::Books(command) => books::run(&command, &open_for(&settings, command.creates())?, output),
        Command::Workspace(command) => workspace::run(&command.action, &settings, output),
        Command::Check { memory: true, .. } => workspace::check(&existing(&settings)?, output),
        Command::Check { audit: true, .. } => upkeep::audit(&existing_anyway(&settings)?, output),
        Command::Check { repair, .. } => upkeep::check(repair, &existing_anyway(&settings)?, output),
        Command::Reindex => upkeep::reindex(&existing(&settings)?, output),
        Command::Deepen { collection } => {
            upkeep::deepen(collection.as_deref(), &existing(&settings)?, output)
        }
        Command::Embed(command) => upkeep::embed(&command, &existing(&settings)?, output),
        Command::Eval(command) => eval::run(&command, output),
        Command::Gc(command) => upkeep::collect(&command, &existing_anyway(&settings)?, output),
        Command::Recover { keep_catalog: true, .. } => {
            upkeep::keep_catalog(&existing_anyway(&settings)?, output)
        }
        Command::Recover { force, .. } => {
            must_exist(&settings)?;
            upkeep::recover(&settings.data_dir()?, force, &options(&settings, None)?, output)
        }
        Command::Backup { file } => backup::make(&file, &existing(&settings)?, output),
        Command::RestoreLibrary { file } => {
            backup::restore(&file, &settings.data_dir()?, &options(&settings, None)?, output)
        }
        Command::Migrate { to, delete_old } => backup::migrate(&to, delete_old, &settings, output),
        Command::Import(command) => import::run(&command, &open(&settings)?, output),
        Command::Export(command) => export::run(&command, &existing(&settings)?, output),
        Command::Demo(command) => demo::run(&command, &settings, output),
        Command::Tools(command) => tools::run(&command, output),
        Command::Client(command) => clients::run(&command, &settings, output),
        Command::Service(command) => service::run(&command, &settings, output),
        Command::Doctor => doctor::run(&settings, output),
        Command::Config(command) => config::run(&command, &settings, output),
        Command::Completions { shell } => reference::completions(shell, output),
        Command::Man { folder } => reference::manual(folder.as_deref(), output),
        Command::Docs { output: folder } => reference::pages(&folder),
    }
}

/// Settings given as flags.
fn flags(arguments: &Arguments) -> BTreeMap<&'static str, toml::Value> {
    let mut flags = BTreeMap::new();
    let mut text = |key, value: Option<String>| {
        if let Some(value) = value {
            flags.insert(key, toml::Value::String(value));
        }
    };
    text("data_dir", arguments.global.data_dir.as_ref().map(|path| path.display().to_string()));
    text("library.catalog", arguments.global.catalog.clone());
    text("log.level", arguments.global.log_level.clone());
    let workspace = match &arguments.command {
        Command::Serve(serve) => &serve.workspace,
        Command::Workspace(command) => &command.workspace,
        Command::Check { workspace, .. } => workspace,
        _ => &None,
    };
    text("workspace.root", workspace.as_ref().map(|path| path.display().to_string()));
    if let Command::Serve(serve) = &arguments.command {
        text("http.listen", serve.http.clone().filter(|address| !address.is_empty()));
        text("http.admin_listen", serve.admin_listen.clone());
        for (key, list) in [
            ("tools.toolsets", &serve.toolsets),
            ("tools.only", &serve.tools),
            ("tools.exclude", &serve.exclude_tools),
        ] {
            if let Some(list) = list {
                flags.insert(key, settings::list(list));
            }
        }
        if serve.read_only {
            flags.insert("tools.read_only", toml::Value::Boolean(true));
        }
    }
    flags
}

fn start_logging(settings: &Settings) -> Outcome {
    use tracing_subscriber::EnvFilter;
    let level = settings.text("log.level");
    if !is_filter(level) {
        let origin = settings.origin("log.level");
        let message = format!("unknown log level '{level}' ({origin})");
        return Err(CliError::new(Kind::Invalid, message)
            .hint("use off, error, warn, info, debug or trace, or a filter such as info,shelf_serve=debug"));
    }
    // Below this level, the MCP library logs whole requests, which may contain sensitive data.
    let filter = if level.contains("rmcp") { level.to_owned() } else { format!("{level},rmcp=warn") };
    let filter =
        EnvFilter::try_new(&filter).map_err(|error| anyhow::anyhow!("log level '{level}': {error}"))?;
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    match settings.text("log.format") {
        "json" => logs.json().init(),
        "text" => logs.init(),
        other => {
            return Err(CliError::new(
                Kind::Invalid,
                format!("log.format must be text or json, not '{other}'"),
            ));
        }
    }
    Ok(())
}

/// Whether a text is a filter of log messages. The library that reads it would take any word for the name of a module
/// and then log nothing.
fn is_filter(text: &str) -> bool {
    let is_level = |word: &str| {
        ["off", "error", "warn", "info", "debug", "trace"].contains(&word.trim().to_lowercase().as_str())
    };
    let fits = |part: &str| match part.rsplit_once('=') {
        Some((target, level)) => !target.trim().is_empty() && is_level(level),
        None => is_level(part),
    };
    text.split(',').all(fits)
}

/// Opens the library, with the working directory as its workspace unless another is configured.
fn open(settings: &Settings) -> Outcome<Library> {
    open_with(settings, std::env::current_dir().ok())
}

/// Converts a configured limit, where 0 means no limit.
const fn none_or(limit: u64) -> u64 {
    if limit == 0 { u64::MAX } else { limit }
}

/// Opens a library that must be there already: a command that only reads makes none, since the folder is then most
/// likely mistyped.
fn existing(settings: &Settings) -> Outcome<Library> {
    must_exist(settings)?;
    open(settings)
}

fn open_for(settings: &Settings, creates: bool) -> Outcome<Library> {
    if creates { open(settings) } else { existing(settings) }
}

/// Opens a library, saying so if that made a new one: where accounts and tokens are concerned, the folder is most likely
/// mistyped then.
fn open_loudly(settings: &Settings, creates: bool, output: &Output) -> Outcome<Library> {
    let is_new = must_exist(settings).is_err();
    let library = open_for(settings, creates)?;
    if is_new {
        output.say(Tone::Warning, &format!("a new library was made in {}", library.folder().display()));
    }
    Ok(library)
}

/// Opens a library that must be there even if it is damaged, for commands that inspect or repair it.
fn existing_anyway(settings: &Settings) -> Outcome<Library> {
    must_exist(settings)?;
    let options = options(settings, std::env::current_dir().ok())?;
    Ok(Library::open_anyway(&settings.data_dir()?, options)?)
}

fn must_exist(settings: &Settings) -> Outcome {
    let folder = settings.data_dir()?;
    // A machine without a folder yet may well have a library in a database.
    if Library::is_in(&folder) || !settings.text("library.catalog").is_empty() {
        return Ok(());
    }
    let error = CliError::new(Kind::NotFound, format!("there is no library in {}", folder.display()));
    Err(if settings.is_default("data_dir") {
        error.hint("`shelf add FILE` makes one, and `shelf demo` makes one with a few documents to try")
    } else {
        error.hint("check the folder's name; `shelf add FILE` would make a new library there")
    })
}

fn open_with(settings: &Settings, folder: Option<PathBuf>) -> Outcome<Library> {
    Ok(Library::open(&settings.data_dir()?, options(settings, folder)?)?)
}

fn options(settings: &Settings, folder: Option<PathBuf>) -> Outcome<Options> {
    let root = Some(settings.text("workspace.root")).filter(|root| !root.is_empty()).map(PathBuf::from);
    let also = settings.texts("workspace.read");
    let accounts = settings.texts("workspace.accounts");
    Ok(Options {
        import_roots: settings.texts("http.import_roots").into_iter().map(Into::into).collect(),
        export_roots: settings.texts("http.export_roots").into_iter().map(Into::into).collect(),
        workspace: root.or(folder).map(|root| WorkspaceSettings { root, also, accounts }),
        embedding: embedding(settings)?,
        deepen: deepen(settings)?,
        registration_closed: !settings.flag("accounts.registration"),
        download: DownloadSettings {
            over_http: settings.flag("download.over_http"),
            private_addresses: settings.flag("download.private_addresses"),
            most_bytes: none_or(settings.number("download.megabytes")).saturating_mul(1 << 20),
            time: Duration::from_secs(none_or(settings.number("download.seconds"))),
        },
        links: LinkSettings {
            public_url: address(settings, "http.public_url")?,
            cdn_base_url: address(settings, "books.cdn_base_url")?,
            upload_bytes: none_or(settings.number("books.upload_megabytes")).saturating_mul(1 << 20),
            seconds: settings.number("books.url_seconds").clamp(1, MOST_URL_SECONDS),
        },
        catalog: catalog(settings)?,
        storage: storage(settings)?,
        page_program: crate::drawing::program(),
    })
}

/// The database that holds the catalog, if it is not a file in the library folder.
fn catalog(settings: &Settings) -> Outcome<Option<CatalogAddress>> {
    let text = settings.text("library.catalog");
    if text.is_empty() {
        return Ok(None);
    }
    let password = std::env::var(settings::DATABASE_PASSWORD_VARIABLE).ok();
    let address = CatalogAddress::parse(text, password.as_deref()).map_err(|error| {
        let origin = settings.origin("library.catalog");
        CliError::new(Kind::Invalid, format!("library.catalog ({origin}): {error}"))
            .hint("use postgres://USER@HOST/DATABASE, or nothing for a file in the library folder")
    })?;
    Ok(Some(address))
}

/// Where the library keeps its packs.
fn storage(settings: &Settings) -> Outcome<StorageSettings> {
    let text = settings.text("library.objects");
    let objects = match text {
        "" => None,
        text => Some(ObjectsPlace::parse(text).ok_or_else(|| {
            let origin = settings.origin("library.objects");
            CliError::new(Kind::Invalid, format!("library.objects cannot be '{text}' ({origin})"))
                .hint("use s3://bucket/prefix, folder, or nothing for the place that the library has")
        })?),
    };
    Ok(StorageSettings {
        objects,
        access: bucket_access(),
        cache: Some(settings.text("library.cache")).filter(|cache| !cache.is_empty()).map(PathBuf::from),
        cache_bytes: settings.number("library.cache_megabytes").max(16).saturating_mul(1 << 20),
    })
}

/// How a bucket is reached, from the variables that programs for S3 share.
fn bucket_access() -> BucketAccess {
    let [endpoint, region, key, secret, token, without_role] =
        settings::BUCKET_VARIABLES.map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    BucketAccess {
        endpoint,
        region,
        keys: key.zip(secret.map(Secret::new)),
        session_token: token.map(Secret::new),
        without_role: without_role.is_some_and(|value| value.eq_ignore_ascii_case("true")),
    }
}

/// The longest time that a URL of an upload or archive may work: a week.
const MOST_URL_SECONDS: u64 = 7 * 86_400;

/// A configured address, without a slash at its end.
fn address(settings: &Settings, key: &str) -> Outcome<Option<String>> {
    let text = settings.text(key).trim_end_matches('/');
    let is_address = |text: &str| {
        let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
        rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(['?', '#', ' ', '"', '@']))
    };
    match text {
        "" => Ok(None),
        text if is_address(text) => Ok(Some(text.to_owned())),
        text => Err(CliError::new(
            Kind::Invalid,
            format!("{key} must be an address such as https://library.example.org, not '{text}'"),
        )),
    }
}

/// The embedding model configured in addition to the built-in one, if any.
fn embedding(settings: &Settings) -> Outcome<Option<EndpointSettings>> {
    let (url, model) = (settings.text("embedding.url"), settings.text("embedding.model"));
    match (url.is_empty(), model.is_empty()) {
        (true, true) => return Ok(None),
        (false, false) => {}
        _ => {
            return Err(CliError::new(Kind::Invalid, "set both embedding.url and embedding.model"));
        }
    }
    let key = Some(settings.text("embedding.key")).filter(|key| !key.is_empty());
    let key = key.map(|key| Secret::new(key.to_owned()));
    let timeout = Duration::from_secs(settings.number("embedding.timeout_seconds").max(1));
    Ok(Some(EndpointSettings { key, timeout, ..EndpointSettings::new(url, model) }))
}

/// When vectors are made anew by the deep model.
fn deepen(settings: &Settings) -> Outcome<Deepen> {
    match settings.text("embedding.deepen") {
        "idle" => Ok(Deepen::Idle),
        "always" => Ok(Deepen::Always),
        "off" => Ok(Deepen::Off),
        other => Err(CliError::new(
            Kind::Invalid,
            format!("embedding.deepen must be idle, always or off, not '{other}'"),
        )),
    }
}

/// The configured rate limits.
fn limits(settings: &Settings) -> Limits {
    let per_minute = |key: &str| u32::try_from(settings.number(key)).unwrap_or(u32::MAX);
    let limited = ["hello", "read_repo_file", "write_memory_entry"];
    let limit = |tool: &str| (tool.to_owned(), per_minute(&format!("limits.{tool}_per_minute")));
    Limits::new(limited.into_iter().map(limit).collect::<HashMap<_, _>>())
}

/// Calls a tool as the owner. What is wrong with an argument is said of the flag that it came from.
fn tool(library: &Library, name: &str, arguments: Value, call: &CallContext) -> Outcome<Value> {
    let fields: Vec<String> =
        arguments.as_object().map(|fields| fields.keys().cloned().collect()).unwrap_or_default();
    paged_tool(library, name, arguments, call, WHOLE)
        .map_err(|error| near::advised(flags::named(CliError { body: None, ..error }, &fields), library))
        .map_err(|error| error.with_place(library.folder()))
}

/// Page size for commands, which print whole lists.
const WHOLE: usize = usize::MAX;

fn paged_tool(
    library: &Library,
    name: &str,
    arguments: Value,
    call: &CallContext,
    page_chars: usize,
) -> Outcome<Value> {
    let Value::Object(arguments) = arguments else {
        return Err(CliError::new(Kind::Invalid, "arguments must be a JSON object"));
    };
    let Some(tool) = shelf_tools::find(name) else {
        let near = shelf_base::nearest(name, shelf_tools::registry().map(|tool| tool.name), 3);
        let error = CliError::new(Kind::NotFound, format!("unknown tool '{name}'"));
        return Err(if near.is_empty() {
            error.hint("`shelf tools` lists all of them")
        } else {
            error.hint(format!("did you mean {}?", near.join(", ")))
        });
    };
    let (caller, limits, selection) = (Caller::owner(), Limits::default(), Selection::everything());
    let context = Context {
        library,
        caller: &caller,
        call,
        limits: &limits,
        selection: &selection,
        page_chars,
        upload_door: &|| Err("a command has no address to send content to".into()),
    };
    let answer = shelf_tools::call(tool, &context, arguments);
    answer.map(|answer| answer.value).map_err(|failure| CliError::of_call(tool, failure))
}

fn call_tool(command: &crate::cli::CallTool, settings: &Settings, output: &Output) -> Outcome {
    let is_write = shelf_tools::find(&command.tool).is_some_and(|tool| tool.access != Access::Read);
    let library = &open_for(settings, is_write)?;
    let kept = verbatim::wrap(&command.tool, &command.arguments, &[]);
    let unread = |message: String| match shelf_tools::find(&command.tool) {
        Some(tool) => CliError::of_call(tool, shelf_tools::unreadable(tool, Kind::Invalid, &message)),
        None => CliError::new(Kind::Invalid, message),
    };
    let arguments: Value = serde_json::from_str(kept.as_ref().unwrap_or(&command.arguments))
        .map_err(|error| unread(format!("the arguments are not valid JSON: {error}")))?;
    if !arguments.is_object() {
        return Err(unread("arguments must be a JSON object".into()));
    }
    let call = crate::progress::call(output);
    let reply = paged_tool(library, &command.tool, arguments, &call, bounds::PAGE_CHARS)
        .map_err(|error| near::advised(error, library))?;
    drop(call);
    output.print_json(&reply)
}

/// Removes the fields that were not given: nulls and empty arrays.
fn given(fields: Value) -> Value {
    let Value::Object(fields) = fields else { return json!({}) };
    let kept: Map<String, Value> = fields
        .into_iter()
        .filter(|(_, value)| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()))
        .collect();
    Value::Object(kept)
}

/// Treats the text as a document's hash if it looks like one, and as its name otherwise.
fn document(text: &str) -> (&'static str, &str) {
    let is_hash = (8..=64).contains(&text.len())
        && text.bytes().all(|digit| digit.is_ascii_hexdigit())
        && text.bytes().any(|digit| digit.is_ascii_digit());
    (if is_hash { "hash" } else { "name" }, text)
}
