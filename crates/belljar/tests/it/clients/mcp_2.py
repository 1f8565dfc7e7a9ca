"""The official Python SDK, 2.x: stateless where the server can (2026-07-28), else a session.

`--mode legacy` makes it begin with a handshake. Approvals are asked for by an answer that wants the
request again; the SDK does that by itself.
"""

from contextlib import AsyncExitStack

import httpx2
from asked import answer, elicitation, run
from mcp import Client, types
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client


async def main(asked):
    asked_for = []

    async def elicit(_context, params):
        asked_for.append(params.message)
        return types.ElicitResult(**elicitation(asked.decide))

    async with AsyncExitStack() as stack:
        if asked.url:
            http = httpx2.AsyncClient(headers=asked.headers, timeout=60)
            await stack.enter_async_context(http)
            server = streamable_http_client(asked.url, http_client=http)
        else:
            server = StdioServerParameters(command=asked.command[0], args=asked.command[1:])
        callback = elicit if asked.decide else None
        client = await stack.enter_async_context(Client(server, mode=asked.mode, elicitation_callback=callback))
        wanted = "2025-11-25" if asked.mode == "legacy" else "2026-07-28"
        assert client.session.protocol_version == wanted, client.session.protocol_version
        tools = await client.list_tools()
        result = await client.call_tool(asked.tool, asked.arguments)
        if asked.decide:
            assert asked_for and "Allow the call of" in asked_for[0], asked_for
        answer("mcp", [tool.name for tool in tools.tools], result.structured_content, result.is_error)


run(main)
