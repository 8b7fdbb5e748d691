//! `service`: a systemd unit that serves the library over HTTP from the start of the machine or session on.

use std::{fs, path::PathBuf, process::Command};

use directories::BaseDirs;
use serde_json::json;
use shelf_base::Kind;

use crate::{
    cli::setup::{Install, Service},
    outcome::{CliError, Outcome},
    output::{Output, Tone},
    settings::{ADDRESS_FORMS, Settings, parse_address},
};

/// The name of the unit.
const UNIT: &str = "shelfmark.service";
/// The unit of the whole machine, which packages ship too.
const SYSTEM_UNIT: &str = include_str!("../../../../packaging/shelfmark.service");

pub(super) fn run(command: &Service, settings: &Settings, output: &Output) -> Outcome {
    match command {
        Service::Install(command) => install(command, settings, output),
        Service::Uninstall { system } => uninstall(*system, output),
        Service::Status { system } => status(*system, output),
    }
}

fn install(command: &Install, settings: &Settings, output: &Output) -> Outcome {
    let unit = unit(command, settings)?;
    if command.print {
        output.print(unit.trim_end())?;
        say_variables(command.system, settings, output);
        return Ok(());
    }
    let path = place(command.system)?;
    let failed = |error: std::io::Error| {
        CliError::new(Kind::of_io(&error), format!("cannot write {}: {error}", path.display()))
            .hint("a unit of the whole machine needs root; without --system it is one of your account")
    };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    fs::write(&path, unit).map_err(failed)?;
    output.say(Tone::Good, &format!("unit written to {}", path.display()));
    say_variables(command.system, settings, output);
    let started = |done: Outcome| {
        done.map_err(|error| {
            error
                .hint("the unit file was written; start it yourself, or run `shelf serve --http` another way")
        })
    };
    started(systemctl(command.system, &["daemon-reload"]))?;
    if command.no_start {
        return Ok(());
    }
    started(systemctl(command.system, &["enable", "--now", UNIT]))?;
    output.say(Tone::Good, "the server is running, and starts again with the next session");
    output.say(
        Tone::Good,
        "its first token is in its log: journalctl --user -u shelfmark; or `shelf token create`",
    );
    Ok(())
}

/// What the unit does not contain, because it is secret or concerns more than this program.
fn say_variables(system: bool, settings: &Settings, output: &Output) {
    let variables = settings.variables(|name| std::env::var(name).ok());
    if variables.is_empty() {
        return;
    }
    let names = variables.join(", ");
    let edit = if system { "systemctl edit" } else { "systemctl --user edit" };
    let text = format!(
        "the server must have these variables: {names}; `{edit} shelfmark` sets them with Environment="
    );
    output.say(Tone::Warning, &text);
}

fn uninstall(system: bool, output: &Output) -> Outcome {
    let path = place(system)?;
    if !path.exists() {
        return Err(CliError::new(Kind::NotFound, format!("there is no unit at {}", path.display())).hint(
            "`shelf service status` looks for the unit of your account, and with --system for the machine's",
        ));
    }
    // A unit that is not loaded cannot be stopped; it is removed all the same.
    let stopped = systemctl(system, &["disable", "--now", UNIT]);
    fs::remove_file(&path)?;
    output.say(Tone::Good, &format!("{} removed; the library was left as it is", path.display()));
    stopped
        .and_then(|()| systemctl(system, &["daemon-reload"]))
        .map_err(|error| error.hint("the unit file is gone; if the server still runs, stop it yourself"))
}

fn status(system: bool, output: &Output) -> Outcome {
    let path = place(system)?;
    if !path.exists() {
        if output.json {
            output.print_json(&json!({ "installed": false, "unit": null, "state": null }))?;
        }
        return Err(
            CliError::notice("the service is not installed").hint("`shelf service install` installs it")
        );
    }
    if !output.json {
        output.print(&format!("unit    {}", path.display()))?;
    }
    let mut asked = Command::new("systemctl");
    if !system {
        asked.arg("--user");
    }
    let state = asked.args(["is-active", UNIT]).output().map_err(no_systemd)?;
    let state = String::from_utf8_lossy(&state.stdout).trim().to_owned();
    let state = if state.is_empty() { "unknown" } else { &state };
    if output.json {
        return output.print_json(&json!({ "installed": true, "unit": path, "state": state }));
    }
    output.print(&format!("state   {state}"))
}

/// The text of the unit: the shipped one for the whole machine, or one that runs this program on this library.
fn unit(command: &Install, settings: &Settings) -> Outcome<String> {
    let address = match &command.http {
        Some(text) => parse_address(text).map(|_| text.clone()).ok_or_else(|| {
            CliError::new(Kind::Invalid, format!("--http must be {ADDRESS_FORMS}, not '{text}'"))
        })?,
        None => settings.text("http.listen").to_owned(),
    };
    let program = std::env::current_exe()?.display().to_string();
    if command.system {
        let unit = SYSTEM_UNIT.replace("/usr/bin/shelf", &escape(&program));
        return Ok(unit.replace("127.0.0.1:7433", &escape(&address)));
    }
    let mut words = vec![program];
    words.extend(settings.flags_with_folder()?);
    words.extend(["serve".to_owned(), "--http".to_owned(), address]);
    let command: Vec<String> = words.iter().map(|word| escape(word)).collect();
    Ok(format!(
        "[Unit]\nDescription=Shelfmark, a library for AI agents and people\nAfter=network.target\n\n\
         [Service]\nExecStart={}\nRestart=on-failure\nRestartSec=2\n\
         NoNewPrivileges=true\n\n[Install]\nWantedBy=default.target\n",
        command.join(" ")
    ))
}

/// A word of a unit's command line.
fn escape(word: &str) -> String {
    let word = word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    if word.contains([' ', '\t', ';']) { format!("\"{word}\"") } else { word }
}

fn place(system: bool) -> Outcome<PathBuf> {
    if system {
        return Ok(PathBuf::from("/etc/systemd/system").join(UNIT));
    }
    let base = BaseDirs::new()
        .ok_or_else(|| CliError::new(Kind::Unavailable, "this system defines no home folder; set HOME"))?;
    Ok(base.config_dir().join("systemd/user").join(UNIT))
}

fn systemctl(system: bool, arguments: &[&str]) -> Outcome {
    let mut command = Command::new("systemctl");
    if !system {
        command.arg("--user");
    }
    let done = command.args(arguments).output().map_err(no_systemd)?;
    if done.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&done.stderr).trim().to_owned();
    let message = format!("systemctl {} failed: {why}", arguments.join(" "));
    Err(CliError::new(Kind::Unavailable, message))
}

fn no_systemd(error: std::io::Error) -> CliError {
    CliError::new(Kind::Unavailable, format!("systemctl cannot be run: {error}")).hint(
        "`shelf service` needs systemd; run `shelf serve --http` with what starts programs on this system",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_unit_are_escaped() {
        assert_eq!(escape("/usr/bin/shelf"), "/usr/bin/shelf");
        assert_eq!(escape("/home/a b/100%"), "\"/home/a b/100%%\"");
        assert_eq!(escape("a$b"), "a$$b");
    }
}
