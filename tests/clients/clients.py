"""Takes the tour with a client written in Python.

Usage: clients.py CLIENT TRANSPORT ERA TARGET FOLDER, where CLIENT is mcp, fastmcp, langchain or openai-agents; TRANSPORT is
stdio or http; ERA is legacy or modern; TARGET is the program for stdio and the URL for http; and FOLDER has room for the
library and the workspace. Prints the replies as JSON.
"""

import asyncio
import json
import sys
import warnings

from tour import Tour

CLIENT, TRANSPORT, ERA, TARGET, FOLDER = sys.argv[1:]
ARGUMENTS = ["--data-dir", f"{FOLDER}/library", "serve", "--workspace", f"{FOLDER}/workspace"]
ENVIRONMENT = {"SHELF_LOG_LEVEL": "error"}


async def take(call):
    tour = Tour(FOLDER, TRANSPORT)
    for tool, arguments, step in tour.calls():
        text, is_error = await call(tool, arguments)
        tour.answered(step, text, is_error)
    return tour.replies


async def official():
    from mcp import Client, StdioServerParameters, stdio_client

    if TRANSPORT == "stdio":
        target = stdio_client(StdioServerParameters(command=TARGET, args=ARGUMENTS, env=ENVIRONMENT))
    else:
        target = TARGET
    async with Client(target, mode="legacy" if ERA == "legacy" else "auto") as client:
        listed = await client.list_tools()
        # Over HTTP, `restore` and `download` are not listed until they are configured.
        assert len(listed.tools) == (53 if TRANSPORT == "stdio" else 51), len(listed.tools)

        async def call(tool, arguments):
            result = await client.call_tool(tool, arguments)
            return result.content[0].text, bool(result.is_error)

        return await take(call)


async def fastmcp():
    from fastmcp import Client
    from fastmcp.client.transports import StdioTransport

    target = StdioTransport(TARGET, ARGUMENTS, env=ENVIRONMENT) if TRANSPORT == "stdio" else TARGET
    async with Client(target) as client:
        await client.list_tools()

        async def call(tool, arguments):
            result = await client.call_tool(tool, arguments, raise_on_error=False)
            return result.content[0].text, result.is_error

        return await take(call)


async def langchain():
    from langchain_core.tools import ToolException
    from langchain_mcp_adapters.client import MultiServerMCPClient
    from langchain_mcp_adapters.tools import load_mcp_tools

    if TRANSPORT == "stdio":
        server = {"transport": "stdio", "command": TARGET, "args": ARGUMENTS, "env": ENVIRONMENT}
    else:
        server = {"transport": "streamable_http", "url": TARGET}
    client = MultiServerMCPClient({"shelf": server})
    async with client.session("shelf") as session:
        tools = {tool.name: tool for tool in await load_mcp_tools(session)}

        async def call(tool, arguments):
            # As a model calls it: the reply then says whether it is an error, which some versions do not raise.
            asked = {"type": "tool_call", "id": "1", "name": tool, "args": arguments}
            try:
                found = await tools[tool].ainvoke(asked)
            except ToolException as error:
                return str(error), True
            first = found.content if isinstance(found.content, str) else found.content[0]
            return first if isinstance(first, str) else first["text"], found.status == "error"

        return await take(call)


async def openai_agents():
    from agents.mcp import MCPServerStdio, MCPServerStreamableHttp, MCPUtil

    if TRANSPORT == "stdio":
        server = MCPServerStdio({"command": TARGET, "args": ARGUMENTS, "env": ENVIRONMENT})
    else:
        server = MCPServerStreamableHttp({"url": TARGET})
    async with server:
        for tool in await server.list_tools():
            MCPUtil.to_function_tool(tool, server, convert_schemas_to_strict=False)

        async def call(tool, arguments):
            result = await server.call_tool(tool, arguments)
            return result.content[0].text, bool(result.isError)

        return await take(call)


CLIENTS = {"mcp": official, "fastmcp": fastmcp, "langchain": langchain, "openai-agents": openai_agents}

if __name__ == "__main__":
    warnings.simplefilter("default")
    json.dump(asyncio.run(CLIENTS[CLIENT]()), sys.stdout, indent=1, ensure_ascii=False)
