"""FastMCP's client."""

from asked import answer, run
from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport


async def main(asked):
    if asked.url:
        transport = StreamableHttpTransport(asked.url, headers=asked.headers)
    else:
        transport = StdioTransport(command=asked.command[0], args=asked.command[1:], keep_alive=False)
    async with Client(transport) as client:
        tools = await client.list_tools()
        result = await client.call_tool("execute_code", asked.arguments, raise_on_error=False)
        answer("fastmcp", [tool.name for tool in tools], result.structured_content, result.is_error)


run(main)
