//! What is switched off is neither listed nor callable over HTTP, in whichever way it was switched off.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use shelf_tools::registry;

use crate::http::Server;

/// Tools that do nothing over HTTP until something is configured, and a word of what a call says then.
const NEED_SETTINGS: [(&str, &str); 4] = [
    ("read_repo_file", "--workspace"),
    ("write_memory_entry", "--workspace"),
    ("download", "download.over_http"),
    ("restore", "export_roots"),
];

fn names(tools: &Value) -> BTreeSet<String> {
    let tools = tools["tools"].as_array().unwrap_or_else(|| panic!("no list of tools: {tools}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// The tools that a path of the protocol lists.
fn listed(server: &Server, path: &str, headers: &[(&str, &str)]) -> BTreeSet<String> {
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    names(&server.mcp(path, headers, &message).1["result"])
}

/// What a call over the protocol says, and whether it is an error.
fn called(server: &Server, (path, headers): (&str, &[(&str, &str)]), tool: &str) -> (bool, String) {
    let parameters = json!({ "name": tool, "arguments": { "no_such_argument": 1 } });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": parameters });
    let reply = server.mcp(path, headers, &message).1;
    let text = reply["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    (reply["result"]["isError"] == true, text)
}

/// Every tool that is listed can be called, and no other: the argument that no tool has is noticed only where a call gets
/// as far as its arguments.
fn check(server: &Server, path: &str, headers: &[(&str, &str)]) -> BTreeSet<String> {
    let listed = listed(server, path, headers);
    for tool in registry() {
        let (is_error, text) = called(server, (path, headers), tool.name);
        assert!(is_error, "{path}: {} took an argument that it does not have", tool.name);
        let is_reached = text.contains("no_such_argument");
        assert_eq!(listed.contains(tool.name), is_reached, "{path}: {}: {text}", tool.name);
    }
    listed
}

fn of_contracts(without: &[&str]) -> BTreeSet<String> {
    let tools = registry().filter(|tool| tool.toolset() != "extras").map(|tool| tool.name);
    tools.filter(|name| !without.contains(name)).map(str::to_owned).collect()
}

#[test]
fn what_needs_a_setting_is_hidden_until_it_has_one() {
    let folder = tempfile::tempdir().unwrap();
    let (library, space) = (folder.path().join("library"), folder.path().join("space"));
    std::fs::create_dir_all(&space).unwrap();
    let space = space.to_str().unwrap();
    let hidden = NEED_SETTINGS.map(|(tool, _)| tool);
    let server = Server::start(&library, &["--no-auth"]);
    let offered = of_contracts(&hidden);
    assert_eq!(check(&server, "/mcp", &[]), offered);
    let (_, _, body) = server.request("GET", "/api/v1/tools", &[], "");
    assert_eq!(names(&serde_json::from_str(&body).unwrap()), offered);
    for (tool, word) in NEED_SETTINGS {
        let (_, text) = called(&server, ("/mcp", &[]), tool);
        assert!(text.contains(word), "{tool}: {text}");
        let (status, reply) = server.tool("x", tool, &json!({}));
        assert_eq!(status, 403, "{tool}: {reply}");
    }
    drop(server);
    for (variable, value, shown) in [
        ("SHELF_WORKSPACE", space, &["read_repo_file", "write_memory_entry"][..]),
        ("SHELF_DOWNLOAD_OVER_HTTP", "true", &["download"]),
        ("SHELF_EXPORT_ROOTS", space, &["restore"]),
    ] {
        let server = Server::start_with(&library, &["--no-auth"], &[(variable, value)]);
        let still: Vec<&str> = hidden.into_iter().filter(|tool| !shown.contains(tool)).collect();
        assert_eq!(check(&server, "/mcp", &[]), of_contracts(&still), "{variable}");
    }
}

#[test]
fn what_was_not_selected_is_hidden() {
    let folder = tempfile::tempdir().unwrap();
    let (library, space) = (folder.path().join("library"), folder.path().join("space"));
    std::fs::create_dir_all(&space).unwrap();
    let space = space.to_str().unwrap();
    let open =
        [("SHELF_WORKSPACE", space), ("SHELF_DOWNLOAD_OVER_HTTP", "true"), ("SHELF_EXPORT_ROOTS", space)];
    let of = |takes: &dyn Fn(&shelf_tools::Tool) -> bool| -> BTreeSet<String> {
        registry().filter(|tool| takes(tool)).map(|tool| tool.name.to_owned()).collect()
    };
    let all = Server::start_with(&library, &["--no-auth"], &open);
    assert_eq!(check(&all, "/mcp", &[]), of_contracts(&[]));
    let reading = of(&|tool| tool.toolset() == "store" && tool.hints.read_only);
    assert_eq!(check(&all, "/mcp/x/store/readonly", &[]), reading);
    assert_eq!(check(&all, "/mcp", &[("X-MCP-Toolsets", "books")]), of(&|tool| tool.toolset() == "books"));
    drop(all);
    type Takes<'a> = &'a dyn Fn(&shelf_tools::Tool) -> bool;
    let cases: [(&[&str], Takes<'_>); 4] = [
        (&["--toolsets", "store,extras"], &|tool| ["store", "extras"].contains(&tool.toolset())),
        (&["--tools", "get,add,download"], &|tool| ["get", "add", "download"].contains(&tool.name)),
        (&["--exclude-tools", "add,hello"], &|tool| {
            tool.toolset() != "extras" && !["add", "hello"].contains(&tool.name)
        }),
        (&["--read-only"], &|tool| tool.toolset() != "extras" && tool.hints.read_only),
    ];
    for (flags, takes) in cases {
        let flags: Vec<&str> = ["--no-auth"].iter().chain(flags).copied().collect();
        let server = Server::start_with(&library, &flags, &open);
        assert_eq!(check(&server, "/mcp", &[]), of(takes), "{flags:?}");
    }
}

#[test]
fn the_workspace_is_listed_for_those_who_may_use_it() {
    let folder = tempfile::tempdir().unwrap();
    let (library, space) = (folder.path().join("library"), folder.path().join("space"));
    std::fs::create_dir_all(&space).unwrap();
    let space = space.to_str().unwrap();
    let server = Server::start_with(
        &library,
        &[],
        &[("SHELF_WORKSPACE", space), ("SHELF_WORKSPACE_ACCOUNTS", "nadia")],
    );
    // The first of them is the administrator.
    let tokens = ["agnes", "nadia", "omar"].map(|name| {
        assert_eq!(server.register(name).0, 201);
        server.personal(name)
    });
    for (token, may_use) in tokens[1..].iter().zip([true, false]) {
        let header = format!("Bearer {token}");
        let found = check(&server, "/mcp", &[("Authorization", &header)]);
        assert_eq!(found.contains("read_repo_file"), may_use);
        assert!(found.contains("hello") && !found.contains("list_users_tool"));
    }
}
