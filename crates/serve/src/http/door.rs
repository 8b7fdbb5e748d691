//! A door for stdio: a listener on this machine alone, opened when an upload is first asked for, since a client on stdio
//! has no other way to send large content.

use std::{io, net::TcpListener as Blocking, sync::Arc, time::Duration};

use axum::{Router, middleware};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{ConnectionLimits, HttpLimits, Settings, Shared, connections, files, guard, rest};
use crate::App;

/// Whoever uploads on the same machine.
const CONNECTIONS: ConnectionLimits = ConnectionLimits { total: 64, per_address: 64 };

impl App {
    /// The address of the door, which is opened when it is not open yet.
    pub(crate) fn open_door(self: &Arc<Self>) -> Result<String, String> {
        let mut door = self.door.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(address) = &*door {
            return Ok(address.clone());
        }
        let address =
            open(self).map_err(|error| format!("no address for uploads could be opened: {error}"))?;
        *door = Some(address.clone());
        Ok(address)
    }
}

fn open(app: &Arc<App>) -> io::Result<String> {
    let runtime = tokio::runtime::Handle::try_current().map_err(io::Error::other)?;
    let listener = Blocking::bind(("127.0.0.1", 0))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let settings = Settings {
        listen: address,
        other_ports: Vec::new(),
        admin_listen: None,
        admin_required: false,
        no_auth: false,
        allowed_hosts: Vec::new(),
        allowed_origins: Vec::new(),
        limits: HttpLimits::default(),
        connections: CONNECTIONS,
    };
    let shared = Shared::new(app.clone(), &settings, address);
    let router = Router::new()
        .merge(files::router())
        .fallback(rest::nothing_here)
        .method_not_allowed_fallback(rest::wrong_method)
        .layer(middleware::from_fn_with_state(shared.clone(), guard::check))
        .with_state(shared);
    let stop = CancellationToken::new();
    runtime.spawn(async move {
        match TcpListener::from_std(listener) {
            Ok(listener) => connections::serve(listener, router, CONNECTIONS, stop, Duration::ZERO).await,
            Err(error) => tracing::warn!(%error, "the door for uploads could not be opened"),
        }
    });
    Ok(format!("http://{address}"))
}
