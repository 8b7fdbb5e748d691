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
import urllib.parse
import urllib.request

from playwright.sync_api import expect, sync_playwright

expect.set_options(timeout=30_000)

SHELF = sys.argv[1]
SHOTS = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
PASSWORD = "a password of some length"
# The accessibility check, if there is one.
AXE = pathlib.Path(os.environ["AXE"]).read_text() if os.environ.get("AXE") else None
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
        expected = "sandboxed" in message.text or "status of 40" in message.text or "status of 410" in message.text
        if message.type in ("error", "warning") and not expected:
            self.problems.append(f"{message.location.get('url')}: {message.text}")

    def asked(self, request):
        scheme, rest = request.url.split(":", 1)
        if scheme in ("http", "https", "ws", "wss") and rest.lstrip("/").split("/")[0] != self.host:
            self.problems.append(f"a request to {request.url}")


def pdf(*pages):
    """A PDF document with a page for each text."""
    kids = " ".join(f"{4 + 2 * at} 0 R" for at in range(len(pages)))
    parts = ["%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj",
             f"2 0 obj<</Type/Pages/Kids[{kids}]/Count {len(pages)}>>endobj",
             "3 0 obj<</Type/Font/Subtype/Type1/BaseFont/Times-Roman>>endobj"]
    for at, text in enumerate(pages):
        lines = "".join(f"({line}) Tj 0 -22 Td " for line in text.split("\n"))
        stream = f"BT /F 16 Tf 60 740 Td {lines}ET 60 400 m 240 520 l 420 400 l s"
        parts.append(f"{4 + 2 * at} 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents {5 + 2 * at} 0 R/Resources<</Font<</F 3 0 R>>>>>>endobj")
        parts.append(f"{5 + 2 * at} 0 obj<</Length {len(stream)}>>stream\n{stream}\nendstream endobj")
    return ("\n".join(parts) + f"\ntrailer<</Root 1 0 R/Size {4 + 2 * len(pages)}>>\n%%EOF\n").encode()


def sound():
    """Two seconds of silence and noise, as WAV."""
    import io
    import wave
    made = io.BytesIO()
    with wave.open(made, "wb") as out:
        out.setparams((1, 2, 8000, 0, "NONE", ""))
        out.writeframes(bytes((at * 7919 % 251 if at > 16000 else 0) for at in range(32000)))
    return made.getvalue()


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
    made["pdf"] = add("papers/herons.pdf", base64.b64encode(pdf("Herons of the lake\nA survey of nests, 2024 to 2026", "Results\nNineteen nests were counted in the reeds.", "")).decode(), encoding="base64")
    made["sound"] = add("sounds/call.wav", base64.b64encode(sound()).decode(), encoding="base64")
    made["html"] = add("pages/old.html", "<html><body><h1>Old page</h1><script>document.title='hacked'</script></body></html>")
    made["hostile"] = add("hostile.md", "<script>document.title='hacked'</script>\n\n# <img src=x onerror=\"document.title='hacked'\">\n\n![x](https://evil.example/x.png)\n")
    for number in range(1, 40):
        add(f"notes/{number:02}.txt", f"Note {number} about water, reeds and birds.\n")
    for lesson in (1, 2, 3):
        server.tool("write_content", book_id="birds-of-the-lake", path=f"lessons/part-1/chapter-01/lesson-0{lesson}.md",
                    content=f"# Lesson {lesson}\n\nWhat herons do in month {lesson}.\n")
    server.tool("upload_asset", book_id="birds-of-the-lake", asset_type="images", filename="dot.png",
                binary_data=base64.b64encode(PIXEL).decode())
    for number in range(1, 4):
        server.tool("write_memory_entry", file="progress_log.jsonl", entry={"timestamp": f"2026-11-1{number}T10:00:00Z", "event": f"counted part {number}", "details": "of the lake"})
    server.tool("write_memory_entry", file="decisions.jsonl", entry={"timestamp": "2026-11-12T12:00:00Z", "decision": "count in the morning", "rationale": "herons are at home then"})
    server.tool("add", name="cited.txt", content="one\ntwo herons\nthree\n", resource_id="cited")
    return {name: reply["document_id"] for name, reply in made.items()}


def check_pages(context, server, ids):
    page = context.new_page()
    unusable = []
    paths = ["/", "/search?q=heron", "/c", "/c/default", "/c/default?folder=notes/", "/graph", "/graph?type=function", f"/graph?node=doc:{ids['heron']}&depth=2",
             "/cite", "/cite?address=text://cited%23lines=2-2", "/books", "/books/birds-of-the-lake",
             "/books/birds-of-the-lake/lessons/part-1/chapter-01/lesson-02.md", "/snapshots", "/activity", "/activity?family=books", "/activity?by=nobody", "/tokens", "/account", "/admin?run=audit",
             "/memory", "/search", "/search?tag=water", "/search?q=her.n&mode=pattern", f"/cite?address=doc://{ids['pdf']}%23pages=2",
             f"/d/{ids['pdf']}?find=nests", "/d/00000000-0000-4000-8000-000000000000"]
    paths += [f"/d/{id}" for id in ids.values()]
    paths += [f"/d/{ids['heron']}?view={view}" for view in ("source", "versions", "links", "map")]
    for path in paths:
        reply = page.goto(server.url + path)
        assert reply.status == (404 if "00000000" in path else 200), f"{path}: {reply.status}"
        assert "hacked" not in page.title(), path
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 1, f"{path} is {wide} pixels too wide"
        assert page.locator("h1").count() >= 1, path
        unusable += violations(page, path)
    page.close()
    assert not unusable, "\n".join(unusable)


def accessible(page, path):
    """Fails unless everybody can use a page, as far as a program can tell."""
    found = violations(page, path)
    assert not found, "\n".join(found)


def violations(page, path):
    """What keeps some people from using a page."""
    if not AXE:
        return []
    page.evaluate(AXE)
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] }).then((all) => all.violations)")
    grave = [one for one in found if one["impact"] in ("serious", "critical")]
    return [f"{path}: {one['id']}: {one['help']}: {[node['html'][:200] for node in one['nodes'][:3]]}" for one in grave]


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
    page.locator(".hit-item").first.hover()
    expect(page.locator("[data-preview-pane]")).to_contain_text("frogs")


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
    page.goto(server.url + "/cite")
    page.locator("h1").click()
    page.keyboard.press("/")
    expect(page.locator(".quick input")).to_be_focused()
    page.goto(server.url + f"/d/{ids['code']}#L5-7")
    expect(page.locator(".line.marked")).to_have_count(3)
    page.locator("#L9 .number").click()
    page.wait_for_url("**#L9")
    page.locator("[data-theme-switch]").last.click()
    theme = page.evaluate("document.documentElement.dataset.theme")
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == theme, "the choice of theme stays"
    page.locator("[data-theme-switch]").last.click()
    page.goto(server.url + f"/d/{ids['heron']}#L3")
    page.wait_for_url("**lines=3-3**")
    expect(page.locator(".prose .hit")).to_contain_text("The heron waits")
    page.goto(server.url + f"/d/{ids['code']}?lines=5-7#L5")
    expect(page.locator(".line.marked")).to_have_count(3)


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
    # What is too large is not sent, and it is said why.
    page.goto(server.url + "/c/default?folder=upload/")
    expect(page.locator("tr[data-folder] a")).to_have_text(["inner/"])
    large = pathlib.Path(folder) / "large.bin"
    with large.open("wb") as file:
        file.truncate(40_000_000)
    sent = []
    page.on("request", lambda request: request.method == "POST" and sent.append(request.url))
    page.locator("input[multiple]:not([webkitdirectory])").set_input_files(str(large))
    expect(page.locator("[data-progress]")).to_contain_text("large.bin was not sent: it has 38.1 MiB, and a browser may send 32 MiB")
    assert not sent, sent
    # Of several files, the others are stored, and the page says so although it stays.
    small = pathlib.Path(folder) / "small.txt"
    small.write_text("small\n")
    page.locator("input[multiple]:not([webkitdirectory])").set_input_files([str(large), str(small)])
    expect(page.locator("[data-progress]")).to_contain_text("1 of 2 files is stored")
    with page.expect_navigation():
        page.get_by_role("button", name="Load the page again").click()
    expect(page.locator("td.name a", has_text="small.txt")).to_be_visible()
    # Files that are dropped beside the place for them do not take the page's place.
    stopped = page.evaluate("""() => {
      const data = new DataTransfer();
      data.items.add(new File(['x'], 'x.txt'));
      return !document.body.dispatchEvent(new DragEvent('dragover', { bubbles: true, cancelable: true, dataTransfer: data }));
    }""")
    assert stopped, "the browser would open the file"


def check_editor(page, server):
    path = "/books/birds-of-the-lake/lessons/part-1/chapter-01/lesson-03.md"
    page.goto(server.url + path + "?edit=1")
    page.locator("textarea").fill("# Mine\n")
    assert page.evaluate("!dispatchEvent(new Event('beforeunload', { cancelable: true }))"), "it is asked before leaving"
    server.tool("write_content", book_id="birds-of-the-lake", path="lessons/part-1/chapter-01/lesson-03.md", content="# Theirs\n")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".refusal")).to_contain_text("Somebody else changed")
    expect(page.locator(".diff")).to_contain_text("Theirs")
    page.locator("textarea").fill("# Mine and theirs\n")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".prose h1")).to_have_text("Mine and theirs")
    server.tool("write_summary", book_id="birds-of-the-lake", chapter_id="chapter-01", content="First summary")
    page.goto(server.url + "/books/birds-of-the-lake/chapters/chapter-01/.summary.md?edit=1")
    page.locator("textarea").fill("My summary")
    server.tool("write_summary", book_id="birds-of-the-lake", chapter_id="chapter-01", content="Their summary")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".refusal")).to_contain_text("Somebody else changed")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".prose")).to_have_text("My summary")
    assert server.tool("read_summary", book_id="birds-of-the-lake", chapter_id="chapter-01")["content"] == "My summary"


def check_graph(page, server, ids):
    page.goto(server.url + "/graph")
    page.get_by_role("link", name="method", exact=True).click()
    page.get_by_role("link", name="hunts").click()
    expect(page.locator(".neighbours")).to_contain_text("main.rs")
    page.goto(server.url + f"/graph?node=doc:{ids['heron']}")
    nodes = page.locator("svg [data-node]")
    assert nodes.count() >= 2
    server.tool("add", name="birds/eggs.md", content="# Eggs\n\nNot of [frogs](frogs.md).\n")
    page.goto(server.url + f"/graph?node=doc:{ids['heron']}")
    before = nodes.count()
    page.locator(f"svg [data-node='doc:{ids['frogs']}']").click()
    page.wait_for_url("**&open=**")
    assert nodes.count() > before, "the neighbours of the node that was clicked are there too"
    page.get_by_role("link", name="Fold frogs.md").click()
    expect(nodes).to_have_count(before)
    page.locator(".neighbours li a").first.click()
    page.wait_for_url("**/graph?node=**")
    expect(page.locator(".neighbours li").first).to_be_visible()


def check_large_graph(page, server):
    """A picture of 300 nodes opens at once, follows the pointer, and names what one looks at closely."""
    most = 300
    for number in range(1, most + 1):
        server.tool("add", name=f"node-{number}.md", content=f"# Node {number}\n\n[next](node-{number % most + 1}.md)\n", collection="hub")
    links = "".join(f"- [node {number}](node-{number}.md)\n" for number in range(1, most + 1))
    hub = server.tool("add", name="hub.md", content=f"# Hub\n\n{links}", collection="hub")["document_id"]
    node = server.tool("add", name="node-7.md", content="# Node 7\n\n[next](node-8.md)\n", collection="hub")["document_id"]
    page.goto(f"{server.url}/d/{node}?view=links")
    for heading, told, name in [("What it leads to", "links to", "node-8"), ("What leads here", "linked from", "hub")]:
        rows = page.locator(f"h2:text-is('{heading}') + ul li")
        expect(rows.filter(has_text=told).filter(has_text=name)).not_to_have_count(0)
    address = f"{server.url}/graph?node=doc:{hub}"
    page.goto(address)
    times = []
    for _ in range(5):
        page.goto(address)
        times.append(page.evaluate("performance.getEntriesByType('navigation').map((one) => [one.responseStart - one.requestStart, one.domContentLoadedEventEnd])[0]"))
    picture = page.locator("svg[data-graph]")
    expect(picture.locator("[data-node]")).to_have_count(most + 1)
    first, shown = (sorted(time[at] for time in times)[2] for at in (0, 1))
    # Far from the target: others may use the machine. `cargo xtask bench console` measures it on a quiet one.
    assert first <= 500 and shown <= 2_000, f"{first:.0f} ms to the first byte, {shown:.0f} ms until it is shown"
    place = picture.bounding_box()
    corner = (place["x"] + 15, place["y"] + 15)
    box = picture.get_attribute("viewBox")
    # How long it takes from each movement to the next picture on the screen.
    picture.evaluate("""(svg) => { window.waits = []; svg.addEventListener('pointermove', (event) => {
        requestAnimationFrame(() => setTimeout(() => window.waits.push(performance.now() - event.timeStamp))); }); }""")
    page.mouse.move(*corner)
    page.mouse.down()
    for step in range(1, 25):
        page.mouse.move(corner[0] + 4 * step, corner[1] + 3 * step)
    page.mouse.up()
    page.wait_for_timeout(300)
    waits = sorted(page.evaluate("window.waits"))
    assert len(waits) >= 10 and waits[len(waits) // 2] <= 250, f"dragging takes {waits} ms a frame"
    assert picture.get_attribute("viewBox") != box, "the picture follows the pointer"
    page.mouse.move(5, 5)
    shown_names = """(svg) => [...svg.querySelectorAll('text')].filter((one) => getComputedStyle(one).display !== 'none').map((one) => one.getBoundingClientRect())"""
    named = lambda: picture.evaluate(f"(svg) => ({shown_names})(svg).length")
    crossing = lambda: picture.evaluate(f"""(svg) => {{ const all = ({shown_names})(svg);
        return all.filter((one, at) => all.slice(0, at).some((other) => one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom)).length; }}""")
    height = lambda: picture.evaluate(f"(svg) => ({shown_names})(svg)[0].height")
    few = named()
    assert 1 <= few < most and crossing() == 0, "names that would stand on each other are not shown"
    assert 10 <= height() <= 20, f"names are as large as other text, not {height()} px"
    for _ in range(3):
        page.get_by_role("button", name="Closer").click()
    assert named() > few and crossing() == 0, "more names are shown when there is room for them"
    assert 10 <= height() <= 20, f"names stay as large as they are, not {height()} px"
    page.get_by_role("button", name="Whole picture").click()
    assert named() < most and crossing() == 0
    hidden = picture.locator("[data-node]:has(text.far)").first
    hidden.locator("circle").hover()
    expect(hidden.locator("text")).to_be_visible()
    expect(page.locator(".neighbours li")).to_have_count(most)
    accessible(page, "a large graph")


def check_families(page, server):
    """The activity by family: of the journal, and of the calls in the charts."""
    page.goto(server.url + "/activity")
    page.get_by_label("Family").select_option("books")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**family=books**")
    rows = page.locator("table.events tbody tr")
    expect(rows.first).to_be_visible()
    assert all("birds-of-the-lake" in text for text in rows.all_inner_texts())
    charts = page.locator(".multiple code")
    assert "write_content" in charts.all_inner_texts() and "add" not in charts.all_inner_texts()
    server.tool("add", name="other.txt", content="not of a book")
    server.tool("write_content", book_id="birds-of-the-lake", path="lessons/part-1/chapter-01/lesson-04.md", content="# Live\n")
    expect(page.locator("tr.new", has_text="lesson-04.md").first).to_be_visible()
    assert page.locator("tr.new", has_text="other.txt").count() == 0, "events of other families are not told"
    page.goto(server.url + "/activity?family=workspace")
    expect(page.locator(".state")).to_contain_text("Memory")
    assert "write_memory_entry" in charts.all_inner_texts()
    page.goto(server.url + "/activity?family=citations&by=nobody")
    expect(page.locator(".state")).to_contain_text("Nothing fits")


def check_palette(page, server, ids):
    """The palette reaches actions as well as pages."""
    page.goto(server.url + f"/d/{ids['heron']}")
    page.keyboard.press("Control+k")
    page.keyboard.type("metadata")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Name of another")).to_be_visible()
    page.keyboard.press("Control+k")
    page.keyboard.type("versions")
    page.keyboard.press("Enter")
    page.wait_for_url("**view=versions")
    # Actions of other pages are reached too.
    page.keyboard.press("Control+k")
    page.keyboard.type("make a user")
    page.keyboard.press("Enter")
    page.wait_for_url("**/admin#make")
    expect(page.get_by_label("Email address")).to_be_visible()
    page.goto(server.url + "/c/default")
    page.keyboard.press("Control+k")
    page.keyboard.type("zip")
    expect(page.locator("dialog li").first).to_have_text("Download as ZIP")
    page.keyboard.press("Escape")
    theme = page.evaluate("document.documentElement.dataset.theme")
    page.keyboard.press("Control+k")
    page.keyboard.type("light or")
    page.keyboard.press("Enter")
    assert page.evaluate("document.documentElement.dataset.theme") != theme
    page.locator("[data-theme-switch]").last.click()


def check_pages_of_pdf(page, server, ids):
    page.goto(server.url + f"/d/{ids['pdf']}")
    expect(page.locator(".sheet img")).to_have_count(3)
    # Waiting for an expression would evaluate a text again and again, which the policy of the page forbids.
    for _ in range(300):
        if page.locator(".sheet img").first.evaluate("image => image.naturalWidth") > 500:
            break
        page.wait_for_timeout(100)
    else:
        raise AssertionError("the first page is not drawn")
    page.get_by_label("Find in this document").fill("nineteen")
    page.get_by_role("button", name="Find").click()
    expect(page.locator(".text-line.marked")).to_contain_text("Nineteen nests")
    page.goto(server.url + "/search?q=nineteen+nests+counted")
    page.locator(".hit-item").first.hover()
    expect(page.locator("[data-preview-pane] .sheet img")).to_be_visible()
    page.goto(server.url + f"/cite?address=doc://{ids['pdf']}%23pages=2")
    expect(page.locator(".sheet img")).to_have_count(1)


def check_undo(page, server):
    made = server.tool("add", name="gone.txt", content="soon gone", tags=["kept"])
    page.goto(server.url + f"/d/{made['document_id']}")
    page.locator(".metadata summary").click()
    page.get_by_label("Name of another").fill("colour")
    page.get_by_label("Value of another").fill("grey")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".metadata .figure")).to_have_text("1")
    page.get_by_text("Delete", exact=True).click()
    page.get_by_role("button", name="Delete this document").click()
    page.get_by_role("button", name="Undo").click()
    page.wait_for_url("**/d/**")
    expect(page.locator(".content")).to_contain_text("soon gone")
    expect(page.locator(".tag")).to_contain_text("kept")


def check_old_id(page, server):
    """A document that came back is the one that it was; one that was added again in its place has another id."""
    made = server.tool("add", name="back.txt", content="here again")
    page.goto(server.url + f"/d/{made['document_id']}")
    page.get_by_text("Delete", exact=True).click()
    page.get_by_role("button", name="Delete this document").click()
    expect(page.locator("main")).to_contain_text("under its id")
    page.get_by_role("button", name="Undo").click()
    page.wait_for_url(f"**/d/{made['document_id']}")
    expect(page.locator(".content")).to_contain_text("here again")
    server.tool("delete_document_tool", document_id=made["document_id"])
    server.tool("add", name="back.txt", content="in its place")
    assert page.goto(server.url + f"/d/{made['document_id']}").status == 410
    page.get_by_role("link", name="back.txt").click()
    expect(page.locator(".content")).to_contain_text("in its place")


def check_hostile(page, server):
    """What agents stored may be meant to harm whoever looks at it: nothing of it runs, and no page becomes too wide."""
    evil = "<img src=x onerror=\"window.hacked=1\"><script>window.hacked=1<\\script>"
    long, turned = "W" * 180, "\u202egpj.exe\u2066"
    script = "</code></pre></textarea></title><script>window.hacked=1</script>"
    made = {}
    for name, content in {
        f"evil/{evil}.md": f"# {script}\n\n{long}\n\n[x](javascript:window.hacked=1) <a href='javascript:window.hacked=1'>y</a>\n\n```html\n{script}\n```\n",
        f"evil/{turned}.txt": f"{script} {turned}\n{long}\n",
        f"evil/{long}.js": f"// {script}\nconst a = \"{script}\"; /* {long} */\n",
        "evil/picture.svg": "<svg xmlns='http://www.w3.org/2000/svg' onload='window.hacked=1'><script>window.hacked=1</script></svg>",
        "evil/page.html": f"<title>x</title><body onload='window.hacked=1'>{script}</body>",
        "evil/table.csv": f"\"{script}\",{long}\n{turned},1\n",
        "evil/tree.json": json.dumps({script: [script, long, turned]}),
    }.items():
        made[name] = server.tool("add", name=name, content=content, tags=[evil, long, turned], metadata={evil: script, long: turned})["document_id"]
    made["pdf"] = server.tool("add", name="evil/paper.pdf", content=base64.b64encode(pdf("<script>window.hacked=1</script>")).decode(), encoding="base64")["document_id"]
    made["titled"] = server.tool("store_document_tool", title=f"{evil} {turned} {long}", content=script)["document_id"]
    server.tool("write_memory_entry", file="decisions.jsonl", entry={"timestamp": "2026-11-12T12:00:00Z", "decision": script, long: turned})
    first = next(iter(made.values()))
    asked = urllib.parse.quote(script)
    paths = ["/", "/c/default?folder=evil/", "/c/default?find=gpj", f"/search?q={asked}", f"/search?q={asked}&mode=pattern", "/search?q=hacked", f"/search?tag={urllib.parse.quote(evil)}",
             "/activity", f"/activity?by={asked}", "/graph", f"/graph?node=doc:{first}&depth=2", f"/graph?name={asked}", f"/cite?address={asked}", "/snapshots", "/memory", f"/memory?contains={asked}", f"/admin?user={asked}"]
    paths += [f"/d/{id}{view}" for id in made.values() for view in ("", "?view=source", "?view=versions", "?view=links", "?view=map")]
    dialogs = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    for path in paths:
        page.goto(server.url + path)
        assert page.evaluate("window.hacked") is None, f"a script of a document ran on {path}"
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 1, f"{path} is {wide} pixels too wide"
        assert page.evaluate("![...'\\u202e\\u2066'].some((sign) => document.body.innerText.includes(sign))"), f"{path} turns the direction"
    page.goto(server.url + f"/d/{made['evil/page.html']}")
    page.get_by_text("Show it rendered").click()
    page.wait_for_timeout(500)
    assert page.evaluate("window.hacked") is None and not dialogs
    page.goto(server.url + f"/raw/{made['evil/picture.svg']}")
    page.wait_for_timeout(300)
    assert page.evaluate("window.hacked") is None, "the file itself runs nothing either"


def check_no_workspace(page, empty):
    assert page.goto(empty.url + "/memory").status == 200
    expect(page.locator(".state")).to_contain_text("--workspace")


def check_tree(page, server):
    """Folders open in place, by mouse and by keyboard, and close again; names are filtered."""
    for path in ("tree/one/a.txt", "tree/one/b.txt", "tree/two/deep/deeper/c.txt", "tree/d.txt"):
        server.tool("add", name=path, content=f"about {path}")
    page.goto(server.url + "/c/default")
    page.get_by_role("button", name="Folders in tree/").click()
    expect(page.locator("tr[data-level='1'] a")).to_have_text(["one/", "two/", "1 document"])
    page.get_by_role("button", name="Folders in two/").press("Enter")
    expect(page.locator("tr[data-level='2'] a")).to_have_text(["deep/deeper/ 1 document"])
    accessible(page, "a tree of folders")
    page.get_by_role("button", name="Folders in tree/").press("Enter")
    expect(page.locator("tr[data-level='1'], tr[data-level='2']")).to_have_count(0)
    page.goto(server.url + "/c/default?folder=tree/")
    page.get_by_label("Filter by name").fill("C.TX")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator("table.data tbody tr")).to_have_count(1)
    expect(page.locator("table.data tbody")).to_contain_text("c.txt")
    accessible(page, "a filter")


def check_live(page, server):
    page.goto(server.url + "/activity")
    expect(page.locator("[data-live-switch] input")).to_be_checked()
    page.wait_for_timeout(1_000)
    server.tool("add", name="live.txt", content="just now")
    expect(page.locator("tr.new", has_text="live.txt").first).to_be_visible()
    page.goto(server.url + "/admin")
    page.get_by_role("link", name="Check everything").click()
    expect(page.locator("[data-run-result]")).to_contain_text("Everything is as it was stored")


def check_downloads(page, server):
    page.goto(server.url + "/c/default?folder=notes/")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download as ZIP").click()
    import zipfile
    names = zipfile.ZipFile(download.value.path()).namelist()
    assert len(names) == 39 and "01.txt" in names, names


def check_assets(page, server, folder):
    picture = pathlib.Path(folder) / "pond.png"
    picture.write_bytes(PIXEL)
    page.goto(server.url + "/books/birds-of-the-lake")
    page.get_by_text("Add assets").click()
    with page.expect_navigation():
        page.locator("[data-to$='/images'] input[type=file]").set_input_files(str(picture))
    expect(page.locator("table.data")).to_contain_text("pond.png")


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
        page.locator("summary", has_text="Make a personal token").click()
        page.get_by_label("Label").first.fill("agent")
        page.get_by_role("button", name="Make the token").first.click()
        key = re.search(r"pat_live_[\w-]{32}", page.content()).group(0)
        server.tool("add", token=key, name=f"by-{scripts}.txt", content="from an agent about ospreys")
        if scripts:
            page.reload()
            assert key not in page.content(), "shown once"
            expect(page.locator("table.data tbody tr")).to_have_count(1)
        page.goto(server.url + "/search?q=ospreys")
        assert page.locator(".hit-item").count() >= 1
        page.goto(server.url + "/tokens")
        page.get_by_role("button", name="Revoke").first.click()
        expect(page.locator("main")).to_contain_text("cannot be undone")
        page.get_by_role("button", name="Revoke the token").click()
        page.wait_for_url("**/tokens")
        expect(page.locator("table.data")).to_contain_text("ended")
        page.get_by_role("button", name="Sign out").last.click()
        page.wait_for_url("**/sign-in")
        assert page.goto(server.url + "/tokens").status == 401
        assert not watch.problems, watch.problems
        context.close()
    context = browser.new_context()
    watch = Watch(context, server.url)
    page = context.new_page()
    page.goto(server.url)
    page.get_by_label("Name or email address").fill("root")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator(".side .who")).to_contain_text("root")
    page.goto(server.url + "/admin")
    accessible(page, "/admin")
    expect(page.locator("table.data").first).to_contain_text("alice@example.com")
    page.goto(server.url + "/tokens")
    page.locator("summary", has_text="Make a personal token").click()
    page.get_by_label("Label").first.fill("reader")
    page.get_by_label("write", exact=True).first.uncheck()
    page.get_by_role("button", name="Make the token").first.click()
    key = re.search(r"pat_live_[\w-]{32}", page.content()).group(0)
    context.close()
    assert not watch.problems, watch.problems
    context = browser.new_context()
    watch = Watch(context, server.url)
    page = context.new_page()
    page.goto(server.url + "/sign-in")
    accessible(page, "/sign-in")
    page.get_by_label("Token").fill(key)
    page.get_by_role("button", name="Continue").click()
    expect(page.locator(".side .who")).to_contain_text("read only")
    for path in ("/", "/search", "/c", "/books", "/snapshots", "/activity", "/tokens", "/account"):
        assert page.goto(server.url + path).status == 200, path
        assert page.locator("button.danger, .drop:visible").count() == 0, path
        accessible(page, path)
    context.close()
    assert not watch.problems, watch.problems
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
             "activity": "/activity", "tokens": "/tokens", "admin": "/admin?run=check", "snapshots": "/snapshots", "pdf": f"/d/{ids['pdf']}",
             "sound": f"/d/{ids['sound']}", "page-evidence": f"/cite?address=doc://{ids['pdf']}%23pages=2", "memory": "/memory",
             "related": f"/d/{ids['heron']}?view=links", "contents": "/books/birds-of-the-lake"}
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
        pathlib.Path(f"{folder}/space").mkdir()
        server = Server(f"{folder}/library", "--no-auth", "--workspace", f"{folder}/space")
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
        check_large_graph(page, server)
        check_families(page, server)
        check_palette(page, server, ids)
        check_pages_of_pdf(page, server, ids)
        check_undo(page, server)
        check_old_id(page, server)
        check_tree(page, server)
        check_live(page, server)
        check_downloads(page, server)
        check_assets(page, server, folder)
        context.close()
        assert not watch.problems, "\n".join(watch.problems)
        for width in (360, 1440):
            context = browser.new_context(viewport={"width": width, "height": 800})
            watch = Watch(context, server.url)
            check_hostile(context.new_page(), server)
            context.close()
            assert not watch.problems, "\n".join(watch.problems)
        context = browser.new_context()
        check_no_workspace(context.new_page(), empty)
        context.close()
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
