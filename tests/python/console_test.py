"""Drives the web console in Debian's Chromium: every page, in light and dark, wide and narrow, without an error in the
browser's console and without a request to another host. Usage: console_test.py SHELF [FOLDER-FOR-SCREENSHOTS]"""

import base64
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import urllib.request

from playwright.sync_api import expect, sync_playwright

expect.set_options(timeout=30_000)

SHELF = sys.argv[1]
SHOTS = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
PASSWORD = "a password of some length"
SERVERS = []


class Server:
    """A server on a library of its own."""

    def __init__(self, folder, *more):
        command = [SHELF, "--data-dir", folder, "serve", "--http", "127.0.0.1:0", "--admin-listen", "off", *more]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        SERVERS.append(self)
        for line in self.process.stderr:
            found = re.search(r"listening on (http://\S+)", line)
            if found:
                self.url = found.group(1)
            if "Stop with Ctrl-C" in line:
                break

    def tool(self, tool, /, token=None, **arguments):
        headers = {"Content-Type": "application/json"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        request = urllib.request.Request(
            f"{self.url}/api/v1/tools/{tool}", json.dumps(arguments).encode(), headers
        )
        with urllib.request.urlopen(request) as reply:
            return json.load(reply)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)


class Watch:
    """Notes what must not happen on a page."""

    def __init__(self, context, url):
        self.problems = []
        self.host = url.split("//")[1]
        context.set_default_timeout(90_000)
        context.on("page", self.follow)

    def follow(self, page):
        page.on("console", self.heard)
        page.on("pageerror", lambda error: self.problems.append(f"{page.url}: {error}"))
        page.on("request", self.asked)

    def heard(self, message):
        # A sandboxed frame says that it runs no scripts, which is the point of it.
        expected = "sandboxed" in message.text or "status of 409" in message.text or "status of 40" in message.text
        if message.type in ("error", "warning") and not expected:
            self.problems.append(f"{message.location.get('url')}: {message.text}")

    def asked(self, request):
        scheme, rest = request.url.split(":", 1)
        if scheme in ("http", "https", "ws", "wss") and rest.lstrip("/").split("/")[0] != self.host:
            self.problems.append(f"a request to {request.url}")


def fill(server):
    """A small library with one document of each kind."""
    add = lambda name, content, **more: server.tool("add", name=name, content=content, **more)
    heron = "# The grey heron\n\nThe *heron* waits in shallow water for a long time. See [frogs](frogs.md).\n\n" + "".join(
        f"## Part {part}\n\nHerons eat fish, frogs and eels, and nest in trees near water. This is part {part}.\n\n"
        for part in range(1, 7)
    ) + "| food | share |\n| --- | ---: |\n| fish | 70 % |\n| frogs | 20 % |\n"
    made = {"heron": add("birds/heron.md", heron, tags=["bird", "water"], metadata={"author": "Ann"})}
    add("birds/heron.md", heron.replace("a long time", "a very long time"), tags=["bird", "water"])
    made["frogs"] = add("birds/frogs.md", "# Frogs\n\nFood of the [heron](heron.md).\n", tags=["water"])
    code = "//! Counts herons.\n\nuse std::fmt;\n\n/// A bird.\npub struct Heron { pub age: u32 }\n\nimpl Heron {\n    /// Whether it hunts.\n    pub fn hunts(&self) -> bool { self.age > 1 /* year */ }\n}\n\nfn main() {\n    let heron = Heron { age: 12 };\n    println!(\"{}\", heron.hunts());\n}\n"
    made["code"] = add("src/main.rs", code)
    made["table"] = add("data/counts.csv", "year,nests,note\n2024,12,\"cold, wet\"\n2025,19,warm\n")
    made["json"] = add("data/birds.json", json.dumps({"birds": [{"name": "heron", "legs": 2}], "complete": True}))
    made["image"] = add("pictures/dot.png", base64.b64encode(PIXEL).decode(), encoding="base64")
    made["html"] = add("pages/old.html", "<html><body><h1>Old page</h1><script>document.title='hacked'</script></body></html>")
    made["hostile"] = add("hostile.md", "<script>document.title='hacked'</script>\n\n# <img src=x onerror=\"document.title='hacked'\">\n\n![x](https://evil.example/x.png)\n")
    for number in range(1, 40):
        add(f"notes/{number:02}.txt", f"Note {number} about water, reeds and birds.\n")
    for lesson in (1, 2, 3):
        server.tool("write_content", book_id="birds-of-the-lake", path=f"lessons/part-1/chapter-01/lesson-0{lesson}.md",
                    content=f"# Lesson {lesson}\n\nWhat herons do in month {lesson}.\n")
    server.tool("upload_asset", book_id="birds-of-the-lake", asset_type="images", filename="dot.png",
                binary_data=base64.b64encode(PIXEL).decode())
    server.tool("add", name="cited.txt", content="one\ntwo herons\nthree\n", resource_id="cited")
    return {name: reply["document_id"] for name, reply in made.items()}


def check_pages(context, server, ids):
    page = context.new_page()
    paths = ["/", "/search?q=heron", "/c", "/c/default", "/c/default?folder=notes/", "/graph", f"/graph?node=doc:{ids['heron']}&depth=2",
             "/cite", "/cite?address=text://cited%23lines=2-2", "/books", "/books/birds-of-the-lake",
             "/books/birds-of-the-lake/lessons/part-1/chapter-01/lesson-02.md", "/snapshots", "/activity", "/tokens", "/account", "/admin?run=audit"]
    paths += [f"/d/{id}" for id in ids.values()]
    paths += [f"/d/{ids['heron']}?view={view}" for view in ("source", "versions", "links", "map")]
    for path in paths:
        reply = page.goto(server.url + path)
        assert reply.status == 200, f"{path}: {reply.status}"
        assert "hacked" not in page.title(), path
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 1, f"{path} is {wide} pixels too wide"
        assert page.locator("h1").count() >= 1, path
    page.close()


def check_search(page, server):
    page.goto(server.url + "/search")
    box = page.locator("input.big")
    box.press_sequentially("heron", delay=20)
    expect(page.locator(".hit-item").first).to_be_visible()
    page.wait_for_url("**/search?q=heron")
    expect(page.locator(".hit-item mark").first).to_contain_text(re.compile("heron", re.I))
    box.press("ArrowDown")
    expect(page.locator(".hit-item.here")).to_have_count(1)
    expect(page.locator("[data-preview-pane]")).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/d/**")
    page.go_back()
    page.keyboard.press("Escape")
    page.locator("input[value=pattern]").check()
    box.fill("fr.gs")
    expect(page.locator(".hit-item mark").first).to_have_text("frogs")


def check_keys(page, server, ids):
    page.goto(server.url + "/")
    page.locator("body").press("Escape")
    page.keyboard.press("Control+k")
    page.keyboard.type("snap")
    page.keyboard.press("Enter")
    page.wait_for_url("**/snapshots")
    page.keyboard.press("?")
    expect(page.locator("dialog")).to_contain_text("Shortcuts")
    page.keyboard.press("Escape")
    page.goto(server.url + f"/d/{ids['code']}#L5-7")
    expect(page.locator(".line.marked")).to_have_count(3)
    page.locator("#L9 .number").click()
    page.wait_for_url("**#L9")
    page.locator("[data-theme-switch]").last.click()
    theme = page.evaluate("document.documentElement.dataset.theme")
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == theme, "the choice of theme stays"
    page.locator("[data-theme-switch]").last.click()


def check_upload(page, server, folder):
    files = pathlib.Path(folder) / "upload"
    (files / "inner").mkdir(parents=True)
    for number in range(5):
        (files / "inner" / f"file-{number}.txt").write_text(f"uploaded {number}\n")
    page.goto(server.url + "/c/default")
    with page.expect_navigation():
        page.locator("input[webkitdirectory]").set_input_files(str(files))
    page.goto(server.url + "/c/default?folder=upload/inner/")
    expect(page.locator("table.data tbody tr")).to_have_count(5)


def check_editor(page, server):
    path = "/books/birds-of-the-lake/lessons/part-1/chapter-01/lesson-03.md"
    page.goto(server.url + path + "?edit=1")
    page.locator("textarea").fill("# Mine\n")
    server.tool("write_content", book_id="birds-of-the-lake", path="lessons/part-1/chapter-01/lesson-03.md", content="# Theirs\n")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".refusal")).to_contain_text("Somebody else changed")
    expect(page.locator(".diff")).to_contain_text("Theirs")
    page.locator("textarea").fill("# Mine and theirs\n")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".prose h1")).to_have_text("Mine and theirs")


def check_graph(page, server, ids):
    page.goto(server.url + f"/graph?node=doc:{ids['heron']}")
    nodes = page.locator("svg [data-node]")
    assert nodes.count() >= 2
    nodes.nth(1).click()
    page.wait_for_url("**/graph?node=**")
    expect(page.locator(".neighbours li").first).to_be_visible()


def check_people(browser, folder):
    """Signing in, making a token, signing out; without scripts too."""
    for name, more in (("alice", []), ("root", ["--admin"])):
        subprocess.run([SHELF, "--data-dir", folder, "user", "create", name, "--email", f"{name}@example.com", *more],
                       input=PASSWORD + "\n", text=True, check=True, stdout=subprocess.DEVNULL)
    server = Server(folder)
    for scripts in (True, False):
        context = browser.new_context(java_script_enabled=scripts)
        watch = Watch(context, server.url)
        page = context.new_page()
        page.goto(server.url + "/search?q=nothing")
        page.get_by_label("Name or email address").fill("alice")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/search?q=nothing")
        page.goto(server.url + "/tokens")
        page.get_by_text("Make a personal token").click()
        page.get_by_label("Label").first.fill("agent")
        page.get_by_role("button", name="Make the token").first.click()
        key = re.search(r"pat_live_[\w-]{32}", page.content()).group(0)
        server.tool("add", token=key, name=f"by-{scripts}.txt", content="from an agent about ospreys")
        page.goto(server.url + "/search?q=ospreys")
        assert page.locator(".hit-item").count() >= 1
        page.goto(server.url + "/tokens")
        page.get_by_role("button", name="Revoke").first.click()
        page.wait_for_url("**/tokens")
        page.get_by_role("button", name="Sign out").last.click()
        page.wait_for_url("**/sign-in")
        assert page.goto(server.url + "/tokens").status == 401
        assert not watch.problems, watch.problems
        context.close()
    link = subprocess.run([SHELF, "--data-dir", folder, "open", "--print"], capture_output=True, text=True, check=True,
                          env={**os.environ, "SHELF_HTTP_LISTEN": server.url.split("//")[1]}).stdout.strip()
    context = browser.new_context()
    page = context.new_page()
    page.goto(link)
    expect(page.locator(".side .who")).to_contain_text("owner")
    context.close()
    server.stop()


def shoot(browser, server, ids, empty):
    """Pictures of the main pages, to be looked at."""
    SHOTS.mkdir(parents=True, exist_ok=True)
    pages = {"overview": "/", "search": "/search?q=heron", "document": f"/d/{ids['heron']}", "code": f"/d/{ids['code']}?lines=6-10",
             "versions": f"/d/{ids['heron']}?view=versions", "folder": "/c/default", "graph": f"/graph?node=doc:{ids['heron']}&depth=2",
             "evidence": "/cite?address=text://cited%23lines=2-2", "book": "/books/birds-of-the-lake/lessons/part-1/chapter-01/lesson-02.md",
             "activity": "/activity", "tokens": "/tokens", "admin": "/admin", "snapshots": "/snapshots"}
    for width, height in ((1440, 900), (900, 900), (360, 780)):
        for scheme in ("light", "dark"):
            context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
            page = context.new_page()
            for name, path in pages.items():
                page.goto(server.url + path)
                page.screenshot(path=SHOTS / f"{name}-{width}-{scheme}.png")
            page.goto(empty.url)
            page.screenshot(path=SHOTS / f"empty-{width}-{scheme}.png")
            context.close()


def main():
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        server = Server(f"{folder}/library", "--no-auth")
        empty = Server(f"{folder}/empty", "--no-auth")
        ids = fill(server)
        if SHOTS:
            shoot(browser, server, ids, empty)
        for options in ({"color_scheme": "light", "viewport": {"width": 1440, "height": 900}},
                        {"color_scheme": "dark", "viewport": {"width": 360, "height": 780}},
                        {"java_script_enabled": False, "viewport": {"width": 900, "height": 800}}):
            context = browser.new_context(**options)
            watch = Watch(context, server.url)
            if options.get("java_script_enabled", True):
                check_pages(context, server, ids)
            else:
                page = context.new_page()
                for path in ("/", "/search?q=heron", f"/d/{ids['heron']}?lines=3-3"):
                    assert page.goto(server.url + path).status == 200
            context.close()
            assert not watch.problems, "\n".join(watch.problems)
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        watch = Watch(context, server.url)
        page = context.new_page()
        check_search(page, server)
        check_keys(page, server, ids)
        check_upload(page, server, folder)
        check_editor(page, server)
        check_graph(page, server, ids)
        context.close()
        assert not watch.problems, "\n".join(watch.problems)
        check_people(browser, f"{folder}/people")
        browser.close()
        server.stop()
        empty.stop()
    print("the console works in a browser")


try:
    main()
finally:
    for started in SERVERS:
        started.process.kill()
