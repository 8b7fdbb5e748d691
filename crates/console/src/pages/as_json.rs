//! Any page as JSON: the tool calls that it is made of, with their replies.

use std::cell::RefCell;

use serde_json::{Value, json};
use shelf_tools::{Answer, ErrorReply};

use crate::{AccountAction, Host, Reply, Request, Visitor};

/// A host that notes what is asked of it.
struct Recorder<'a> {
    host: &'a dyn Host,
    calls: RefCell<Vec<Value>>,
}

impl Host for Recorder<'_> {
    fn visitor(&self) -> &Visitor {
        self.host.visitor()
    }

    fn may(&self, tool: &str) -> bool {
        self.host.may(tool)
    }

    fn call(&self, tool: &str, arguments: Value) -> Result<Answer, ErrorReply> {
        let answer = self.host.call(tool, arguments.clone())?;
        self.calls.borrow_mut().push(json!({ "tool": tool, "arguments": arguments, "reply": answer.value }));
        Ok(answer)
    }

    fn account(&self, action: AccountAction) -> Result<Value, ErrorReply> {
        self.host.account(action)
    }
}

/// What a page is made of.
pub(super) fn reply(host: &dyn Host, request: &Request) -> Reply {
    let recorder = Recorder { host, calls: RefCell::default() };
    let page = super::route(&recorder, request);
    match page {
        Ok(page) => Reply::json(page.status, &json!({ "calls": recorder.calls.into_inner() })),
        Err(error) => {
            let row = error.kind.row();
            let error = json!({ "code": row.code, "message": error.message, "hints": error.hints });
            Reply::json(row.status, &json!({ "error": error }))
        }
    }
}
