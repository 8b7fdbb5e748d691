//! The tools: one table from which MCP, REST, the command line and the reference pages are made.
//!
//! Each tool is one file: its documentation and example first, then its arguments, its reply and one call of the
//! engine. A family is a folder with its table and its error shape. [`policy`] decides what an identity may list *and*
//! call. Nothing here knows the MCP library or HTTP.

mod arguments;
mod family;
mod limits;
pub mod policy;
mod registry;
pub mod resources;
mod schema;
mod store;
pub mod verbatim;
mod workspace;

pub use family::{Failure, Family};
pub use limits::Limits;
pub use registry::{Context, Hints, Tool, call, defect, find, registry};
