//! `config`: shows the settings and where they come from.

use serde_json::json;

use crate::{
    cli,
    outcome::Outcome,
    output::Output,
    settings::{DEFAULT, Settings, usual_file},
};

pub(super) fn run(command: &cli::Config, settings: &Settings, output: &Output) -> Outcome {
    match command {
        cli::Config::Default if output.json => {
            let table: toml::Table = DEFAULT.parse().map_err(|error| anyhow::anyhow!("{error}"))?;
            output.print_json(&serde_json::to_value(table).map_err(|error| anyhow::anyhow!(error))?)
        }
        cli::Config::Default => output.print(DEFAULT.trim_end()),
        cli::Config::Show if output.json => {
            let all: Vec<_> = settings
                .all()
                .map(|(key, value, origin)| json!({ "key": key, "value": value, "origin": origin.to_string() }))
                .collect();
            output.print_json(&json!({ "settings": all, "data_dir": settings.data_dir()? }))
        }
        cli::Config::Show => {
            let rows: Vec<Vec<String>> = settings
                .all()
                .map(|(key, value, origin)| {
                    let shown = match (key, value.as_str()) {
                        ("data_dir", Some("")) => settings
                            .data_dir()
                            .map_or_else(|_| String::new(), |path| path.display().to_string()),
                        _ => value.to_string(),
                    };
                    vec![key.to_owned(), shown, origin.to_string()]
                })
                .collect();
            output.table(&["SETTING", "VALUE", "ORIGIN"], &rows)?;
            if let Some(path) = usual_file() {
                output.print(&format!("default location of shelf.toml: {}", path.display()))?;
            }
            Ok(())
        }
    }
}
