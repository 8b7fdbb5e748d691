//! `serve`: stdio for one agent, HTTP for many.

use std::{io::IsTerminal, net::SocketAddr, path::Path, sync::Arc, time::Duration};

use shelf_base::{Kind, Secret};
use shelf_serve::{
    App, BLOCKING_THREADS, Setup, Timeouts, http,
    stdio::{self, Identity},
};
use shelf_tools::{policy::Selection, prompts::Prompts};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::{connect, limits, open, open_with, running, watch};
use crate::{
    cli, memory,
    outcome::{CliError, Outcome},
    output::{Output, Tone},
    process,
    settings::{Settings, TOKEN_VARIABLE},
};

/// What to do once an HTTP server listens.
pub(super) type Then<'a> = &'a dyn Fn(&App, SocketAddr) -> Outcome;

/// Serves. `then` is called with the address once an HTTP server listens.
pub(super) fn run(
    command: &cli::Serve,
    then: Option<Then<'_>>,
    settings: &Settings,
    output: &Output,
) -> Outcome {
    let selection = selection(settings)?;
    // Over HTTP, the server's working directory must not become the workspace of its clients.
    let library = if command.http.is_some() { open_with(settings, None)? } else { open(settings)? };
    let call = match settings.number("limits.call_seconds") {
        0 => None,
        seconds => Some(Duration::from_secs(seconds)),
    };
    let setup = Setup {
        selection,
        limits: limits(settings),
        timeouts: Timeouts { call },
        prompts: prompts(settings, library.folder()),
        give_back: memory::give_back,
        is_single: command.http.is_none(),
    };
    let app = App::new(library, setup);
    let served = app.clone();
    let (runtime, outcome) = match &command.http {
        Some(_) => {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .max_blocking_threads(BLOCKING_THREADS)
                .enable_all()
                .build()?;
            let outcome = runtime.block_on(async {
                app.begin();
                let outcome = over_http(app.clone(), command, then, settings, output).await;
                app.end().await;
                outcome
            });
            (runtime, outcome)
        }
        None => {
            let identity = identity(&app)?;
            if std::io::stdin().is_terminal() {
                output.tell(&on_a_terminal(app.library.folder(), &settings.program()));
            }
            let runtime = tokio::runtime::Builder::new_current_thread()
                .max_blocking_threads(BLOCKING_THREADS)
                .enable_all()
                .build()?;
            let outcome = runtime.block_on(async {
                app.begin();
                let stop = stop_signal()?;
                watch::for_server(&app, settings, &stop)?;
                let served = stdio::serve(app.clone(), identity, stop.clone()).await;
                stop.cancel();
                app.end().await;
                Ok(served?)
            });
            (runtime, outcome)
        }
    };
    served.library.copy_at_the_end();
    // A thread that is still reading stdin must not keep the process alive.
    runtime.shutdown_background();
    outcome
}

/// What a person sees who starts a server for agents by hand.
fn on_a_terminal(folder: &Path, shelf: &str) -> String {
    format!(
        "Shelfmark {version} speaks MCP on stdin and stdout, for a client that starts it; here it waits for JSON.\n\
         {library}\n\
         To set up a client: {shelf} client add claude-code (or cursor, vscode, …; shelf client list shows all)\n\
         To serve over HTTP, with a page for your browser: {shelf} serve --http\n\
         Stop with Ctrl-D or Ctrl-C.",
        version = env!("CARGO_PKG_VERSION"),
        library = data_line(folder),
    )
}

/// Which stores the library stands on.
fn backends(library: &shelf_engine::Library) -> String {
    let places = library.backends().into_iter().map(|backend| match backend.answer {
        Ok(_) => format!("{}: {}", backend.name, backend.place),
        Err(what) => format!("{}: {} (does not answer: {what})", backend.name, backend.place),
    });
    format!("Backends: {}", places.collect::<Vec<_>>().join("; "))
}

/// Prompts from the configured folder, or from the library's own.
fn prompts(settings: &Settings, library: &Path) -> Prompts {
    let folder = Some(settings.text("prompts.folder")).filter(|folder| !folder.is_empty());
    Prompts { folder: Some(folder.map_or_else(|| library.join("prompts"), Into::into)) }
}

fn selection(settings: &Settings) -> Outcome<Selection> {
    let selection = Selection {
        toolsets: settings.texts("tools.toolsets"),
        tools: settings.texts("tools.only"),
        excluded: settings.texts("tools.exclude"),
        read_only: settings.flag("tools.read_only"),
    };
    check_toolsets(settings)?;
    if let Some(unknown) = selection.unknown_tools().first() {
        let known: Vec<&str> = shelf_tools::registry().map(|tool| tool.name).collect();
        let error = CliError::new(Kind::Invalid, format!("unknown tool '{unknown}'"));
        return Err(error.hint(format!("known: {}", known.join(", "))));
    }
    if let Some(extra) = selection.unoffered_extras().first() {
        let error = CliError::new(
            Kind::Invalid,
            format!("'{extra}' belongs to the toolset extras, which is not enabled"),
        );
        return Err(error.hint("enable the toolset too: --toolsets all,extras"));
    }
    Ok(selection)
}

/// Refuses toolsets that do not exist.
pub(super) fn check_toolsets(settings: &Settings) -> Outcome {
    let toolsets = settings.texts("tools.toolsets");
    match toolsets.iter().find(|name| !Selection::TOOLSETS.contains(&name.as_str())) {
        None => Ok(()),
        Some(unknown) => {
            let origin = settings.origin("tools.toolsets");
            let error = CliError::new(Kind::Invalid, format!("unknown toolset '{unknown}' ({origin})"));
            Err(error.hint(format!("known: {}", Selection::TOOLSETS.join(", "))))
        }
    }
}

/// The OS user, or the identity of the token in the environment.
fn identity(app: &App) -> Outcome<Identity> {
    match std::env::var(TOKEN_VARIABLE).ok() {
        None => Ok(Identity::Owner),
        // An empty variable was probably meant to restrict the server, so it must not grant full access.
        Some(token) if token.trim().is_empty() => {
            Err(CliError::new(Kind::Unauthenticated, format!("{TOKEN_VARIABLE} is set but empty"))
                .hint(format!("set {TOKEN_VARIABLE} to a valid token, or unset it")))
        }
        Some(token) => {
            // Fail at startup rather than on the first call.
            app.library.verify_token(token.trim()).map_err(|refusal| {
                CliError::of(&refusal).hint(format!("set {TOKEN_VARIABLE} to a valid token, or unset it"))
            })?;
            Ok(Identity::Token(Secret::new(token.trim().to_owned())))
        }
    }
}

fn stop_signal() -> Outcome<CancellationToken> {
    let stop = CancellationToken::new();
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let token = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        token.cancel();
    });
    Ok(stop)
}

async fn over_http(
    app: Arc<App>,
    command: &cli::Serve,
    then: Option<Then<'_>>,
    settings: &Settings,
    output: &Output,
) -> Outcome {
    let listen = settings.address("http.listen")?;
    if command.no_auth && !listen.ip().is_loopback() {
        let error = CliError::new(
            Kind::Invalid,
            format!("--no-auth is refused on {listen}: anyone on the network could act as the owner"),
        );
        return Err(error.hint("listen on 127.0.0.1, or drop --no-auth and use a token"));
    }
    let admin_listen = match settings.text("http.admin_listen") {
        "off" | "" => None,
        _ => Some(settings.address("http.admin_listen")?),
    };
    let server_settings = http::Settings {
        listen,
        other_ports: other_ports(listen, admin_listen, app.library.folder(), settings),
        admin_listen,
        admin_required: !settings.is_default("http.admin_listen"),
        no_auth: command.no_auth,
        allowed_hosts: settings.texts("http.allowed_hosts"),
        allowed_origins: settings.texts("http.allowed_origins"),
        limits: http_limits(settings),
        connections: connection_limits(settings),
    };
    let stop = stop_signal()?;
    watch::for_server(&app, settings, &stop)?;
    let server = http::Server::bind(app.clone(), server_settings).await.map_err(|error| not_bound(&error))?;
    let address = server.address()?;
    let _note = running::note(app.library.folder(), address, app.library.now());
    if settings.is_default("http.listen") && address.port() != listen.port() {
        let note =
            format!("{listen} is in use by another program, so this server has another port: {address}");
        output.say(Tone::Warning, &note);
    }
    let metrics = match (server.admin_address(), server.admin_taken()) {
        (Some(admin), _) => format!("Metrics: http://{admin}/metrics\n"),
        (None, Some(taken)) => {
            format!("Metrics: off, because {taken} is in use; choose another address with --admin-listen\n")
        }
        (None, None) => String::new(),
    };
    let text = greeting(&app, address, &metrics, command.no_auth, settings)?;
    output.tell(&text);
    if let Some(then) = then {
        then(&app, address)?;
    }
    server.serve(stop).await?;
    Ok(())
}

/// How many ports after the usual one are tried when that one is taken.
const NEXT_PORTS: u16 = 16;

/// The ports to try when the usual one is taken: the one that this library had before, so that what was set up for it still
/// works, then the next ones. An address that somebody chose is kept to.
fn other_ports(
    listen: SocketAddr,
    admin: Option<SocketAddr>,
    library: &Path,
    settings: &Settings,
) -> Vec<u16> {
    if !settings.is_default("http.listen") {
        return Vec::new();
    }
    let next = (listen.port()..).skip(1).take(usize::from(NEXT_PORTS));
    let is_free = |port: &u16| admin.is_none_or(|admin| admin.port() != *port);
    running::last_port(library).into_iter().chain(next).filter(is_free).collect()
}

/// Says which address could not be used, and what to do.
fn not_bound(error: &http::BindError) -> CliError {
    let http::BindError { address, is_admin, source } = error;
    let is_taken = source.kind() == std::io::ErrorKind::AddrInUse;
    let why = if is_taken { "another program is using it".to_owned() } else { source.to_string() };
    let (what, hint) = if *is_admin {
        (
            format!("cannot serve metrics on {address}: {why}"),
            "choose another address with --admin-listen, or switch metrics off with --admin-listen off",
        )
    } else {
        (
            format!("cannot listen on {address}: {why}"),
            "choose another port, or let the system pick one with --http 127.0.0.1:0",
        )
    };
    CliError::new(Kind::of_io(source), what).hint(hint)
}

/// The configured connection limits, capped at half of the file descriptors: the rest are for packs and segments.
fn connection_limits(settings: &Settings) -> http::ConnectionLimits {
    let most = usize::try_from(process::file_limit() / 2).unwrap_or(usize::MAX);
    let limit = |key: &str| match usize::try_from(settings.number(key)).unwrap_or(usize::MAX) {
        0 => most,
        limit => limit.min(most),
    };
    http::ConnectionLimits {
        total: limit("limits.connections"),
        per_address: limit("limits.connections_per_address"),
    }
}

fn http_limits(settings: &Settings) -> http::HttpLimits {
    let number = |key: &str| u32::try_from(settings.number(key)).unwrap_or(u32::MAX);
    http::HttpLimits {
        register_per_hour: number("limits.register_per_hour"),
        login_per_minute: number("limits.login_per_minute"),
        refresh_per_minute: number("limits.refresh_per_minute"),
        calls_per_minute: number("limits.calls_per_minute"),
    }
}

fn greeting(
    app: &App,
    address: SocketAddr,
    metrics: &str,
    no_auth: bool,
    settings: &Settings,
) -> Outcome<String> {
    let shelf = settings.program();
    let token = if no_auth { None } else { Some(first_token(app)?) };
    let unknown = format!("<your token: {shelf} token create>");
    let shown = token.as_ref().map(|token| token.as_deref().unwrap_or(&unknown));
    let (flags, variables) =
        (settings.flags_with_folder()?, settings.variables(|name| std::env::var(name).ok()));
    let setup = connect::over_http(&format!("http://{address}/mcp"), shown, &flags, &variables);
    let token_line = match &token {
        None => "No token is required: anyone on this machine can act as the owner.".to_owned(),
        Some(Some(_)) => "The token below is shown only once; only its hash is stored.".to_owned(),
        Some(None) => {
            format!("Use the token shown at the first start, or create another: {shelf} token create")
        }
    };
    let data = format!("{}\n{}", data_line(app.library.folder()), backends(&app.library));
    Ok(format!(
        "Shelfmark {version} is listening on http://{address}\n{data}\n{metrics}{token_line}\n\n{setup}\n\n\
         REST is documented at http://{address}/api/v1/docs; older clients connect to http://{address}/sse\n\
         Open http://{address}/ in a browser, or run {shelf} open to be signed in. Stop with Ctrl-C.",
        version = env!("CARGO_PKG_VERSION"),
    ))
}

fn data_line(folder: &Path) -> String {
    format!("Library: {}", folder.display())
}

/// Creates a token at the first start, when there is no valid one yet.
fn first_token(app: &App) -> Outcome<Option<String>> {
    let now = app.library.now();
    let works = |token: &shelf_engine::TokenRow| {
        token.revoked_at.is_none() && token.token.expires_at.is_none_or(|at| now < at)
    };
    if app.library.local_tokens()?.iter().any(works) {
        return Ok(None);
    }
    let minted = app.library.mint_local_token("first start", None).map_err(|error| {
        let error = CliError::from(error);
        if error.code != Kind::Denied.row().code {
            return error;
        }
        error
            .hint("the library has no token yet, and none can be made here: run `shelf token create` as its owner")
            .hint("or serve it without tokens, on this machine only: `shelf serve --http --no-auth`")
    })?;
    Ok(Some(minted.text.reveal().to_owned()))
}
