//! `hello`: tests the connection.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "hello",
    title: "Say hello",
    description: "Returns a greeting message to verify MCP connectivity. Takes no arguments and changes nothing. Use status \
                  for the state of the library itself.",
    family: Family::Workspace,
    audience: Audience::Personal,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: "{}",
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let Arguments {} = arguments::read(arguments)?;
        reply(&Reply {
            message: "Hello from AI Practitioner Learning OS!".into(),
            timestamp: context.library.now().to_string(),
            server: "shelfmark".into(),
            version: env!("CARGO_PKG_VERSION").into(),
        })
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// Greeting message
    message: String,
    /// Server timestamp
    #[schemars(extend("format" = "date-time"))]
    timestamp: String,
    /// Name of the server
    server: String,
    /// Version of the server
    version: String,
}
