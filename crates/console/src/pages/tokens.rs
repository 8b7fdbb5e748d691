//! Tokens: made here, shown once, with what to paste where.

use maud::{Markup, html};
use serde_json::{Value, json};
use shelf_tools::ErrorReply;

use super::{Answer, ask, confirm, invalid, now, setup};
use crate::{AccountAction, Host, Reply, Request, fields::Fields, frame, words};

pub(super) fn page(host: &dyn Host, request: &Request) -> Answer {
    show(host, request, None, None)
}

/// A token that was just made: its label and its text.
struct Made {
    label: String,
    key: String,
}

fn show(host: &dyn Host, request: &Request, made: Option<Made>, refusal: Option<(u16, String)>) -> Answer {
    let status = refusal.as_ref().map_or(200, |(status, _)| *status);
    let personal = if host.visitor().is_person { Some(host.account(AccountAction::Tokens)?) } else { None };
    let shared =
        if host.may("list_cats_tool") { Some(ask(host, "list_cats_tool", json!({}))?) } else { None };
    let shelves = ask(host, "list_collections", json!({})).unwrap_or_default();
    Ok(frame::with_status(
        host,
        request,
        status,
        "Tokens",
        html! {
            h1 { "Tokens" }
            @if let Some((_, sentence)) = &refusal { p.refusal role="alert" { (sentence) } }
            @if let Some(Made { label, key }) = &made {
                section.secret aria-labelledby="made" data-at="/tokens" {
                    h2 id="made" { "The token " em { (words::plain(label)) } }
                    p { "It is shown only now. Only its hash is stored." }
                    div.paste { pre { code { (key) } } (frame::copy("Copy", key)) }
                    (setup::clients(&request.base_url, Some(key)))
                }
            }
            @match &personal {
                None => p.note { "Personal tokens are managed by a person who is signed in with a password, not with a token." },
                Some(tokens) => {
                    h2 { "Personal tokens" }
                    p.note { "A personal token acts as you, within what it may do." }
                    (table(host, tokens.as_array().map_or(&[][..], Vec::as_slice), "personal"))
                    @if host.visitor().may_write { (personal_form(host, request)) }
                }
            }
            @if let Some(tokens) = &shared {
                h2 { "Collection tokens" }
                p.note { "A collection token gives the document tools over one collection, and nothing else." }
                (table(host, tokens.as_array().map_or(&[][..], Vec::as_slice), "collection"))
                @if host.may("create_cat_tool") { (shared_form(host, request, &shelves)) }
            }
        },
    ))
}

fn table(host: &dyn Host, tokens: &[Value], kind: &str) -> Markup {
    let now = now();
    html! {
        @if tokens.is_empty() { p.note { "None yet." } }
        @else { div.scroll { table.data.stacked {
            thead { tr { th scope="col" { "Label" } th scope="col" { "May" } th scope="col" { "Made" } th scope="col" { "Last used" } th scope="col" { "Ends" } th { span.hidden { "Actions" } } } }
            tbody { @for token in tokens {
                @let active = token.flag("is_active");
                tr {
                    td data-label="Label" { (words::plain(token.text("label"))) @if !active { span.note { " ended" } } }
                    td.note data-label="May" { @match token.maybe("collection_name") {
                        Some(name) => { (words::plain(name)) ": " (token.text("permission").replace('_', " and ")) }
                        None => (token.list("scopes").iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ").to_lowercase()),
                    } }
                    td data-label="Made" { (frame::when(token.text("created_at"), now)) }
                    td data-label="Last used" { @match token.maybe("last_used_at") { Some(at) => (frame::when(at, now)), None => span.note { "never" } } }
                    td data-label="Ends" { @match token.maybe("expires_at") { Some(at) => (frame::at(at)), None => span.note { "never" } } }
                    td { @if active && host.visitor().may_write {
                        form.filters method="post" action="/tokens/change" { (frame::proof(host)) input type="hidden" name="kind" value=(kind); input type="hidden" name="id" value=(token.text("id"));
                            input type="hidden" name="label" value=(token.text("label"));
                            button.link name="do" value="rotate" { "Rotate…" } button.link name="do" value="revoke" { "Revoke…" } }
                    } }
                }
            } }
        } } }
    }
}

fn personal_form(host: &dyn Host, request: &Request) -> Markup {
    let (is_again, typed) = typed(request, "personal");
    html! {
        details id="make-personal" open[is_again] { summary { "Make a personal token" } form.stack method="post" action="/tokens/create" {
            (frame::proof(host)) (confirm::once()) input type="hidden" name="kind" value="personal";
            label { "Label" input name="label" required maxlength="200" placeholder="the agent or machine that will use it" value=(typed("label")); }
            fieldset { legend.note { "What it may do" }
                label.check { input type="checkbox" name="scope" value="READ" checked; " read" }
                label.check { input type="checkbox" name="scope" value="WRITE" checked; " write" }
                @if host.visitor().may_administer { label.check { input type="checkbox" name="scope" value="ADMIN"; " administer" } } }
            label { "Ends after days" input name="days" type="number" min="1" max="3650" placeholder="never" value=(typed("days")); }
            button.primary { "Make the token" }
        } }
    }
}

/// Whether a form of this kind was sent and failed, and what had been typed into its fields.
fn typed<'a>(request: &'a Request, kind: &str) -> (bool, impl Fn(&str) -> &'a str) {
    let is_again = request.field("kind") == Some(kind) && request.field("do").is_none();
    (is_again, move |name: &str| if is_again { request.field(name).unwrap_or_default() } else { "" })
}

fn shared_form(host: &dyn Host, request: &Request, shelves: &Value) -> Markup {
    let (is_again, typed) = typed(request, "collection");
    html! {
        details id="make-collection" open[is_again] { summary { "Make a collection token" } form.stack method="post" action="/tokens/create" {
            (frame::proof(host)) (confirm::once()) input type="hidden" name="kind" value="collection";
            label { "Label" input name="label" required maxlength="200" value=(typed("label")); }
            label { "Collection" select name="collection" { @for shelf in shelves.list("collections") { option value=(shelf.text("collection_id")) selected[typed("collection") == shelf.text("collection_id")] { (words::plain(shelf.text("name"))) } } } }
            label { "Permission" select name="permission" { option value="read" { "read" } option value="read_write" { "read and write" } } }
            label { "Ends after days" input name="days" type="number" min="1" max="3650" placeholder="never" value=(typed("days")); }
            button.primary { "Make the token" }
        } }
    }
}

pub(super) fn create(host: &dyn Host, request: &Request) -> Answer {
    if !confirm::is_first(host, request) {
        return again(host, request);
    }
    let made = match made(host, request) {
        Ok(made) => made,
        Err(error) => {
            let refusal = (error.kind.row().status, frame::told(&error.message));
            return show(host, request, None, Some(refusal));
        }
    };
    show(host, &plainly(request), Some(made), None)
}

/// The request without what was typed, so that forms are empty again.
fn plainly(request: &Request) -> Request {
    request.clone().with_form(b"")
}

/// The answer to a form that is sent again because its page was loaded again.
fn again(host: &dyn Host, request: &Request) -> Answer {
    let sentence = "This form was sent before, and its token was shown once; no other one was made. If you did not keep it, rotate it.";
    show(host, &plainly(request), None, Some((409, sentence.to_owned())))
}

fn made(host: &dyn Host, request: &Request) -> Result<Made, ErrorReply> {
    let label = request.field("label").ok_or_else(|| invalid("write a label for the token"))?.to_owned();
    let days = request
        .field("days")
        .map(|days| days.parse::<u64>().map_err(|_| invalid("days must be a number")))
        .transpose()?;
    let made = if request.field("kind") == Some("collection") {
        let collection = request.field("collection").ok_or_else(|| invalid("choose a collection"))?;
        let permission = request.field("permission").unwrap_or("read");
        let mut arguments = json!({ "label": label, "collection_id": collection, "permission": permission });
        if let Some(days) = days {
            arguments["expires_in_days"] = json!(days);
        }
        ask(host, "create_cat_tool", arguments)?
    } else {
        let scopes = request.fields("scope").map(str::to_owned).collect();
        host.account(AccountAction::CreateToken { label: label.clone(), scopes, days })?
    };
    Ok(Made { label, key: made.text("key").to_owned() })
}

/// What is asked before a token stops working.
fn question<'a>(request: &Request, does: &str) -> Option<confirm::Question<'a>> {
    let label = request.field("label").map_or_else(|| "the token".to_owned(), |label| format!("“{label}”"));
    let fields = &["kind", "id", "label", "do"];
    match does {
        "rotate" => Some(confirm::Question {
            title: format!("Rotate {label}?"),
            text: "It gets a new text, which is shown once. The present text stops working at once: whoever uses it needs the new one.",
            button: "Rotate the token",
            fields,
            back: "/tokens",
        }),
        "revoke" => Some(confirm::Question {
            title: format!("Revoke {label}?"),
            text: "It stops working at once, also for browsers that are signed in with it. This cannot be undone.",
            button: "Revoke the token",
            fields,
            back: "/tokens",
        }),
        _ => None,
    }
}

pub(super) fn change(host: &dyn Host, request: &Request) -> Answer {
    let id = request.field("id").ok_or_else(|| invalid("choose a token"))?.to_owned();
    let is_shared = request.field("kind") == Some("collection");
    if request.field("sure").is_none()
        && let Some(question) = question(request, request.field("do").unwrap_or_default())
    {
        return Ok(confirm::page(host, request, &question));
    }
    if !confirm::is_first(host, request) {
        return again(host, request);
    }
    match (request.field("do"), is_shared) {
        (Some("rotate"), shared) => {
            let made = if shared {
                ask(host, "rotate_cat_tool", json!({ "key_id": id }))?
            } else {
                host.account(AccountAction::RotateToken(id))?
            };
            let made = Made { label: made.text("label").to_owned(), key: made.text("key").to_owned() };
            show(host, &plainly(request), Some(made), None)
        }
        (Some("revoke"), true) => {
            ask(host, "revoke_cat_tool", json!({ "key_id": id })).map(|_| Reply::to("/tokens"))
        }
        (Some("revoke"), false) => host.account(AccountAction::RevokeToken(id)).map(|_| Reply::to("/tokens")),
        _ => Err(invalid("choose what to do with the token")),
    }
}
