//! The web console: the library, seen by a person.
//!
//! A page is made of tool replies. [`respond`] turns a request into calls of tools, made through a [`Host`] as the
//! identity that is signed in, and their replies into HTML. Nothing here knows storage, accounts or the HTTP framework:
//! what an identity may not call it does not see, because the host asks the same policy table as every other transport.
//!
//! Documents are untrusted. Text is escaped by the templates, Markdown goes through a sanitizer, links between documents
//! stay in the library, and pages carry no inline script or style, so that the content security policy can forbid both.

mod assets;
mod fields;
mod frame;
mod host;
mod links;
mod pages;
mod render;
mod reply;
mod request;
mod words;

pub use assets::asset;
pub use frame::refused;
pub use host::{AccountAction, Host, Visitor};
pub use pages::{Door, respond, sign_in};
pub use reply::Reply;
pub use request::{Method, Request};
