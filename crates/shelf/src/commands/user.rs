//! `user`: accounts, as the owner of the data directory manages them.

use std::io::{IsTerminal, Write};

use serde_json::{Value, json};
use shelf_base::Kind;
use shelf_engine::{Account, AccountUpdate, Caller, House, Registration};

use crate::{
    cli,
    outcome::{Outcome, Trouble},
    output::{Output, Tone},
};

/// Accounts that one list shows.
const MOST: usize = 10_000;

pub(super) fn run(command: &cli::User, house: &House, output: &Output) -> Outcome {
    let owner = Caller::owner();
    match command {
        cli::User::Create { username, email, admin } => {
            let password = password(output)?;
            let request = Registration { email: email.clone(), username: username.clone(), password };
            let made = house.create_user(&owner, request, *admin)?;
            show(&made, output, "made")
        }
        cli::User::List { query } => list(house, &owner, query.as_deref(), output),
        cli::User::Show { user } => show(&find(house, &owner, user)?, output, ""),
        cli::User::Update(command) => update(command, house, &owner, output),
        cli::User::Delete { user, yes } => delete(house, &owner, user, *yes, output),
    }
}

fn find(house: &House, owner: &Caller, user: &str) -> Outcome<Account> {
    let found = house.user(owner, user).or_else(|_| house.user_named(owner, user));
    found.map_err(|error| Trouble::of(&error).hint("shelf user list shows everybody"))
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
        (false, _) => "closed",
        (true, true) => "administrator",
        (true, false) => "user",
    };
    vec![
        account.id.to_string(),
        account.username.clone(),
        account.email.clone().unwrap_or_default(),
        state.to_owned(),
        account.created_at.to_string(),
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

fn list(house: &House, owner: &Caller, query: Option<&str>, output: &Output) -> Outcome {
    let (found, total) = house.users(owner, query, MOST, 0)?;
    if output.json {
        let users: Vec<Value> = found.iter().map(view).collect();
        return output.print_json(&json!({ "users": users, "total": total }));
    }
    if found.is_empty() {
        output.say(
            Tone::Warning,
            "there is nobody yet; make the first account: shelf user create NAME --email ADDRESS --admin",
        );
    }
    output.table(&HEAD, &found.iter().map(row).collect::<Vec<_>>())
}

fn update(command: &cli::UserUpdate, house: &House, owner: &Caller, output: &Output) -> Outcome {
    let account = find(house, owner, &command.user)?;
    let password = if command.password { Some(password(output)?) } else { None };
    let update = AccountUpdate {
        email: command.email.clone(),
        username: command.username.clone(),
        password,
        is_active: command.active,
        is_superuser: command.admin,
    };
    let changed = house.update_user(owner, &account.id.to_string(), update)?;
    show(&changed, output, "changed")
}

fn delete(house: &House, owner: &Caller, user: &str, yes: bool, output: &Output) -> Outcome {
    let account = find(house, owner, user)?;
    if !yes {
        let trouble = Trouble::new(
            Kind::Conflict,
            format!("deleting {} deletes all of its collections, documents and tokens", account.username),
        );
        return Err(
            trouble.hint("say --yes to do it, or close the account: shelf user update NAME --active false")
        );
    }
    house.delete_user(owner, &account.id.to_string())?;
    if output.json {
        return output
            .print_json(&json!({ "message": "User deleted successfully", "id": account.id.to_string() }));
    }
    output.say(Tone::Good, &format!("deleted: {}", account.username));
    Ok(())
}

/// A password that nobody sees: asked for without echo on a terminal, the first line of standard input otherwise. Never
/// an argument, which every process of the machine could read.
fn password(output: &Output) -> Outcome<String> {
    let input = std::io::stdin();
    if !input.is_terminal() {
        let mut line = String::new();
        input.read_line(&mut line)?;
        return Ok(line.trim_end_matches(['\n', '\r']).to_owned());
    }
    let first = ask(output, "Password: ")?;
    if first != ask(output, "Again: ")? {
        return Err(Trouble::new(Kind::Invalid, "the two passwords differ"));
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
