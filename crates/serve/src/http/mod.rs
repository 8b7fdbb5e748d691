//! HTTP: MCP at `/mcp` and, for older clients, at `/sse`; REST at `/api/v1` and `/auth`; health, the web
//! console, and metrics on a listener of their own.

mod accounts;
mod auth;
mod bare;
mod batch;
mod bodies;
mod connections;
mod console;
mod console_accounts;
mod console_refusals;
mod console_streams;
mod door;
mod files;
mod guard;
mod message;
mod metrics;
mod openapi;
mod openapi_accounts;
mod ranges;
mod rest;
mod routes;
pub(crate) mod sessions;
mod sse;
mod throttle;
mod unread;
mod uploads;

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router, middleware,
    routing::{get, post},
};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
};
use shelf_base::bounds::REQUEST_BYTES;
use tokio::{net::TcpListener, sync::Semaphore};
use tokio_util::sync::CancellationToken;

pub use connections::ConnectionLimits;
pub use throttle::HttpLimits;

use crate::{
    App,
    mcp::{Handler, Who},
};

/// How an HTTP server is set up.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Ports that will do when that one is taken, the first ones first; then any will do. None when no other will.
    pub other_ports: Vec<u16>,
    /// Where metrics are served, if anywhere.
    pub admin_listen: Option<SocketAddr>,
    /// Whether failing to listen for metrics is an error.
    pub admin_required: bool,
    /// Whether requests act as the owner without a token; only on loopback.
    pub no_auth: bool,
    /// Host names, beside loopback, under which the server may be reached.
    pub allowed_hosts: Vec<String>,
    /// Origins, beside loopback, from which browsers may call.
    pub allowed_origins: Vec<String>,
    /// How often addresses and tokens may call.
    pub limits: HttpLimits,
    /// How many connections there may be.
    pub connections: ConnectionLimits,
}

/// What the routes share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub app: Arc<App>,
    pub no_auth: bool,
    pub guard: Arc<guard::Guard>,
    pub throttle: Arc<throttle::Throttle>,
    pub streams: Arc<sse::Streams>,
    pub sessions: Arc<sessions::Sessions>,
    pub memory: Arc<bodies::Memory>,
    pub uploads: Arc<Semaphore>,
    pub live: Arc<console_streams::Places>,
    pub stop: CancellationToken,
}

impl Shared {
    fn new(app: Arc<App>, settings: &Settings, listen: SocketAddr) -> Self {
        Self {
            app,
            no_auth: settings.no_auth,
            guard: Arc::new(guard::Guard::new(listen, settings)),
            throttle: Arc::new(throttle::Throttle::new(settings.limits)),
            streams: Arc::default(),
            sessions: Arc::default(),
            memory: Arc::default(),
            uploads: Arc::new(Semaphore::new(uploads::AT_ONCE)),
            live: Arc::default(),
            stop: CancellationToken::new(),
        }
    }
}

/// How long requests may take to finish after a stop was asked for.
const DRAIN: Duration = Duration::from_secs(5);

/// Why a server does not listen.
#[derive(Debug)]
pub struct BindError {
    /// The address that could not be used.
    pub address: SocketAddr,
    /// Whether it is the address for metrics.
    pub is_admin: bool,
    /// Why.
    pub source: io::Error,
}

/// A server that listens and is about to serve.
pub struct Server {
    listener: TcpListener,
    admin: Option<TcpListener>,
    admin_taken: Option<SocketAddr>,
    shared: Shared,
    connections: ConnectionLimits,
}

impl Server {
    /// Starts listening.
    pub async fn bind(app: Arc<App>, settings: Settings) -> Result<Self, BindError> {
        let failed = |address, is_admin| move |source| BindError { address, is_admin, source };
        let listener = listen(&settings).await.map_err(failed(settings.listen, false))?;
        let (mut admin, mut admin_taken) = (None, None);
        if let Some(address) = settings.admin_listen {
            match TcpListener::bind(address).await {
                Ok(listener) => admin = Some(listener),
                Err(error) if settings.admin_required => return Err(failed(address, true)(error)),
                Err(error) => {
                    tracing::info!(%address, %error, "metrics are off");
                    admin_taken = Some(address);
                }
            }
        }
        let address = listener.local_addr().map_err(failed(settings.listen, false))?;
        let shared = Shared::new(app, &settings, address);
        Ok(Self { listener, admin, admin_taken, shared, connections: settings.connections })
    }

    /// The address that metrics should have been served at, if another program uses it.
    pub const fn admin_taken(&self) -> Option<SocketAddr> {
        self.admin_taken
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Where metrics are served.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.as_ref().and_then(|admin| admin.local_addr().ok())
    }

    /// Serves until `stop`, then lets requests that are under way finish.
    pub async fn serve(mut self, stop: CancellationToken) -> io::Result<()> {
        self.shared.stop = stop.clone();
        if let Some(admin) = self.admin {
            tokio::spawn(metrics::serve(self.shared.app.clone(), admin, stop.clone()));
        }
        tokio::spawn(crate::archives::clear(self.shared.app.clone(), stop.clone()));
        let router = router(self.shared, &stop);
        connections::serve(self.listener, router, self.connections, stop, DRAIN).await;
        Ok(())
    }
}

/// Listens at the address of the settings, or at another port if that one is taken and others will do.
async fn listen(settings: &Settings) -> io::Result<TcpListener> {
    let mut outcome = TcpListener::bind(settings.listen).await;
    let any = (!settings.other_ports.is_empty()).then_some(0);
    for port in settings.other_ports.iter().copied().chain(any) {
        match &outcome {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                outcome = TcpListener::bind(SocketAddr::new(settings.listen.ip(), port)).await;
            }
            _ => return outcome,
        }
    }
    outcome
}

fn router(shared: Shared, stop: &CancellationToken) -> Router {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(REQUEST_BYTES)
        // Host and Origin are checked for every route by the guard.
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_cancellation_token(stop.child_token());
    let handler = Handler::new(shared.app.clone(), Who::EachRequest(shared.sessions.clone()));
    let mcp = StreamableHttpService::new(
        move || Ok(handler.clone()),
        Arc::new(NeverSessionManager::default()),
        config,
    );
    let protocol = Router::new()
        .route_service("/mcp", mcp.clone())
        .route_service("/mcp/x/{toolset}", mcp.clone())
        .route_service("/mcp/x/{toolset}/readonly", mcp)
        .layer(middleware::from_fn_with_state(shared.clone(), sessions::attend))
        .route("/messages", post(sse::receive))
        .route("/messages/", post(sse::receive))
        .layer(middleware::from_fn(message::check))
        .layer(middleware::from_fn_with_state(shared.clone(), bodies::admit_message))
        .route("/sse", get(sse::open))
        .layer(middleware::from_fn_with_state(shared.clone(), auth::admit_protocol));
    let rest = Router::new()
        .route("/api/v1/tools", get(rest::list))
        .route("/api/v1/tools/{name}", post(rest::call))
        .route("/tools", post(bare::call))
        .route("/tools/{name}", post(bare::call_named))
        .merge(routes::router())
        .merge(accounts::inside())
        .layer(middleware::from_fn_with_state(shared.clone(), bodies::admit))
        .layer(middleware::from_fn_with_state(shared.clone(), auth::admit_rest));
    Router::new()
        .route("/healthz", get(rest::healthy))
        .route("/readyz", get(rest::ready))
        .route("/api/v1/openapi.json", get(openapi::document))
        .route("/api/v1/docs", get(openapi::page))
        .merge(
            accounts::outside().layer(middleware::from_fn_with_state(shared.clone(), bodies::admit_stranger)),
        )
        .merge(protocol)
        .merge(rest)
        .merge(files::router())
        .merge(console::router(&shared))
        .layer(axum::extract::DefaultBodyLimit::max(REQUEST_BYTES))
        .fallback(console::elsewhere)
        .method_not_allowed_fallback(rest::wrong_method)
        .layer(middleware::from_fn_with_state(shared.clone(), guard::check))
        .layer(middleware::from_fn(unread::finish))
        .with_state(shared)
}
