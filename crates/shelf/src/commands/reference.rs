//! `completions`, `man`, and the reference pages, all made from the code itself.

use std::{fs, path::Path};

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use serde_json::Value;
use shelf_base::{Kind, Retry};
use shelf_tools::registry;

use crate::{
    cli::Arguments,
    outcome::Outcome,
    output::Output,
    settings::{CONFIG_VARIABLE, DEFAULT, SETTINGS, TOKEN_VARIABLE},
};

pub(super) fn completions(shell: Shell, output: &Output) -> Outcome {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "shelf", &mut text);
    output.print_bytes(&text)
}

pub(super) fn manual(folder: Option<&Path>, output: &Output) -> Outcome {
    match folder {
        Some(folder) => {
            fs::create_dir_all(folder)?;
            clap_mangen::generate_to(Arguments::command(), folder)?;
            Ok(())
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Arguments::command()).render(&mut page)?;
            output.print_bytes(&page)
        }
    }
}

/// Writes every reference page into `folder`.
pub(super) fn pages(folder: &Path) -> Outcome {
    fs::create_dir_all(folder)?;
    for (name, text) in
        [("tools.md", tools()), ("cli.md", cli()), ("settings.md", settings()), ("errors.md", errors())]
    {
        fs::write(folder.join(name), text)?;
    }
    Ok(())
}

const MADE: &str = "<!-- Made by `cargo xtask docs` from the code; edit the code instead. -->\n";

fn tools() -> String {
    let mut page = format!("# Tools\n\n{MADE}\n");
    for tool in registry() {
        let hints = tool.hints;
        page.push_str(&format!(
            "## {}\n\n{} ({} family{})\n\n{}\n\nHints: read-only {}, destructive {}, idempotent {}, open world {}.\n\n",
            tool.name,
            tool.title,
            tool.family.word(),
            if tool.toolset() == tool.family.word() { "" } else { ", toolset extras" },
            tool.description,
            hints.read_only,
            hints.destructive,
            hints.idempotent,
            hints.open_world
        ));
        page.push_str(&fields("Arguments", &tool.input_schema()));
        page.push_str(&fields("Reply", &tool.output_schema()));
        page.push_str(&format!("Example:\n\n```json\n{}\n```\n\n", tool.example));
    }
    page.trim_end().to_owned() + "\n"
}

fn fields(title: &str, schema: &serde_json::Map<String, Value>) -> String {
    let Some(properties) =
        schema.get("properties").and_then(Value::as_object).filter(|found| !found.is_empty())
    else {
        return format!("{title}: none.\n\n");
    };
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut table = format!("| {} | type | meaning |\n| --- | --- | --- |\n", title.to_lowercase());
    for (name, property) in properties {
        let kind = property.get("type").and_then(Value::as_str).unwrap_or("array or object");
        let mark = if title == "Arguments" && required.contains(&name.as_str()) { ", required" } else { "" };
        let about =
            property.get("description").and_then(Value::as_str).unwrap_or_default().replace('|', "\\|");
        table.push_str(&format!("| `{name}` | {kind}{mark} | {about} |\n"));
    }
    table + "\n"
}

fn cli() -> String {
    let mut page = format!("# Command line\n\n{MADE}\n");
    let mut command = Arguments::command().term_width(100);
    command.build();
    describe(&mut command, "shelf", &mut page);
    page.trim_end().to_owned() + "\n"
}

fn describe(command: &mut Command, name: &str, page: &mut String) {
    let help = command.clone().bin_name(name).render_long_help().to_string();
    let help: Vec<&str> = help.lines().map(str::trim_end).collect();
    page.push_str(&format!("## {name}\n\n```text\n{}\n```\n\n", help.join("\n").trim_end()));
    let inner: Vec<String> = command
        .get_subcommands()
        .filter(|inner| !inner.is_hide_set() && inner.get_name() != "help")
        .map(|inner| inner.get_name().to_owned())
        .collect();
    for inner_name in inner {
        if let Some(inner) = command.find_subcommand_mut(&inner_name) {
            describe(inner, &format!("{name} {inner_name}"), page);
        }
    }
}

fn settings() -> String {
    let mut page = format!(
        "# Settings\n\n{MADE}\nFlags beat environment variables, those beat `shelf.toml`, and that beats the defaults. \
         `shelf config show` prints each value and its origin.\n\n| setting | environment | meaning |\n| --- | --- | --- |\n"
    );
    for setting in SETTINGS {
        page.push_str(&format!("| `{}` | `{}` | {} |\n", setting.key, setting.variable, setting.about));
    }
    page.push_str(&format!(
        "\n`{CONFIG_VARIABLE}` names the settings file. `{TOKEN_VARIABLE}` gives a stdio server the identity of a token.\n\n\
         The default file:\n\n```toml\n{}\n```\n",
        DEFAULT.trim_end()
    ));
    page
}

fn errors() -> String {
    let mut page = format!(
        "# Errors\n\n{MADE}\n| code | HTTP status | exit code | try again |\n| --- | --- | --- | --- |\n"
    );
    for kind in Kind::ALL {
        let row = kind.row();
        let retry = match row.retry {
            Retry::Never => "no",
            Retry::Later => "later",
        };
        page.push_str(&format!("| `{}` | {} | {} | {retry} |\n", row.code, row.status, row.exit));
    }
    page
}
