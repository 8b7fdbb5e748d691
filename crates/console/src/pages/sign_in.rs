//! Signing in.

use maud::html;

use super::setup;
use crate::{Reply, Request, frame, links, words};

/// What the sign-in page says beside its form.
#[derive(Clone, Debug, Default)]
pub struct Door {
    /// Why the last attempt failed.
    pub refusal: Option<String>,
    /// The name that was given.
    pub name: String,
}

/// The page with the two ways to sign in.
pub fn sign_in(request: &Request, status: u16, door: &Door) -> Reply {
    let wanted = request.field("next").or_else(|| request.query("next"));
    let next =
        links::own(wanted.or_else(|| (request.segments.first()? != "sign-in").then_some(&request.address)));
    frame::stranger(
        request,
        status,
        "Sign in",
        html! {
            h1 { "Shelfmark" }
            p.lead { "A library for AI agents and people: store anything once, find it fast, cite it exactly." }
            @if let Some(refusal) = &door.refusal { p.refusal role="alert" { (words::plain(refusal)) } }
            form.card method="post" action="/sign-in" {
                h2 { "Sign in" }
                input type="hidden" name="next" value=(next);
                label { "Name or email address"
                    input name="name" autocomplete="username" autocapitalize="none" spellcheck="false" value=(door.name) autofocus;
                }
                label { "Password" input name="password" type="password" autocomplete="current-password"; }
                button.primary { "Sign in" }
            }
            form.card method="post" action="/sign-in" {
                h2 { "Or use a token" }
                input type="hidden" name="next" value=(next);
                label { "Token" input name="token" type="password" placeholder="pat_live_…" autocomplete="off"; }
                button { "Continue" }
                p.note { "You can then do here what the token may do." }
            }
            p { "On the machine that holds the library, " code { "shelf open" } " signs you in without a password." }
            details {
                summary { "Connect an agent" }
                p { "Every request needs a token: " code { "shelf token create" } " makes one." }
                (setup::clients(&request.base_url, Some("<your token>")))
            }
        },
    )
}
