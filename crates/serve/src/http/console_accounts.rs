//! What the pages about accounts do, as the REST routes of the same name do it.

use std::sync::Arc;

use serde_json::{Value, json};
use shelf_base::{ErrorInfo, Kind};
use shelf_console::AccountAction;
use shelf_engine::{Caller, Error, KeyRequest, Library, PersonalScope};
use shelf_tools::{ErrorReply, policy::Selection};

use super::accounts;
use crate::App;

/// An error in the shape that pages take.
pub(super) fn refusal(kind: Kind, message: &str) -> ErrorReply {
    ErrorReply {
        kind,
        text: message.to_owned(),
        message: message.to_owned(),
        hints: Vec::new(),
        retry_after: None,
    }
}

fn failed(error: &Error) -> ErrorReply {
    let message = match error {
        Error::NotFound { what, .. } => accounts::not_found(what),
        other => other.to_string(),
    };
    ErrorReply { hints: error.hints(), ..refusal(error.kind(), &message) }
}

/// Does it.
pub(super) fn act(
    app: &Arc<App>,
    caller: &Caller,
    selection: &Selection,
    action: AccountAction,
) -> Result<Value, ErrorReply> {
    let library = &app.library;
    let is_reading = matches!(
        action,
        AccountAction::Tokens
            | AccountAction::Profile
            | AccountAction::Usage
            | AccountAction::Sessions
            | AccountAction::EndSession(_)
    );
    if selection.read_only && !is_reading {
        return Err(refusal(Kind::Denied, "Insufficient permissions: write access required"));
    }
    work(library, caller, action).map_err(|error| failed(&error))
}

fn work(library: &Library, caller: &Caller, action: AccountAction) -> Result<Value, Error> {
    match action {
        AccountAction::Tokens => {
            let tokens = library.personal_tokens(caller)?;
            Ok(json!(
                tokens.iter().map(|token| accounts::token_view(token, None, library)).collect::<Vec<_>>()
            ))
        }
        AccountAction::CreateToken { label, scopes, days } => {
            let scopes: Vec<PersonalScope> =
                scopes.iter().map(|word| accounts::scope(word)).collect::<Result<_, _>>()?;
            let minted = library.create_personal(caller, KeyRequest { label, days }, Some(&scopes))?;
            Ok(
                json!({ "id": minted.token.id.to_string(), "label": minted.token.label, "key": minted.text.reveal() }),
            )
        }
        AccountAction::RotateToken(id) => {
            let (token, key) = library.rotate_personal(caller, &id)?;
            Ok(json!(accounts::token_view(&token, Some(key.reveal().to_owned()), library)))
        }
        AccountAction::RevokeToken(id) => library.revoke_personal(caller, &id).map(|()| Value::Null),
        AccountAction::Profile => {
            let account = library.profile(caller)?;
            Ok(json!({
                "id": account.id.to_string(),
                "username": account.username,
                "email": account.email,
                "is_superuser": account.is_superuser,
                "created_at": account.created_at.to_string(),
                "is_local": account.id == shelf_base::ids::LOCAL_ACCOUNT,
            }))
        }
        AccountAction::Usage => {
            let usage = library.usage(caller)?;
            Ok(json!({
                "collections": usage.collections, "documents": usage.documents, "bytes": usage.bytes,
                "snapshots": usage.snapshots, "active_pats": usage.personal_tokens, "active_cats": usage.collection_tokens,
            }))
        }
        AccountAction::Sessions => accounts::session_views(library, caller).map(|sessions| json!(sessions)),
        AccountAction::EndSession(id) => library.end_session(caller, &id).map(|()| Value::Null),
        AccountAction::ChangePassword { current, new } => {
            library.change_password(caller, &current, &new).map(|()| Value::Null)
        }
    }
}
