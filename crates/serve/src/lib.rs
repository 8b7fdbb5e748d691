//! The doors: MCP over stdio and Streamable HTTP, REST, health and metrics.
//!
//! Everything a caller can do is in `shelf-tools`; here requests are turned into calls of that registry and replies
//! into what the protocol wants. This is the only crate that knows the MCP library and the HTTP framework.

mod app;
mod envelope;
pub mod http;
mod mcp;
pub mod stdio;

pub use app::{App, Timeouts};
