//! What all pages share: the head, the way to other pages, and how errors look.

use maud::{DOCTYPE, Markup, html};
use shelf_base::Kind;
use shelf_tools::ErrorReply;

use crate::{Host, Method, Reply, Request, assets, words};

/// What stands for a tool in the menu of those who have the document tools of one collection and nothing else.
const CONFINED: &str = "";
/// The pages in the menu: path, name, and a tool without which the page would be empty.
const MENU: [(&str, &str, &str); 10] = [
    ("/", "Overview", "status"),
    ("/", "Documents", CONFINED),
    ("/search", "Search", "search"),
    ("/c", "Collections", "list_collections"),
    ("/books", "Books", "list_books"),
    ("/graph", "Graph", "graph"),
    ("/cite", "Evidence", "resolve"),
    ("/snapshots", "Snapshots", "list_snapshots"),
    ("/memory", "Memory", "query_memory"),
    ("/activity", "Activity", "activity"),
];

/// A whole page.
pub(crate) fn page(host: &dyn Host, request: &Request, title: &str, body: Markup) -> Reply {
    with_status(host, request, 200, title, body)
}

/// A whole page with another status.
pub(crate) fn with_status(
    host: &dyn Host,
    request: &Request,
    status: u16,
    title: &str,
    body: Markup,
) -> Reply {
    let here = request.segments.first().map_or_else(|| "/".to_owned(), |first| format!("/{first}"));
    let here = if here == "/d" { "/c" } else { &here };
    let markup = shell(
        request,
        title,
        &host.visitor().proof,
        html! {
            header.bar {
                a.brand href="/" { img src={ "/console/mark.svg?" (assets::stamp()) } alt="" width="22" height="22"; " Shelfmark" }
                @if host.may("search") || is_confined(host) {
                    form.quick action="/search" role="search" {
                        input type="search" name="q" placeholder="Search" aria-label="Search the library" autocomplete="off";
                        kbd aria-hidden="true" { "/" }
                    }
                }
                details.menu { summary { "Menu" } (menu(host, here)) }
            }
            div.columns {
                nav.side aria-label="Pages" { (menu(host, here)) }
                main id="main" tabindex="-1" { (body)
                    @if request.method == Method::Get && status == 200 {
                        footer.foot { a href={ (request.address) @if request.address.contains('?') { "&" } @else { "?" } "part=json" } { "This page as JSON" } }
                    }
                }
            }
            (places(host))
        },
    );
    Reply::html(status, markup)
}

/// A page for somebody who is not signed in.
pub(crate) fn stranger(request: &Request, status: u16, title: &str, body: Markup) -> Reply {
    Reply::html(status, shell(request, title, "", html! { main.door id="main" { (body) } }))
}

fn shell(request: &Request, title: &str, proof: &str, body: Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" data-theme=[request.theme] {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="proof" content=(proof);
                title { (words::plain(title)) " · Shelfmark" }
                link rel="icon" href={ "/console/mark.svg?" (assets::stamp()) };
                link rel="stylesheet" href={ "/console/console.css?" (assets::stamp()) };
                script type="module" src={ "/console/console.js?" (assets::stamp()) } {}
            }
            body {
                a.skip href="#main" { "Skip to content" }
                (body)
            }
        }
    }
}

fn menu(host: &dyn Host, here: &str) -> Markup {
    let visitor = host.visitor();
    html! {
        ul {
            @for (path, name, tool) in MENU {
                @if host.may(tool) || tool == CONFINED && is_confined(host) { li { a href=(path) aria-current=[(path == here).then_some("page")] { (name) } } }
            }
        }
        ul {
            @if may_see_tokens(host) {
                li { a href="/tokens" aria-current=[(here == "/tokens").then_some("page")] { "Tokens" } }
            }
            li { a href="/account" aria-current=[(here == "/account").then_some("page")] { "Account" } }
            @if visitor.may_administer {
                li { a href="/admin" aria-current=[(here == "/admin").then_some("page")] { "Administration" } }
            }
        }
        div.who {
            p { (words::plain(&visitor.name)) br; span.note { (visitor.kind) @if !visitor.may_write { ", read only" } } }
            div.links {
                button.link type="button" data-theme-switch="" hidden { "Light or dark" }
                button.link type="button" data-shortcuts="" hidden { "Shortcuts" kbd { "?" } }
                @if visitor.can_sign_out {
                    form method="post" action="/sign-out" { (proof(host)) button.link { "Sign out" } }
                }
            }
        }
    }
}

/// Whether somebody has the document tools of one collection and nothing else, as collection tokens do.
pub(crate) fn is_confined(host: &dyn Host) -> bool {
    !host.may("describe_document") && host.may("get_document_tool")
}

/// Whether the commands of `shelf` act for somebody: on the machine of the library they act for its owner, so that others
/// would look for the result in vain.
pub(crate) fn has_commands(host: &dyn Host) -> bool {
    host.visitor().kind == "owner"
}

/// Whether there are tokens that somebody may see.
fn may_see_tokens(host: &dyn Host) -> bool {
    host.visitor().is_person || host.may("list_cats_tool")
}

/// Actions that the palette reaches from every page: name, address, and the tool without which there is none.
const ACTIONS: [(&str, &str, &str); 9] = [
    ("Upload files", "/c/default#upload", "add"),
    ("Make a collection", "/c#make", "create_collection_tool"),
    ("Write a lesson", "/books#write", "write_content"),
    ("Make a collection token", "/tokens#make-collection", "create_cat_tool"),
    ("Make a user", "/admin#make", "create_user"),
    ("Check everything", "/admin?run=check", "check_library"),
    ("Verify the journal", "/admin?run=audit", "audit_journal"),
    ("What garbage collection would free", "/admin?run=gc", "plan_gc"),
    ("Compare snapshots", "/snapshots", "compare_snapshots"),
];

/// Where the palette leads to beside the menu; not for the eye, because the pages show it themselves.
fn places(host: &dyn Host) -> Markup {
    let visitor = host.visitor();
    html! {
        ul data-places="" hidden {
            @if visitor.is_person && visitor.may_write { li { a href="/tokens#make-personal" { "Make a personal token" } } }
            @for (name, address, tool) in ACTIONS {
                @if host.may(tool) && (visitor.may_administer || !address.starts_with("/admin")) { li { a href=(address) { (name) } } }
            }
            @if visitor.is_person { li { a href="/account#password" { "Change the password" } } }
        }
    }
}

/// The hidden field that proves where a form comes from.
pub(crate) fn proof(host: &dyn Host) -> Markup {
    html! { input type="hidden" name="proof" value=(host.visitor().proof); }
}

/// What an error of a kind is called.
const fn heading_of(kind: Kind) -> &'static str {
    match kind {
        Kind::NotFound => "Not found",
        Kind::Denied | Kind::Unavailable => "Not allowed",
        Kind::Unauthenticated => "Not signed in",
        Kind::Invalid => "That did not work",
        Kind::Conflict => "That is not possible now",
        Kind::RateLimited | Kind::Busy => "Please wait a moment",
        Kind::TooLarge => "Too large",
        _ => "Something went wrong",
    }
}

/// A page that says why a request was refused before anybody looked at what it asks for.
pub fn refused(request: &Request, kind: Kind, sentence: &str) -> Reply {
    let heading = heading_of(kind);
    let body = html! {
        h1 { (heading) }
        p role="alert" { (words::sentence(sentence)) "." }
        p { a href="/" { "Overview" } " · " a href="/sign-in" { "Sign in" } }
    };
    stranger(request, kind.row().status, heading, body)
}

/// The page with the form that was sent.
fn way_back(request: &Request) -> Option<String> {
    let path = request.path();
    let part = |count: usize| {
        let parts: Vec<String> = path.iter().take(count).map(|part| crate::links::encoded(part)).collect();
        Some(format!("/{}", parts.join("/")))
    };
    match path.as_slice() {
        _ if request.method == Method::Get => None,
        ["c" | "d", _, ..] => part(2),
        ["books", _, "assets", ..] => part(2),
        [] | ["upload", ..] => None,
        ["books", ..] => part(path.len()),
        _ => part(1),
    }
}

/// A page, or a part of one, that says why there is nothing else.
pub(crate) fn failure(host: &dyn Host, request: &Request, error: &ErrorReply) -> Reply {
    let status = error.kind.row().status;
    let heading = heading_of(error.kind);
    let text =
        html! { p { (told(&error.message)) } @for hint in &error.hints { p.note { (words::plain(hint)) } } };
    if request.query("part").is_some() {
        return Reply::html(status, html! { div.state role="status" { strong { (heading) } (text) } });
    }
    with_status(
        host,
        request,
        status,
        heading,
        html! {
            h1 { (heading) }
            (text)
            p { @if let Some(back) = way_back(request) { a href=(back) { "Back" } " · " } a href="/" { "Overview" } " · " a href="/search" { "Search" } }
        },
    )
}

/// A message of a tool in the words of people: tools speak of accounts and tokens as programs do.
pub(crate) fn told(message: &str) -> String {
    let known = [
        (
            "Insufficient permissions: PAT required",
            "A collection token cannot do this; a personal token can.",
        ),
        ("Insufficient permissions: ADMIN scope required", "Only administrators can do this."),
        (
            "Insufficient permissions: write access required",
            "This needs the right to write, which you do not have here.",
        ),
        (
            "Insufficient permissions: read access required",
            "This needs the right to read, which you do not have here.",
        ),
    ];
    let plain = known.iter().find(|(message_of_tool, _)| message == *message_of_tool);
    plain.map_or_else(
        || words::sentence(message).replace("superuser", "administrator").replace("use grep", "use Pattern"),
        |(_, sentence)| (*sentence).to_owned(),
    )
}

/// A state of a page that has nothing to show yet.
pub(crate) fn empty(heading: &str, text: Markup) -> Markup {
    html! { div.state { strong { (heading) } div { (text) } } }
}

/// A button that copies a text.
pub(crate) fn copy(label: &str, text: &str) -> Markup {
    html! { button.link type="button" data-copy=(text) hidden { (label) } }
}

/// An exact time.
pub(crate) fn at(text: &str) -> Markup {
    html! { time datetime=(text) { (words::time(text)) } }
}

/// A time with its exact value at hand.
pub(crate) fn when(text: &str, now: shelf_base::Moment) -> Markup {
    html! { time datetime=(text) title=(words::time(text)) { (words::ago(text, now)) } }
}
