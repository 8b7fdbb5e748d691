//! The visitor's own account: what it uses, where it is signed in, its password.

use maud::html;
use serde_json::Value;
use shelf_base::Kind;

use super::{Answer, invalid, now};
use crate::{AccountAction, Host, Reply, Request, fields::Fields, frame, words};

pub(super) fn page(host: &dyn Host, request: &Request) -> Answer {
    show(host, request, None)
}

/// The page, with the reason why a form that it has was refused.
fn show(host: &dyn Host, request: &Request, refusal: Option<(u16, String)>) -> Answer {
    let visitor = host.visitor();
    let profile = if visitor.is_person { host.account(AccountAction::Profile).ok() } else { None };
    let usage = host.account(AccountAction::Usage).ok();
    let sessions = if visitor.is_person { host.account(AccountAction::Sessions).ok() } else { None };
    let sessions = sessions.as_ref().and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let has_password = profile.as_ref().is_some_and(|profile| !profile.flag("is_local"));
    let status = refusal.as_ref().map_or(200, |(status, _)| *status);
    Ok(frame::with_status(
        host,
        request,
        status,
        "Account",
        html! {
            h1 { "Account" }
            @if let Some((_, sentence)) = &refusal { p.refusal role="alert" { (sentence) } }
            dl.facts {
                dt { "Name" } dd { (words::plain(&visitor.name)) }
                dt { "Signed in as" } dd { (visitor.kind) @if !visitor.may_write { ", read only" } @if visitor.may_administer { ", administrator" } }
                @if let Some(profile) = &profile {
                    @if let Some(email) = profile.maybe("email") { dt { "Email address" } dd { (words::plain(email)) } }
                    @if has_password { dt { "Made" } dd { (frame::at(profile.text("created_at"))) } }
                }
                @if let Some(usage) = &usage {
                    dt { "Documents" } dd { (words::count(usage.number("documents"))) " in " (words::counted(usage.number("collections"), "collection", "collections")) ", " (words::bytes(usage.number("bytes"))) }
                    dt { "Snapshots" } dd { (words::count(usage.number("snapshots"))) }
                    dt { "Active tokens" } dd { (usage.number("active_pats")) " personal, " (usage.number("active_cats")) " of collections" }
                }
            }
            @if !sessions.is_empty() {
                h2 { "Sessions" }
                table.data { thead { tr { th scope="col" { "Began" } th scope="col" { "Ends" } th { span.hidden { "Actions" } } } }
                    tbody { @for session in sessions { tr {
                        td { (frame::when(session.text("created_at"), now())) @if session.flag("is_current") { span.note { " this browser" } } }
                        td { (frame::at(session.text("expires_at"))) }
                        td { form method="post" action="/account/end" { (frame::proof(host)) input type="hidden" name="id" value=(session.text("id")); button.link { "Sign out" } } }
                    } } } }
            }
            @if has_password {
                h2 id="password" { "Password" }
                form.stack method="post" action="/account/password" {
                    (frame::proof(host))
                    label { "Present password" input type="password" name="current" required autocomplete="current-password"; }
                    label { "New password, at least 10 characters" input type="password" name="new" required minlength="10" autocomplete="new-password"; }
                    p.note { "All sessions end, this one too." }
                    button { "Change the password" }
                }
            }
        },
    ))
}

pub(super) fn change(host: &dyn Host, request: &Request, action: &str) -> Answer {
    match action {
        "end" => {
            let id = request.field("id").ok_or_else(|| invalid("choose a session"))?.to_owned();
            host.account(AccountAction::EndSession(id)).map(|_| Reply::to("/account"))
        }
        "password" => {
            let field = |name: &str| {
                request
                    .field(name)
                    .map(str::to_owned)
                    .ok_or_else(|| invalid(format!("write the {name} password")))
            };
            let action = AccountAction::ChangePassword { current: field("current")?, new: field("new")? };
            match host.account(action) {
                Ok(_) => Ok(Reply::to("/sign-in")),
                Err(error) if error.kind == Kind::Unauthenticated => show(
                    host,
                    request,
                    Some((403, "The present password is not right. Nothing was changed.".to_owned())),
                ),
                Err(error) => {
                    show(host, request, Some((error.kind.row().status, frame::told(&error.message))))
                }
            }
        }
        _ => Err(super::missing("there is no such action")),
    }
}
