//! The tools: one table that MCP, REST, the command line and the reference pages are built from.
//!
//! Each tool is one file: its documentation and example first, then its arguments, its reply and one call to the
//! engine. A family is a folder with its table and its error shape. [`policy`] decides what an identity may list *and*
//! call. Nothing here depends on the MCP library or HTTP.

mod arguments;
mod books;
mod citations;
mod documents;
mod family;
mod limits;
mod meter;
pub mod policy;
pub mod prompts;
mod registry;
pub mod resources;
mod schema;
mod store;
pub mod verbatim;
mod workspace;

pub use arguments::check_arguments;
pub use family::{ErrorReply, Family, book_error_names};
pub use limits::Limits;
pub use registry::{Answer, Attachment, Context, Hints, Tool, busy, call, defect, find, invalid, registry};
pub use schema::of as schema_of;
