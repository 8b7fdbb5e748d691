//! For tests only: a library in a temporary folder, calls of its tools, a small MCP client over stdio, a network that fails,
//! an S3 server, and the bodies of the fuzz targets.

pub mod fuzzing;
mod library;
mod people;
mod postgres;
mod programs;
mod proxy;
#[cfg(feature = "s3")]
mod s3;
mod shared;
mod stdio;

pub use library::{TestLibrary, error_of, tree};
pub use people::PASSWORD;
pub use postgres::Postgres;
pub use programs::can_run;
pub use proxy::{Proxy, Weather};
#[cfg(feature = "s3")]
pub use s3::S3Server;
pub use stdio::StdioClient;
