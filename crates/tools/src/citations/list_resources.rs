//! `listResources`: the resources that can be cited by id.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "listResources",
    title: "List citable resources",
    description: "List the ids of all resources that were added for citing. Continue with getStructure. Every other \
                  document can be cited too: getStructure, getNode and resolve also take a document UUID or a content \
                  hash from search or list.",
    family: Family::Citations,
    audience: Audience::Personal,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: "{}",
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let Arguments {} = arguments::read(arguments)?;
        let found = context.library.list_resources(context.caller)?;
        reply(&Reply { resources: found.resources, truncated: found.truncated })
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// Resource ids, sorted
    resources: Vec<String>,
    /// Whether there are more than one reply lists
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}
