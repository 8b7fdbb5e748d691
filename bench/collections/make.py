"""Makes two collections with judged questions out of documentation packages of Debian, for `shelf eval`.

Neither was looked at while the search was tuned. In `faq`, questions that people asked lead to their answers, among all
other sections of the same manuals; titles are left out, since they are the questions. In `manpages`, the one line that says
what a page is about leads to the page, which is long. Usage: make.py FOLDER-WITH-UNPACKED-PACKAGES OUTPUT"""

import gzip
import html
import json
import pathlib
import random
import re
import sys

SHORTEST, LONGEST, LONGEST_PAGE = 80, 6_000, 30_000
PAGES_ASKED_FOR = 500


class Collection:
    """Documents, and questions that one of them answers."""

    def __init__(self):
        self.documents, self.questions, self.known = [], [], set()

    def add(self, text, question=None):
        if text in self.known:
            return
        self.known.add(text)
        name = f"d{len(self.documents)}"
        self.documents.append({"_id": name, "title": "", "text": text})
        if question:
            self.questions.append((f"q{name}", question, name))

    def write(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        lines = lambda rows: "".join(json.dumps(row) + "\n" for row in rows)
        (folder / "corpus.jsonl").write_text(lines(self.documents))
        (folder / "queries.jsonl").write_text(lines({"_id": name, "text": text} for name, text, _ in self.questions))
        judged = "".join(f"{name}\t{document}\t1\n" for name, _, document in self.questions)
        (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged)
        print(f"{folder}: {len(self.documents)} documents, {len(self.questions)} questions")


def sections(pattern, text):
    """Headings with what follows them."""
    parts = re.split(pattern, text, flags=re.M | re.S)
    return zip(parts[1::2], parts[2::2])


def add_sections(collection, found, is_faq):
    for heading, body in found:
        heading, body = " ".join(heading.split()), body.strip()[:LONGEST]
        if len(body) >= SHORTEST:
            collection.add(body, heading if is_faq and heading.endswith("?") else None)


def plain_pod(text):
    text = re.sub(r"[A-Z]<<+\s(.*?)\s>>+", r"\1", text, flags=re.S)
    for _ in range(3):
        text = re.sub(r"[A-Z]<([^<>]*)>", lambda found: found.group(1).split("|")[0], text)
    return re.sub(r"^=.*$", "", text, flags=re.M)


def plain_rst(text):
    text = re.sub(r"^\.\. .*$|[=\-~^*#]{4,}\s*$", "", text, flags=re.M)
    return re.sub(r":\w+(?::\w+)?:`([^`]*)`", r"\1", text)


def plain_html(text):
    text = re.sub(r"<(script|style).*?</\1>", "", text, flags=re.S)
    return html.unescape(re.sub(r"<[^>]+>", " ", text))


def plain_roff(text):
    text = re.sub(r'^\.\\".*$', "", text, flags=re.M)
    text = re.sub(r"^[.'](SH|SS|Sh|Ss) *", "\n", text, flags=re.M)
    text = re.sub(r"^[.']\w+ *", "", text, flags=re.M)
    text = re.sub(r"\\f\(?[A-Z]{1,2}|\\f.|\\&|\\-|\\s[+-]?\d", "", text).replace("\\(aq", "'")
    return re.sub(r"\\\(..|\\\[.*?\]|\\e", "", text)


def faq(root):
    made = Collection()
    for path in sorted(root.rglob("*.pod")):
        found = sections(r"^=head[1-3] +([^\n]*)$", path.read_text(errors="replace"))
        found = ((plain_pod(heading), plain_pod(body)) for heading, body in found)
        add_sections(made, found, "faq" in path.name)
    for path in sorted(root.glob("usr/share/doc/python3*/html/_sources/**/*.rst.txt")):
        found = sections(r"^(\S[^\n]*)\n[=\-~^'\"*#]{4,}$", path.read_text(errors="replace"))
        add_sections(made, ((heading, plain_rst(body)) for heading, body in found), "/faq/" in str(path))
    for path in sorted(root.glob("usr/share/doc/zsh-common/html/*.html")):
        found = sections(r"<h[1-4][^>]*>(.*?)</h[1-4]>", path.read_text(errors="replace"))
        found = ((re.sub(r"^\s*[\d.]+:? *", "", plain_html(heading)), plain_html(body)) for heading, body in found)
        add_sections(made, found, "FAQ" in path.name)
    for path in root.glob("usr/share/doc/debian/FAQ/debian-faq.en.txt.gz"):
        text = gzip.open(path).read().decode()
        found = sections(r"^\d+\.\d+(?:\.\d+)?\. +([^\n]+(?:\n(?! ?\n)[^\n]+)?)\n", text)
        found = ((re.sub(r"-{3,}.*", "", heading), body) for heading, body in found if "...." not in body)
        add_sections(made, found, True)
    return made


def manual_pages(root):
    made, pages = Collection(), {}
    for path in sorted(root.glob("usr/share/man/man[1-9]/*.gz")):
        if path.is_symlink() or "perl" in path.name:
            continue
        raw = gzip.open(path).read().decode(errors="replace")
        name = re.search(r'^\.S[hH] "?NAME"?\s*\n(.*?)(?=^\.S[hH])', raw, flags=re.M | re.S)
        if not name:
            continue
        line = " ".join(plain_roff(name.group(1).replace("\\-", "-").replace(".Nd", "- ")).split())
        said = re.split(r" -+ ", line, maxsplit=1)[1:]
        body = re.sub(r"\n{3,}", "\n\n", plain_roff(raw[name.end():])).strip()[:LONGEST_PAGE]
        if said and len(body) >= 300:
            pages.setdefault(said[0].strip('"'), body)
    long_enough = sorted(said for said in pages if len(said.split()) >= 4)
    asked = set(random.Random(7).sample(long_enough, PAGES_ASKED_FOR))
    for said, body in pages.items():
        made.add(body, said if said in asked else None)
    return made


root, output = map(pathlib.Path, sys.argv[1:3])
faq(root).write(output / "faq")
manual_pages(root).write(output / "manpages")
