//! `token`: personal access tokens of the `local` account.

use serde_json::{Value, json};
use shelf_base::{Kind, Moment, ids::TokenId};
use shelf_engine::Library;

use crate::{
    cli,
    outcome::{CliError, Outcome},
    output::{Output, Tone, seconds},
};

pub(super) fn run(command: &cli::Token, library: &Library, output: &Output) -> Outcome {
    match command {
        cli::Token::Create { label, expires_in_days } => create(label, *expires_in_days, library, output),
        cli::Token::List => list(library, output),
        cli::Token::Revoke { id } => revoke(id, library, output),
    }
}

fn create(label: &str, days: Option<u32>, library: &Library, output: &Output) -> Outcome {
    let minted = library.mint_local_token(label, days.map(u64::from))?;
    if output.json {
        return output.print_json(&json!({
            "id": minted.token.id.to_string(),
            "label": minted.token.label,
            "key": minted.text.reveal(),
            "expires_at": minted.token.expires_at.map(|at| at.to_string()),
        }));
    }
    output.say(Tone::Warning, "this token is shown only once; only its hash is stored");
    output.print(minted.text.reveal())
}

fn list(library: &Library, output: &Output) -> Outcome {
    let now = library.now();
    let tokens = library.local_tokens()?;
    let state = |revoked: Option<Moment>, expires: Option<Moment>| match (revoked, expires) {
        (Some(_), _) => "revoked",
        (None, Some(at)) if at <= now => "expired",
        _ => "active",
    };
    if output.json {
        let tokens: Vec<Value> = tokens
            .iter()
            .map(|found| {
                json!({
                    "id": found.token.id.to_string(),
                    "label": found.token.label,
                    "state": state(found.revoked_at, found.token.expires_at),
                    "created_at": found.token.created_at.to_string(),
                    "expires_at": found.token.expires_at.map(|at| at.to_string()),
                })
            })
            .collect();
        return output.print_json(&json!({ "tokens": tokens }));
    }
    let rows: Vec<Vec<String>> = tokens
        .iter()
        .map(|found| {
            vec![
                found.token.id.to_string(),
                found.token.label.clone(),
                state(found.revoked_at, found.token.expires_at).to_owned(),
                seconds(&found.token.created_at.to_string()),
            ]
        })
        .collect();
    output.table(&["ID", "LABEL", "STATE", "CREATED"], &rows)
}

fn revoke(id: &str, library: &Library, output: &Output) -> Outcome {
    let parsed: TokenId =
        id.parse().map_err(|_| CliError::new(Kind::Invalid, format!("'{id}' is not the id of a token")))?;
    if !library.revoke_local_token(parsed)? {
        let error = CliError::new(Kind::NotFound, format!("no active token {id}"));
        return Err(error.hint("run `shelf token list` to see token IDs"));
    }
    output.say(Tone::Good, "revoked; the token no longer works");
    Ok(())
}
