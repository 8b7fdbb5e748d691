//! `tools`: what agents are offered, for people to read.

use serde_json::{Map, Value, json};
use shelf_base::Kind;
use shelf_tools::{Tool, registry};

use crate::{
    cli::transfer::Tools,
    outcome::{CliError, Outcome},
    output::{Output, Tone},
};

pub(super) fn run(command: &Tools, output: &Output) -> Outcome {
    match &command.name {
        Some(name) => describe(name, output),
        None => list(output),
    }
}

fn list(output: &Output) -> Outcome {
    if output.json {
        let tools: Vec<Value> = registry().map(view).collect();
        return output.print_json(&json!({ "tools": tools }));
    }
    let row = |tool: &'static Tool| {
        let access = if tool.hints.read_only { "read" } else { "write" };
        let offered = if is_extra(tool) { "on request" } else { "yes" };
        [tool.name, tool.toolset(), access, offered, tool.title].map(str::to_owned).to_vec()
    };
    let rows: Vec<Vec<String>> = registry().map(row).collect();
    output.table(&["TOOL", "TOOLSET", "ACCESS", "OFFERED", "TITLE"], &rows)?;
    output.say(
        Tone::Good,
        "tools on request are offered by a server that is started with --toolsets all,extras",
    );
    output.say(Tone::Good, "describe one with: shelf tools NAME; call one with: shelf call NAME '{…}'");
    Ok(())
}

/// Whether agents are offered the tool only on request.
fn is_extra(tool: &Tool) -> bool {
    tool.toolset() != tool.family.word()
}

fn view(tool: &'static Tool) -> Value {
    json!({
        "name": tool.name,
        "title": tool.title,
        "toolset": tool.toolset(),
        "offered_by_default": !is_extra(tool),
        "read_only": tool.hints.read_only,
        "description": tool.description,
        "inputSchema": &*tool.input_schema(),
        "outputSchema": tool.output_schema(),
        "example": serde_json::from_str::<Value>(tool.example).unwrap_or_default(),
    })
}

fn describe(name: &str, output: &Output) -> Outcome {
    let Some(tool) = shelf_tools::find(name) else {
        let near = shelf_base::nearest(name, registry().map(|tool| tool.name), 3);
        let error = CliError::new(Kind::NotFound, format!("unknown tool '{name}'"));
        return Err(if near.is_empty() {
            error.hint("`shelf tools` lists all of them")
        } else {
            error.hint(format!("did you mean {}?", near.join(", ")))
        });
    };
    if output.json {
        return output.print_json(&view(tool));
    }
    let extra = if is_extra(tool) { ", offered on request: --toolsets all,extras" } else { "" };
    output.print(&format!("{}: {} (toolset {}{extra})", tool.name, tool.title, tool.toolset()))?;
    output.print("")?;
    output.print(tool.description)?;
    let schema = tool.input_schema();
    section("ARGUMENT", &schema, output)?;
    section("REPLY", &tool.output_schema(), output)?;
    output.print("")?;
    output.print(&format!("shelf call {} '{}'", tool.name, tool.example.replace('\'', "'\\''")))
}

/// The fields of a schema as a table.
fn section(head: &str, schema: &Map<String, Value>, output: &Output) -> Outcome {
    let Some(fields) = schema.get("properties").and_then(Value::as_object).filter(|all| !all.is_empty())
    else {
        return Ok(());
    };
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let is_argument = head == "ARGUMENT";
    let row = |(name, field): (&String, &Value)| {
        let mut kind = field["type"].as_str().unwrap_or("any").to_owned();
        if is_argument && required.contains(&name.as_str()) {
            kind.push_str(", required");
        }
        vec![name.clone(), kind, field["description"].as_str().unwrap_or_default().to_owned()]
    };
    let rows: Vec<Vec<String>> = fields.iter().map(row).collect();
    output.print("")?;
    output.wrapped_table(&[head, "TYPE", "MEANING"], &rows)
}
