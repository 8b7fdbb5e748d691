//! Administration: users, all tokens of collections, and the health of the library.

use maud::{Markup, html};
use serde_json::{Value, json};
use shelf_base::Kind;
use shelf_tools::ErrorReply;

use super::{Answer, ask, confirm, invalid, now};
use crate::{Host, Reply, Request, fields::Fields, frame, links, words};

pub(super) fn page(host: &dyn Host, request: &Request) -> Answer {
    show(host, request, None)
}

/// The page, with the reason why a form that it has was refused.
fn show(host: &dyn Host, request: &Request, refusal: Option<&ErrorReply>) -> Answer {
    must_administer(host)?;
    if request.query("part") == Some("run") {
        return Ok(Reply::html(200, run(host, request)?));
    }
    let matching = request.query("user").unwrap_or_default();
    let users = if matching.is_empty() {
        host.call("list_users_tool", json!({ "limit": 100 }))
    } else {
        host.call("search_users_tool", json!({ "query": matching, "limit": 100 }))
    }?;
    let status = ask(host, "status", json!({ "detailed": true }))?;
    let done = run(host, request)?;
    let typed = |name: &str| request.field(name).unwrap_or_default();
    Ok(frame::with_status(
        host,
        request,
        refusal.map_or(200, |error| error.kind.row().status),
        "Administration",
        html! {
            h1 { "Administration" }
            @if let Some(error) = refusal { p.refusal role="alert" { (frame::told(&error.message)) } }
            h2 { "Users" }
            form.filters { label { "Find " input name="user" value=(matching) placeholder="name or address"; } button { "Find" } }
            (user_table(host, users.value.as_array().map_or(&[][..], Vec::as_slice), matching))
            @if let Some(total @ 1..) = users.about.get("total").and_then(Value::as_u64) { p.note { (words::counted(total, "user", "users")) "." } }
            @if host.may("create_user") { details id="make" open[refusal.is_some()] { summary { "Make a user" } form.stack method="post" action="/admin/create" {
                (frame::proof(host))
                label { "Name" input name="username" required maxlength="64" autocomplete="off" value=(typed("username")); }
                label { "Email address" input name="email" type="email" required autocomplete="off" value=(typed("email")); }
                label { "First password, at least 10 characters" input name="password" type="password" required minlength="10" autocomplete="new-password"; }
                label.check { input type="checkbox" name="is_superuser" value="1" checked[!typed("is_superuser").is_empty()]; " administrator" }
                p { button.primary { "Make the user" } }
            } } }
            h2 { "Health" }
            (health(host, &status["details"]))
            p.actions {
                @for (word, name, tool) in RUNS { @if host.may(tool) { a href=(links::with("/admin", &[("run", word)])) data-run=(links::with("/admin/stream", &[("run", word)])) { (name) } } }
                a href="/tokens" { "All collection tokens" }
            }
            div data-run-result="" { (done) }
        },
    ))
}

/// Work that can be started: as the address names it, as people do, and its tool.
const RUNS: [(&str, &str, &str); 3] = [
    ("check", "Check everything", "check_library"),
    ("audit", "Verify the journal", "audit_journal"),
    ("gc", "What garbage collection would free", "plan_gc"),
];

/// The result of the work that an address asks for.
fn run(host: &dyn Host, request: &Request) -> Result<Markup, ErrorReply> {
    match request.query("run") {
        Some("check") => check(host),
        Some("audit") => audit(host),
        Some("gc") => gc(host),
        _ => Ok(html! {}),
    }
}

fn check(host: &dyn Host) -> Result<Markup, ErrorReply> {
    let found = ask(host, "check_library", json!({}))?;
    Ok(html! {
        div.state role="status" {
            @if found.flag("sound") { strong.good { "Everything is as it was stored" } }
            @else { strong.bad { (words::counted(found.list("findings").len() as u64, "thing is", "things are")) " wrong" } }
            p { (words::counted(found.number("blocks"), "block", "blocks")) " in " (words::counted(found.number("packs"), "pack", "packs")) ", "
                (words::counted(found.number("contents"), "content", "contents")) ", " (words::counted(found.number("versions"), "version", "versions")) ", "
                (words::counted(found.number("snapshots"), "snapshot", "snapshots")) " and " (words::counted(found.number("records"), "record", "records")) " of the journal were verified." }
            @if !found.flag("sound") {
                ul { @for finding in found.list("findings") { li { code { (words::plain(finding.text("place"))) } " " (words::plain(finding.text("what")))
                    @for path in finding.list("affects").iter().filter_map(Value::as_str).take(5) { br; span.note { "affects " (words::plain(path)) } } } } }
                p { "Run " code { "shelf check --repair" } " on the machine of the library." }
            }
        }
    })
}

fn user_table(host: &dyn Host, users: &[Value], matching: &str) -> Markup {
    html! {
        @if users.is_empty() && matching.is_empty() { p.note { "Nobody has an account yet. The owner of the library needs none." } }
        @else if users.is_empty() { p.note { "No name or address has “" (words::plain(matching)) "” in it." } }
        @else { div.scroll { table.data.stacked {
            thead { tr { th scope="col" { "Name" } th scope="col" { "Email address" } th scope="col" { "State" } th scope="col" { "Made" } th { span.hidden { "Actions" } } } }
            tbody { @for user in users {
                @let active = user.flag("is_active");
                tr {
                    td data-label="Name" { (words::plain(user.text("username"))) @if user.flag("is_superuser") { span.note { " administrator" } } }
                    td data-label="Email" { (words::plain(user.text("email"))) }
                    td data-label="State" { @if active { "active" } @else { span.bad { "deactivated" } } }
                    td data-label="Made" { (frame::when(user.text("created_at"), now())) }
                    td { @if host.may("update_user_tool") {
                        form.filters method="post" action="/admin/change" { (frame::proof(host)) input type="hidden" name="id" value=(user.text("id"));
                            input type="hidden" name="name" value=(user.text("username"));
                            button.link name="do" value=(if active { "deactivate" } else { "activate" }) { @if active { "Deactivate…" } @else { "Activate" } } }
                        details { summary.note { "New password" } form.filters method="post" action="/admin/change" { (frame::proof(host)) input type="hidden" name="id" value=(user.text("id"));
                            input type="password" name="password" minlength="10" required aria-label="New password" autocomplete="new-password"; button name="do" value="password" { "Set" } } }
                    } }
                }
            } }
        } } }
    }
}

fn health(host: &dyn Host, details: &Value) -> Markup {
    let (disk, index, compression) = (&details["disk"], &details["index"], &details["compression"]);
    let calls = ask(host, "call_statistics", json!({})).unwrap_or_default();
    let limits: Vec<String> = calls
        .list("limits")
        .iter()
        .map(|limit| format!("{} {}", limit.text("tool"), limit.number("per_minute")))
        .collect();
    html! {
        dl.facts {
            dt { "On disk" } dd { (words::bytes(disk.number("total_bytes"))) ": " (words::counted(disk.number("packs"), "pack", "packs")) " of " (words::bytes(disk.number("pack_bytes"))) ", catalog " (words::bytes(disk.number("catalog_bytes"))) }
            dt { "Waiting to be packed" } dd { (words::counted(disk.number("loose_blocks"), "block", "blocks")) ", " (words::bytes(disk.number("loose_bytes"))) }
            dt { "Compression" } dd { (words::bytes(compression.number("raw_bytes"))) " stored as " (words::bytes(compression.number("stored_bytes"))) }
            dt { "Search index" } dd { (words::counted(index.number("segments"), "segment", "segments")) ", " (words::counted(index.number("documents"), "document", "documents")) ", " (words::counted(index.number("pending"), "change", "changes")) " behind" }
            dt { "Background work" } dd { (deepening(index)) }
            dt { "Limits" } dd { @if limits.is_empty() { "none on the calls of single tools" } @else { (limits.join(", ")) " calls per minute for each identity" } }
            dt { "Journal" } dd { (words::counted(details.number("journal_sequence"), "record", "records")) }
        }
    }
}

/// What is done while nobody calls: the vectors of the deep model.
fn deepening(index: &Value) -> Markup {
    let (Some(deep), passages) =
        (index.get("deep_passages").and_then(Value::as_u64), index.number("passages"))
    else {
        return html! { "the deep model is off" };
    };
    let minutes = index.number("deepening_seconds").div_ceil(60);
    html! {
        @if passages == 0 { "nothing waits for the deep model" }
        @else if deep >= passages { "all passages have vectors of the deep model" }
        @else { (words::count(deep)) " of " (words::counted(passages, "passage", "passages")) " have vectors of the deep model; the others take about " (words::counted(minutes, "minute", "minutes")) " while nobody calls" }
    }
}

fn audit(host: &dyn Host) -> Result<Markup, ErrorReply> {
    let found = ask(host, "audit_journal", json!({}))?;
    Ok(html! {
        div.state role="status" {
            @if found.flag("sound") { strong.good { "The chain holds" } p { (words::counted(found.number("records"), "record", "records")) " verified." } }
            @else { strong.bad { "The chain is broken" } ul { @for finding in found.list("findings").iter().filter_map(Value::as_str) { li { (words::plain(finding)) } } } p { "Run " code { "shelf check" } " on the machine of the library." } }
        }
    })
}

fn gc(host: &dyn Host) -> Result<Markup, ErrorReply> {
    let plan = ask(host, "plan_gc", json!({}))?;
    Ok(html! {
        div.state role="status" {
            strong { "About " (words::bytes(plan.number("freed_bytes"))) " would become free" }
            p { @if plan.number("contents") == 0 { "Everything that is stored is needed; " } @else { (words::counted(plan.number("contents"), "stored file", "stored files")) " that nothing refers to any more; " }
                 (words::counted(plan.number("packs_deleted"), "pack", "packs")) " deleted, " (words::count(plan.number("packs_rewritten"))) " rewritten. All " (words::counted(plan.number("kept_snapshots"), "snapshot", "snapshots")) " are kept." }
            p { code { "shelf gc" } " does it." }
        }
    })
}

fn must_administer(host: &dyn Host) -> Result<(), ErrorReply> {
    if host.visitor().may_administer {
        return Ok(());
    }
    Err(super::problem(Kind::Denied, "This page is for administrators."))
}

pub(super) fn change(host: &dyn Host, request: &Request, action: &str) -> Answer {
    must_administer(host)?;
    let field = |name: &str| request.field(name).ok_or_else(|| invalid(format!("{name} is missing")));
    if action == "create" {
        let arguments = json!({ "username": field("username")?, "email": field("email")?, "password": field("password")?, "is_superuser": request.field("is_superuser").is_some() });
        return match ask(host, "create_user", arguments) {
            Ok(_) => Ok(Reply::to("/admin")),
            Err(error) => show(host, request, Some(&error)),
        };
    }
    if request.field("do") == Some("deactivate") && request.field("sure").is_none() {
        let question = confirm::Question {
            title: format!("Deactivate {}?", request.field("name").unwrap_or("this user")),
            text: "Signing in, all sessions and all tokens of this user stop working at once. Documents and collections stay. The user can be activated again.",
            button: "Deactivate the user",
            fields: &["id", "do", "name"],
            back: "/admin",
        };
        return Ok(confirm::page(host, request, &question));
    }
    let mut arguments = json!({ "user_id": field("id")? });
    match request.field("do") {
        Some("activate") => arguments["is_active"] = json!(true),
        Some("deactivate") => arguments["is_active"] = json!(false),
        Some("password") => arguments["password"] = json!(field("password")?),
        _ => return Err(invalid("choose what to do with the user")),
    }
    ask(host, "update_user_tool", arguments).map(|_| Reply::to("/admin"))
}
