//! Asking before something that cannot be taken back, and doing once what a form asks for.

use std::{
    collections::VecDeque,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use maud::{Markup, html};

use super::now;
use crate::{Host, Reply, Request, frame};

/// A question that a page asks.
pub(super) struct Question<'a> {
    /// What is asked.
    pub title: String,
    /// What will happen.
    pub text: &'a str,
    /// What the button says.
    pub button: &'a str,
    /// Fields of the form that was sent, to be sent again.
    pub fields: &'a [&'a str],
    /// The page to go back to.
    pub back: &'a str,
}

/// The page with a question, which sends the form again with `sure`.
pub(super) fn page(host: &dyn Host, request: &Request, question: &Question<'_>) -> Reply {
    frame::page(
        host,
        request,
        &question.title,
        html! {
            h1 { (crate::words::plain(&question.title)) }
            p { (question.text) }
            form method="post" action=(request.address) {
                (frame::proof(host)) (once())
                @for name in question.fields { @if let Some(value) = request.field(name) { input type="hidden" name=(name) value=(value); } }
                input type="hidden" name="sure" value="1";
                p { button.danger { (question.button) } " " a href=(question.back) { "Cancel" } }
            }
        },
    )
}

/// Forms that were carried out and may be sent again by a page that is loaded again.
const REMEMBERED: usize = 1_000;
static DONE: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());

/// A field that tells a form from all others.
pub(super) fn once() -> Markup {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    html! { input type="hidden" name="once" value=(format!("{}-{number}", now().micros())); }
}

/// Whether a form is sent for the first time, and notes that it was. A form without that field is always new.
pub(super) fn is_first(host: &dyn Host, request: &Request) -> bool {
    let Some(once) = request.field("once") else { return true };
    // The proof tells visitors apart.
    let key = format!("{} {once}", host.visitor().proof);
    let mut done = DONE.lock().unwrap_or_else(PoisonError::into_inner);
    if done.contains(&key) {
        return false;
    }
    if done.len() >= REMEMBERED {
        done.pop_front();
    }
    done.push_back(key);
    true
}
