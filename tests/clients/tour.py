"""The tour: every tool is called once or more, in an order in which each call has something to work on.

The clients differ in how they connect and call; what they are told must not differ. Every reply is made plain (ids, times
and paths are different in every run) and compared with `tour.replies.json`, which is reviewed.

Usage: tour.py TRANSPORT FOLDER REPLIES [--update], with what a client printed; --update writes the reviewed replies anew.
"""

import json
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
STEPS = json.loads((HERE / "tour.json").read_text())
REPLIES = HERE / "tour.replies.json"


def fill(value, saved):
    """Puts what earlier steps saved in the place of its name."""
    if isinstance(value, str):
        return re.sub(r"\$\{(\w+)\}", lambda match: saved[match[1]], value)
    if isinstance(value, list):
        return [fill(item, saved) for item in value]
    if isinstance(value, dict):
        return {name: fill(item, saved) for name, item in value.items()}
    return value


class Plain:
    """Takes out of replies what is different in every run."""

    UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
    OTHERS = [
        (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "<time>"),
        (re.compile(r"(cat|pat)_live_[\w-]+"), r"\1_live_<secret>"),
        (re.compile(r"http://(127\.0\.0\.1|localhost):\d+"), "http://<server>"),
        (re.compile(r"([?&]k)=[\w.-]+"), r"\1=<secret>"),
        (re.compile(r"(signature|expires|token|ticket)=[^&\"\s]+"), r"\1=<secret>"),
        (re.compile(r"\bevidence/[^/\s\"?]+/"), "evidence/<key>/"),
        (re.compile(r"/archives?/[^\s\"?]+"), "/archive/<key>"),
    ]

    def __init__(self, folder):
        self.folder, self.ids = folder, {}

    def value(self, value, key=""):
        if isinstance(value, str):
            return "<other>" if key in ("next_cursor", "nextCursor", "manifest_hash") else self.text(value)
        if isinstance(value, list):
            return [self.value(item, key) for item in value]
        if isinstance(value, dict):
            return {name: self.value(item, name) for name, item in value.items()}
        if isinstance(value, float):
            return round(value, 2)
        # An archive holds the time at which the book was made, which may be a digit shorter.
        numbers = ("unique_blocks", "dedup_ratio", "deduplicated_bytes", "node_id", "tokens_used", "total_size_bytes")
        if key.endswith("_ms") or key in numbers:
            return "<number>"
        return value

    def text(self, text):
        text = text.replace(self.folder, "<folder>")
        text = self.UUID.sub(lambda match: self.ids.setdefault(match[0], f"<id {len(self.ids) + 1}>"), text)
        for pattern, shown in self.OTHERS:
            text = pattern.sub(shown, text)
        return text


def of_text(text):
    """A reply is JSON in its text; a refusal may be a sentence."""
    try:
        return json.loads(text)
    except ValueError:
        return text


class Tour:
    """Hands out the calls one after the other and keeps what was answered."""

    def __init__(self, folder, transport):
        self.saved, self.replies = {"folder": folder}, []
        self.steps = [step for step in STEPS if step.get("only", transport) == transport]

    def calls(self):
        for step in self.steps:
            yield step["tool"], fill(step["arguments"], self.saved), step

    def answered(self, step, text, is_error):
        for name, field in step.get("save", {}).items():
            if is_error:
                raise SystemExit(f"{step['tool']} was refused: {text}")
            self.saved[name] = json.loads(text)[field]
        self.replies.append({"tool": step["tool"], "text": text, "is_error": is_error})


def plain(replies, folder):
    """Replies as they are compared."""
    plain, made = Plain(folder), []
    for reply in replies:
        kept = {"tool": reply["tool"], "reply": plain.value(of_text(reply["text"]))}
        made.append({**kept, "is_error": True} if reply["is_error"] else kept)
    return made


def compare(transport, folder, raw, update):
    """Compares the replies of one client with the reviewed ones, and says where they differ."""
    replies = plain(json.loads(Path(raw).read_text()), folder)
    reviewed = json.loads(REPLIES.read_text()) if REPLIES.exists() else {}
    if update:
        reviewed[transport] = replies
        REPLIES.write_text(json.dumps(reviewed, indent=1, ensure_ascii=False) + "\n")
        return
    expected = reviewed[transport]
    missing = {step["tool"] for step in STEPS} - {step["tool"] for step in replies}
    if missing - {"restore", "download"}:
        raise SystemExit(f"the tour does not call {sorted(missing)}")
    for number, (got, wanted) in enumerate(zip(replies, expected, strict=True), 1):
        if got != wanted:
            show = lambda value: json.dumps(value, ensure_ascii=False)
            raise SystemExit(f"step {number} of the tour:\n  got      {show(got)}\n  reviewed {show(wanted)}")


if __name__ == "__main__":
    compare(*sys.argv[1:4], update="--update" in sys.argv)
