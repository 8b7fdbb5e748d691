//! What all pages share: the head, the way to other pages, and how errors look.

use maud::{DOCTYPE, Markup, html};
use shelf_base::Kind;
use shelf_tools::ErrorReply;

use crate::{Host, Method, Reply, Request, assets, words};

/// The pages in the menu: path, name, and a tool without which the page would be empty.
const MENU: [(&str, &str, &str); 9] = [
    ("/", "Overview", "status"),
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
                @if host.may("search") {
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
                @if host.may(tool) { li { a href=(path) aria-current=[(path == here).then_some("page")] { (name) } } }
            }
        }
        ul {
            @if visitor.is_person || host.may("list_cats_tool") {
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

/// The hidden field that proves where a form comes from.
pub(crate) fn proof(host: &dyn Host) -> Markup {
    html! { input type="hidden" name="proof" value=(host.visitor().proof); }
}

/// A page, or a part of one, that says why there is nothing else.
pub(crate) fn failure(host: &dyn Host, request: &Request, error: &ErrorReply) -> Reply {
    let status = error.kind.row().status;
    let heading = match error.kind {
        Kind::NotFound => "Not found",
        Kind::Denied | Kind::Unavailable => "Not allowed",
        Kind::Unauthenticated => "Not signed in",
        Kind::Invalid => "That did not work",
        Kind::Conflict => "Somebody was faster",
        Kind::RateLimited | Kind::Busy => "Please wait a moment",
        Kind::TooLarge => "Too large",
        _ => "Something went wrong",
    };
    let text = html! { p { (words::sentence(&error.message)) } @for hint in &error.hints { p.note { (words::plain(hint)) } } };
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
            p { a href="/" { "Overview" } " · " a href="/search" { "Search" } }
        },
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

/// A time with its exact value at hand.
pub(crate) fn when(text: &str, now: shelf_base::Moment) -> Markup {
    html! { time datetime=(text) title=(words::time(text)) { (words::ago(text, now)) } }
}
