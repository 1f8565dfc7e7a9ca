"""The official Python SDK, 1.x: a session that begins with a handshake (2025-11-25)."""

from contextlib import AsyncExitStack

from asked import answer, elicitation, run
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client


async def main(asked):
    asked_for = []

    async def elicit(_context, params):
        asked_for.append(params.message)
        return types.ElicitResult(**elicitation(asked.decide))

    async with AsyncExitStack() as stack:
        if asked.url:
            streams = await stack.enter_async_context(streamablehttp_client(asked.url, headers=asked.headers))
        else:
            server = StdioServerParameters(command=asked.command[0], args=asked.command[1:])
            streams = await stack.enter_async_context(stdio_client(server))
        callback = elicit if asked.decide else None
        session = ClientSession(streams[0], streams[1], elicitation_callback=callback)
        await stack.enter_async_context(session)
        info = await session.initialize()
        assert info.serverInfo.name == "belljar", info
        tools = await session.list_tools()
        result = await session.call_tool(asked.tool, asked.arguments)
        names = [tool.name for tool in tools.tools]
        if asked.decide:
            assert asked_for and "Allow the call of" in asked_for[0], asked_for
        pictures = [block.mimeType for block in result.content if block.type == "image"]
        links = [block.uri for block in result.content if block.type == "resource_link"]
        read = [(await session.read_resource(uri)).contents[0].text for uri in links]
        answer("mcp", names, result.structuredContent, result.isError, pictures=pictures, read=read)


run(main)
