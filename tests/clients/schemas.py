"""Gives every tool to the converters of model providers; fails when one of them does not take a tool.

Usage: schemas.py TOOLS, a file with the reply to tools/list.
"""

import json
import sys
from pathlib import Path

from anthropic.lib.tools.mcp import mcp_tool
from google.genai import _mcp_utils, types
from mcp import types as protocol

listed = json.loads(Path(sys.argv[1]).read_text())["tools"]
failures = []
for tool in listed:
    def convert(what, work):
        try:
            work()
        except Exception as error:  # whatever a converter fails with is what we want to know
            failures.append(f"{what} does not take {tool['name']}: {type(error).__name__}: {str(error)[:300]}")

    parsed = protocol.Tool.model_validate(tool)
    convert("google-genai", lambda: _mcp_utils.mcp_to_gemini_tool(parsed))
    convert("anthropic", lambda: mcp_tool(parsed, None))
    for part in ("inputSchema", "outputSchema"):
        schema = types.JSONSchema.model_validate(tool[part])
        convert(f"google-genai ({part})", lambda: types.Schema.from_json_schema(json_schema=schema))
if failures or not listed:
    raise SystemExit("\n".join(failures) or "there are no tools")
print(f"{len(listed)} tools are taken by google-genai and anthropic")
