"""Draws `terminal.svg`: runs a few commands on a library of its own and shows what they print, as a terminal would.

Usage: python3 docs/images/terminal.py PATH_OF_SHELF
"""

import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path

SHELF = Path(sys.argv[1]).resolve()
TARGET = Path(__file__).with_name("terminal.svg")
COLUMNS, CHARACTER, LINE, MARGIN = 92, 8.4, 20, 20
# What is shown of a command: it, and how many lines of its output.
COMMANDS = [
    ("shelf demo", 2),
    ("shelf search keeping maps dry", 6),
    ("shelf get 'text://shelfmarks#lines=3-3'", 3),
    ("shelf grep -n 'map|chart'", 5),
]
COLOURS = {31: "#e06c75", 32: "#98c379", 33: "#e5c07b", 34: "#61afef", 35: "#c678dd", 36: "#56b6c2", 90: "#7f848e"}
PLAIN, DIM = "#dcdfe4", "#9aa0a8"


def printed(command, environment):
    """What a command prints on a terminal."""
    master, terminal = pty.openpty()
    process = subprocess.Popen(command, shell=True, env=environment, stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal)
    os.close(terminal)
    output = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:
            break
        if not piece:
            break
        output += piece
    process.wait()
    # Progress that was overwritten is gone.
    lines = [line.rstrip("\r").split("\r")[-1] for line in output.decode().split("\n")]
    return [line for line in lines if re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line).strip()]


def rows_of(line):
    """A line as rows of the terminal, each made of pieces of one look."""
    rows, fill, weight, width = [""], PLAIN, "", 0
    for piece in re.split(r"(\x1b\[[0-9;?]*[A-Za-z])", line):
        found = re.fullmatch(r"\x1b\[([0-9;]*)m", piece)
        if found:
            for code in (int(code or 0) for code in found[1].split(";")):
                if code == 0:
                    fill, weight = PLAIN, ""
                elif code == 1:
                    weight = ' font-weight="bold"'
                elif code == 2:
                    fill = DIM
                fill = COLOURS.get(code, COLOURS.get(code - 60, fill))
        elif not piece.startswith("\x1b"):
            while piece:
                if width == COLUMNS:
                    rows.append("")
                    width = 0
                part, piece = piece[: COLUMNS - width], piece[COLUMNS - width :]
                width += len(part)
                rows[-1] += f'<tspan fill="{fill}"{weight}>{escape(part)}</tspan>'
    return rows


def main():
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(SHELF, Path(folder) / "shelf")
        environment = {
            **os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "SHELF_DATA_DIR": f"{folder}/library",
            "TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "HOME": folder,
        }
        for command, most in COMMANDS:
            if rows:
                rows.append("")
            rows.append(f'<tspan fill="#98c379">$</tspan> <tspan fill="#ffffff">{escape(command)}</tspan>')
            lines = printed(command, environment)
            rows += [row for line in lines[:most] for row in rows_of(line)]
            if len(lines) > most:
                rows.append(f'<tspan fill="{DIM}">…</tspan>')
    width, height = round(COLUMNS * CHARACTER) + 2 * MARGIN, len(rows) * LINE + 2 * MARGIN
    text = "".join(f'<text x="{MARGIN}" y="{MARGIN + LINE * number + 14}">{row}</text>\n' for number, row in enumerate(rows) if row)
    TARGET.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="14" xml:space="preserve">\n'
        f'<rect width="100%" height="100%" rx="8" fill="#22252b"/>\n{text}</svg>\n'
    )


main()
