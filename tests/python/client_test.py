"""Drives a built `shelf` with the official Python MCP client, because our own clients share our own mistakes.

Usage: client_test.py PATH_OF_SHELF

Every transport (stdio, HTTP, HTTP with a token, the older SSE) is tried in the protocol eras that it has. Each try has a
fresh library and a time limit, so the script ends by itself. With TEST_CATALOG (the address of a database), TEST_OBJECTS (a
bucket) and the usual AWS variables, libraries lie there, each with a schema and a prefix of its own.
"""

import asyncio
import contextlib
import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.error
import urllib.request
from pathlib import Path

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

LEGACY = "2025-11-25"
MODERN = "2026-07-28"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"

START_SECONDS = 30
TRY_SECONDS = 120
CALL_SECONDS = 30

NAME = "notes/first.md"
CONTENT = "# First\n\nA note with an umlaut: \u00fc, and a line break.\n"
FIGURES = ("total_objects", "total_bytes", "unique_blocks", "deduplicated_bytes", "dedup_ratio")
TOOLS = (
    "hello",
    "read_repo_file",
    "write_memory_entry",
    "search",
    "add",
    "grep",
    "get",
    "list",
    "update",
    "status",
    "list_collections",
    "list_snapshots",
    "restore",
    "delete_by_name",
    "store_document_tool",
    "search_documents_tool",
    "get_document_tool",
    "list_documents_tool",
    "update_document_tool",
    "delete_document_tool",
    "create_collection_tool",
    "list_collections_tool",
    "get_collection_tool",
    "delete_collection_tool",
    "rename_collection_tool",
    "create_cat_tool",
    "list_cats_tool",
    "revoke_cat_tool",
    "rotate_cat_tool",
    "list_users_tool",
    "search_users_tool",
    "get_user_tool",
    "update_user_tool",
    "delete_user_tool",
    "download",
    "listResources",
    "getStructure",
    "getNode",
    "resolve",
)
DOCUMENT_TOOLS = set(TOOLS[14:20])


def require(condition, what):
    """Like assert, but never optimised away and always with a sentence."""
    if not condition:
        raise AssertionError(what)


async def call(client, tool, arguments):
    """Calls a tool that has to succeed and gives its structured result."""
    result = await asyncio.wait_for(client.call_tool(tool, arguments), CALL_SECONDS)
    text = result.content[0].text
    require(not result.is_error, f"{tool} {arguments} failed: {text}")
    value = json.loads(text)
    # Before 2026-07-28 structured content is an object, so a bare array stands in one.
    wrapped = {"result": value} if isinstance(value, list) and client.protocol_version != MODERN else value
    require(result.structured_content == wrapped, f"{tool}: structuredContent differs from the text: {text}")
    if isinstance(value, list):
        require("shelfmark/total" in (result.meta or {}), f"{tool} does not say how many there are: {result.meta}")
    return value


async def check_identity(client, era):
    require(client.protocol_version == era, f"protocol {client.protocol_version}, wanted {era}")
    if era == LEGACY:
        name = client.server_info.name
    else:
        raw = await asyncio.wait_for(client.session.send_discover(MODERN), CALL_SECONDS)
        name = raw["_meta"][SERVER_INFO]["name"]
    require(name == "shelfmark", f"the server calls itself {name}")


async def check_tools(client):
    listed = {tool.name for tool in (await asyncio.wait_for(client.list_tools(), CALL_SECONDS)).tools}
    missing = [tool for tool in TOOLS if tool not in listed]
    require(not missing, f"tools/list lacks {missing}; it has {sorted(listed)}")


async def check_prompts(client):
    listed = {prompt.name for prompt in (await asyncio.wait_for(client.list_prompts(), CALL_SECONDS)).prompts}
    require({"search_codebase", "summarize_document"} <= listed, f"prompts are {sorted(listed)}")
    got = await asyncio.wait_for(client.get_prompt("research_topic", {"topic": "tides"}), CALL_SECONDS)
    require("tides" in got.messages[0].content.text, f"the topic is not in {got}")


async def check_reading_and_writing(client):
    await call(client, "hello", {})
    added = await call(
        client, "add", {"content": CONTENT, "name": NAME, "tags": ["note", "first"], "metadata": ["status=open"]}
    )
    require(added.get("hash"), f"add gave no hash: {added}")
    got = await call(client, "get", {"hash": added["hash"], "include_content": True})
    require(got["found"] is True, f"get did not find what add stored: {got}")
    require(got["content"] == CONTENT, f"get gave other content: {got['content']!r}")
    listed = await call(client, "list", {})
    require(listed["total"] >= 1 and len(listed["documents"]) >= 1, f"list is empty: {listed}")
    await call(client, "update", {"name": NAME, "metadata": ["status=done"]})
    status = await call(client, "status", {})
    absent = [figure for figure in FIGURES if not isinstance(status.get(figure), (int, float))]
    require(not absent, f"status lacks the figures {absent}: {status}")
    await call(client, "list_collections", {})
    found = await call(client, "grep", {"pattern": "umlaut: .,", "line_numbers": True})
    require(found["total_matches"] >= 1 and found["matches"][0]["path"] == NAME, f"grep gave {found}")
    for kind in ("keyword", "semantic", "hybrid"):
        found = await call(client, "search", {"query": "note about an umlaut", "type": kind})
        require(found["type"] == kind and found["results"][0]["path"] == NAME, f"{kind} search gave {found}")
        require(found["results"][0]["address"].startswith("text://"), f"no address in {found}")
    await call(client, "list_snapshots", {})


async def check_folders(client, folder):
    """Paths of the server's machine: over stdio any, over HTTP those below the configured roots."""
    source = folder / "source"
    source.mkdir()
    (source / "one.txt").write_text("one\n", encoding="utf-8")
    (source / "two.txt").write_text("two\n", encoding="utf-8")
    await call(client, "add", {"path": str(source)})
    output = folder / "restored"
    output.mkdir()
    await call(client, "restore", {"collection": "default", "output_directory": str(output)})
    restored = {path.read_text(encoding="utf-8") for path in output.rglob("*") if path.is_file()}
    lacking = [text for text in (CONTENT, "one\n", "two\n") if text not in restored]
    require(not lacking, f"restore left out {lacking!r}; it wrote {sorted(restored)!r}")


async def check_removal_and_errors(client):
    await call(client, "delete_by_name", {"name": NAME})
    result = await asyncio.wait_for(client.call_tool("status", {"no_such_argument": 1}), CALL_SECONDS)
    text = result.content[0].text
    require(result.is_error, f"an unknown argument was accepted: {text}")
    require(text.startswith("Error:"), f"the error does not start with `Error:`: {text}")


async def check_documents(client):
    """The documents family, one call of each kind; the client checks every reply against its schema."""
    made = await call(client, "create_collection_tool", {"name": "papers"})
    stored = await call(
        client,
        "store_document_tool",
        {"title": "Herons", "content": "# Herons\n\nThey wait by the river.", "collection_id": made["id"]},
    )
    found = await call(client, "search_documents_tool", {"query": "who waits by a river?", "max_tokens": 300})
    require(found["results"][0]["document_id"] == stored["document_id"], f"search gave {found}")
    require(found["tokens_used"] <= 300 and "## Herons" in found["formatted_context"], f"search gave {found}")
    await call(client, "update_document_tool", {"document_id": stored["document_id"], "title": "Grey herons"})
    got = await call(client, "get_document_tool", {"document_id": stored["document_id"]})
    require(got["title"] == "Grey herons", f"get gave {got}")
    listed = await call(client, "list_documents_tool", {"collection_id": made["id"]})
    require([item["title"] for item in listed] == ["Grey herons"], f"list gave {listed}")
    token = await call(
        client, "create_cat_tool", {"label": "reader", "collection_id": made["id"], "permission": "read"}
    )
    listed = await call(client, "list_cats_tool", {})
    require(listed[0]["is_active"] and listed[0]["expires_at"] is None, f"list_cats gave {listed}")
    await call(client, "rotate_cat_tool", {"key_id": token["id"]})
    await call(client, "revoke_cat_tool", {"key_id": token["id"]})
    await call(client, "rename_collection_tool", {"collection_id": made["id"], "name": "birds"})
    collections = await call(client, "list_collections_tool", {})
    require("birds" in [item["name"] for item in collections], f"list_collections gave {collections}")
    await call(client, "delete_document_tool", {"document_id": stored["document_id"]})
    await call(client, "delete_collection_tool", {"collection_id": made["id"]})
    require(await call(client, "list_users_tool", {}) == [], "there are users already")
    result = await asyncio.wait_for(client.call_tool("get_document_tool", {"document_id": "none"}), CALL_SECONDS)
    require(result.content[0].text == "Document not found", f"the error is {result.content[0].text}")


async def drive(client, era, folder):
    await check_identity(client, era)
    await check_tools(client)
    await check_prompts(client)
    await check_reading_and_writing(client)
    await check_documents(client)
    await check_folders(client, folder)
    await check_removal_and_errors(client)


def mode(era):
    """How the client library names the era."""
    return "legacy" if era == LEGACY else era


def stores(folder):
    """The variables that lead to shared stores, if the environment names any, with a place for this library alone."""
    database, bucket = os.environ.get("TEST_CATALOG"), os.environ.get("TEST_OBJECTS")
    if not (database and bucket):
        return {}
    name = "client_" + folder.name.encode().hex()
    separator = "&" if "?" in database else "?"
    keys = {key: value for key, value in os.environ.items() if key.startswith("AWS_")}
    return keys | {
        "SHELF_CATALOG": f"{database}{separator}schema={name}",
        "SHELF_OBJECTS": f"{bucket.rstrip('/')}/{name}",
    }


async def over_stdio(shelf, era, folder):
    arguments = ["--data-dir", str(folder / "library"), "serve"]
    server = StdioServerParameters(command=shelf, args=arguments, env=stores(folder))
    async with Client(server, mode=mode(era), cache=None) as client:
        await drive(client, era, folder)


async def over_http(shelf, era, folder):
    with serving(shelf, folder, ["--no-auth"]) as (address, _):
        async with Client(f"{address}/mcp", mode=mode(era), cache=None) as client:
            await drive(client, era, folder)


async def over_http_with_token(shelf, era, folder):
    with serving(shelf, folder, []) as (address, token):
        require(await asyncio.to_thread(status_without_token, f"{address}/mcp") == 401, "no token, yet no 401")
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(headers=headers, timeout=CALL_SECONDS) as http:
            transport = streamable_http_client(f"{address}/mcp", http_client=http)
            async with Client(transport, mode=mode(era), cache=None) as client:
                await drive(client, era, folder)


async def over_sse(shelf, era, folder):
    """The transport of 2024-11-05, and a collection token on it that sees six tools."""
    with serving(shelf, folder, []) as (address, token):
        transport = sse_client(f"{address}/sse", headers={"Authorization": f"Bearer {token}"})
        async with Client(transport, mode=mode(era), cache=None) as client:
            await drive(client, era, folder)
            made = await call(client, "create_collection_tool", {"name": "shared"})
            arguments = {"label": "colleague", "collection_id": made["id"], "permission": "read_write"}
            shared = await call(client, "create_cat_tool", arguments)
        transport = sse_client(f"{address}/sse", headers={"Authorization": f"Bearer {shared['key']}"})
        async with Client(transport, mode=mode(era), cache=None) as client:
            listed = {tool.name for tool in (await asyncio.wait_for(client.list_tools(), CALL_SECONDS)).tools}
            require(listed == DOCUMENT_TOOLS, f"a collection token sees {sorted(listed)}")
            await call(client, "store_document_tool", {"title": "T", "content": "from a colleague"})
            result = await asyncio.wait_for(client.call_tool("status", {}), CALL_SECONDS)
            require("PAT required" in result.content[0].text, f"a hidden tool said {result.content[0].text}")


def status_without_token(url):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    request = urllib.request.Request(url, data=body, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=CALL_SECONDS) as response:
            return response.status
    except urllib.error.HTTPError as error:
        return error.code


@contextlib.contextmanager
def serving(shelf, folder, options):
    """Runs an HTTP server; gives its address and, unless it needs none, the token its first start prints."""
    command = [shelf, "--data-dir", str(folder / "library"), "serve", "--http", "127.0.0.1:0", "--admin-listen", "off"]
    # What is not configured is not listed over HTTP.
    open_to = {"SHELF_IMPORT_ROOTS": str(folder), "SHELF_EXPORT_ROOTS": str(folder), "SHELF_WORKSPACE": str(folder)}
    process = subprocess.Popen(
        command + options, env=os.environ | open_to | stores(folder) | {"SHELF_DOWNLOAD_OVER_HTTP": "true"}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        yield announcement(process, wants_token="--no-auth" not in options)
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=10)


def announcement(process, wants_token):
    lines = queue.Queue()

    def follow():
        for line in process.stderr:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=follow, daemon=True).start()
    said, address, token = [], None, None
    deadline = time.monotonic() + START_SECONDS
    while address is None or (wants_token and token is None):
        try:
            line = lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            line = None
        require(line is not None, f"the server announced no address or no token; it said: {''.join(said)}")
        said.append(line)
        if found := re.search(r"listening on (http://127\.0\.0\.1:\d+)", line):
            address = found[1]
        if found := re.search(r"pat_live_[A-Za-z0-9_-]+", line):
            token = found[0]
    return address, token


async def attempt(test, shelf, era):
    with tempfile.TemporaryDirectory(prefix="shelf-client-") as folder:
        await asyncio.wait_for(test(shelf, era, Path(folder)), TRY_SECONDS)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: client_test.py PATH_OF_SHELF")
    shelf = str(Path(sys.argv[1]).resolve())
    passed = failed = 0
    tests = (
        ("stdio", over_stdio, (LEGACY, MODERN)),
        ("http", over_http, (LEGACY, MODERN)),
        ("http with token", over_http_with_token, (LEGACY, MODERN)),
        ("sse", over_sse, (LEGACY,)),
    )
    for label, test, eras in tests:
        for era in eras:
            try:
                asyncio.run(attempt(test, shelf, era))
                passed += 1
                print(f"{label}, {era}: passed", flush=True)
            except Exception:  # noqa: BLE001 - whatever went wrong, the other tries still count
                failed += 1
                print(f"{label}, {era}: FAILED\n{traceback.format_exc()}", flush=True)
    print(f"{passed} passed, {failed} failed", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
