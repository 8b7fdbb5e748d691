//! For tests only: a library in a temporary folder, calls of its tools, a small MCP client over stdio, and the bodies
//! of the fuzz targets.

pub mod fuzzing;
mod library;
mod people;
mod postgres;
mod programs;
mod stdio;

pub use library::{TestLibrary, error_of, tree};
pub use people::PASSWORD;
pub use postgres::Postgres;
pub use programs::can_run;
pub use stdio::StdioClient;
