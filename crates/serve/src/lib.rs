//! The transports: MCP over stdio, Streamable HTTP and the older SSE, REST, health and metrics.
//!
//! Everything a caller can do is in `shelf-tools`; here requests are turned into calls of that registry and replies
//! into what the protocol wants. This is the only crate that knows the MCP library and the HTTP framework.

mod app;
mod archives;
mod backlog;
mod envelope;
pub mod http;
mod idle;
mod lines;
mod mcp;
mod standard;
pub mod stdio;
mod subscriptions;

pub use app::{App, BLOCKING_THREADS, Setup, Timeouts};
