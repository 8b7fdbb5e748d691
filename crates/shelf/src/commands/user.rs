//! `user`: account management for the owner of the data directory.

use std::io::{IsTerminal, Write};

use serde_json::{Value, json};
use shelf_base::Kind;
use shelf_engine::{Account, AccountUpdate, Caller, Library, Registration};

use super::{existing, open_loudly};
use crate::{
    cli,
    outcome::{CliError, Outcome},
    output::{Output, Tone, seconds},
    settings::Settings,
};

/// Most accounts shown in one list.
const MOST: usize = 10_000;

pub(super) fn run(command: &cli::User, settings: &Settings, output: &Output) -> Outcome {
    if let cli::User::Create { username, email, admin } = command {
        let request =
            Registration { email: email.clone(), username: username.clone(), password: password(output)? };
        // What is refused anyway must not make a library first.
        request.check()?;
        let library = open_loudly(settings, true, output)?;
        return show(&library.create_user(&Caller::owner(), request, *admin)?, output, "created");
    }
    let (library, owner) = (&existing(settings)?, Caller::owner());
    match command {
        cli::User::Create { .. } => Ok(()),
        cli::User::List { query } => list(library, &owner, query.as_deref(), output),
        cli::User::Show { user } => show(&find(library, &owner, user)?, output, ""),
        cli::User::Update(command) => update(command, library, &owner, output),
        cli::User::Delete { user, yes } => delete(library, &owner, user, *yes, output),
    }
}

fn find(library: &Library, owner: &Caller, user: &str) -> Outcome<Account> {
    let found = library.user(owner, user).or_else(|_| library.user_named(owner, user));
    found.map_err(|error| CliError::of(&error).hint("run `shelf user list` to see all accounts"))
}

fn view(account: &Account) -> Value {
    json!({
        "id": account.id.to_string(),
        "email": account.email,
        "username": account.username,
        "is_active": account.is_active,
        "is_superuser": account.is_superuser,
        "created_at": account.created_at.to_string(),
    })
}

fn row(account: &Account) -> Vec<String> {
    let state = match (account.is_active, account.is_superuser) {
        (false, _) => "inactive",
        (true, true) => "administrator",
        (true, false) => "user",
    };
    vec![
        account.id.to_string(),
        account.username.clone(),
        account.email.clone().unwrap_or_default(),
        state.to_owned(),
        seconds(&account.created_at.to_string()),
    ]
}

const HEAD: [&str; 5] = ["ID", "USERNAME", "EMAIL", "STATE", "CREATED"];

fn show(account: &Account, output: &Output, done: &str) -> Outcome {
    if output.json {
        return output.print_json(&view(account));
    }
    if !done.is_empty() {
        output.say(Tone::Good, &format!("{done}: {}", account.username));
    }
    output.table(&HEAD, &[row(account)])
}

fn list(library: &Library, owner: &Caller, query: Option<&str>, output: &Output) -> Outcome {
    let (found, total) = library.users(owner, query, MOST, 0)?;
    if output.json {
        let users: Vec<Value> = found.iter().map(view).collect();
        return output.print_json(&json!({ "users": users, "total": total }));
    }
    if found.is_empty() {
        output.say(
            Tone::Warning,
            "no accounts yet; create the first one: shelf user create NAME --email ADDRESS --admin",
        );
    }
    output.table(&HEAD, &found.iter().map(row).collect::<Vec<_>>())
}

fn update(command: &cli::UserUpdate, library: &Library, owner: &Caller, output: &Output) -> Outcome {
    let is_nothing = command.email.is_none()
        && command.username.is_none()
        && !command.password
        && command.active.is_none()
        && command.admin.is_none();
    if is_nothing {
        let message = "nothing to change: give --email, --username, --password, --active or --admin";
        return Err(CliError::new(Kind::Invalid, message));
    }
    let account = find(library, owner, &command.user)?;
    let password = if command.password { Some(password(output)?) } else { None };
    let update = AccountUpdate {
        email: command.email.clone(),
        username: command.username.clone(),
        password,
        is_active: command.active,
        is_superuser: command.admin,
    };
    let changed = library.update_user(owner, &account.id.to_string(), update).map_err(administrators)?;
    show(&changed, output, "changed")
}

fn delete(library: &Library, owner: &Caller, user: &str, yes: bool, output: &Output) -> Outcome {
    let account = find(library, owner, user)?;
    if !yes {
        // As `gc` without --yes: what was given is not enough, and nothing is in the way.
        let error = CliError::new(
            Kind::Invalid,
            format!(
                "deleting {} also deletes all of its collections, documents and tokens",
                account.username
            ),
        );
        return Err(error
            .hint("pass --yes to confirm, or deactivate it instead: shelf user update NAME --active false"));
    }
    library
        .delete_user(owner, &account.id.to_string(), &crate::progress::call(output))
        .map_err(administrators)?;
    if output.json {
        return output
            .print_json(&json!({ "message": "User deleted successfully", "id": account.id.to_string() }));
    }
    output.say(Tone::Good, &format!("deleted: {}", account.username));
    Ok(())
}

/// The error in the words of these commands, which call superusers administrators.
fn administrators(error: shelf_engine::Error) -> CliError {
    let error = CliError::from(error);
    CliError { message: error.message.replace("superuser", "administrator"), ..error }
}

/// Reads a password: prompted for without echo on a terminal, the first line of stdin otherwise. It is never an
/// argument, which every process on the machine could read.
fn password(output: &Output) -> Outcome<String> {
    let input = std::io::stdin();
    if !input.is_terminal() {
        let mut line = String::new();
        input.read_line(&mut line)?;
        return Ok(line.trim_end_matches(['\n', '\r']).to_owned());
    }
    let first = ask(output, "Password: ")?;
    if first != ask(output, "Repeat password: ")? {
        return Err(CliError::new(Kind::Invalid, "the passwords do not match"));
    }
    Ok(first)
}

fn ask(output: &Output, prompt: &str) -> Outcome<String> {
    use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
    output.tell_inline(prompt);
    std::io::stderr().flush()?;
    let input = std::io::stdin();
    let before = tcgetattr(&input).map_err(std::io::Error::from)?;
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&input, OptionalActions::Flush, &silent).map_err(std::io::Error::from)?;
    let mut line = String::new();
    let read = input.read_line(&mut line);
    let restored = tcsetattr(&input, OptionalActions::Flush, &before);
    output.tell("");
    read?;
    restored.map_err(std::io::Error::from)?;
    Ok(line.trim_end_matches(['\n', '\r']).to_owned())
}
