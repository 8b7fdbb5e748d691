//! Prometheus metrics, on a listener of their own so that they are never public by accident.

use std::{sync::Arc, time::Duration};

use axum::{Router, middleware, routing::get};
use metrics_exporter_prometheus::PrometheusBuilder;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{
    connections::{self, ConnectionLimits},
    guard,
};
use crate::app::App;

/// Seconds, from a small read to a long ingest.
const BUCKETS: &[f64] = &[0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 60.0];

/// Whoever scrapes comes alone.
const CONNECTIONS: ConnectionLimits = ConnectionLimits { total: 32, per_address: 16 };

/// Serves `/metrics` and `/healthz`.
pub(super) async fn serve(app: Arc<App>, listener: TcpListener, stop: CancellationToken) {
    let recorder =
        PrometheusBuilder::new().set_buckets(BUCKETS).and_then(PrometheusBuilder::install_recorder);
    let handle = match recorder {
        Ok(handle) => handle,
        Err(error) => {
            tracing::warn!(%error, "metrics are off");
            return;
        }
    };
    metrics::describe_counter!("shelf_tool_calls_total", "Tool calls by tool and outcome");
    metrics::describe_histogram!("shelf_tool_call_seconds", metrics::Unit::Seconds, "Time of tool calls");
    for (name, about) in [
        ("shelf_objects_total", "Operations on a remote object store by operation and outcome"),
        (
            "shelf_objects_failed_requests_total",
            "Requests to a remote object store without a usable answer; each was repeated, or given up",
        ),
        ("shelf_cache_hits_total", "Chunks of objects that were read from this machine's copies"),
        ("shelf_cache_misses_total", "Chunks of objects that were fetched from a remote store"),
        ("shelf_catalog_total", "Operations on a catalog in a database by operation and outcome"),
        ("shelf_catalog_retries_total", "Queries that were repeated because the catalog's database was away"),
        ("shelf_index_fetched_bytes_total", "Bytes of index segments that were fetched from other machines"),
        (
            "shelf_index_published_bytes_total",
            "Bytes of index segments that were published for other machines",
        ),
        (
            "shelf_index_fetch_failures_total",
            "Published index segments that could not be used; the journal was indexed instead",
        ),
    ] {
        metrics::describe_counter!(name, about);
    }
    metrics::describe_histogram!(
        "shelf_objects_seconds",
        metrics::Unit::Seconds,
        "Time of operations on a remote object store, with repetitions"
    );
    metrics::describe_histogram!(
        "shelf_catalog_seconds",
        metrics::Unit::Seconds,
        "Time of operations on a catalog in a database, with repetitions"
    );
    for (name, about) in [
        (
            "shelf_lease_held",
            "Whether this process holds a lease that one process of a library has at a time",
        ),
        ("shelf_index_lag_records", "Journal records that the index lacked when it was last asked for"),
        ("shelf_index_unwritten_records", "Journal records that are not in the segments on disk yet"),
        ("shelf_index_published_sequence", "The last journal record that published segments cover"),
    ] {
        metrics::describe_gauge!(name, about);
    }
    metrics::describe_gauge!(
        "shelf_cache_bytes",
        metrics::Unit::Bytes,
        "Size of this machine's copies when last seen"
    );
    app.library.begin_counters();
    let router = Router::new()
        .route("/metrics", get(move || std::future::ready(handle.render())))
        .route("/healthz", get(|| std::future::ready("ok\n")))
        .layer(middleware::from_fn(guard::check_loopback));
    connections::serve(listener, router, CONNECTIONS, stop, Duration::ZERO).await;
}
