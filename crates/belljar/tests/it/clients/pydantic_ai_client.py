"""Pydantic AI: an agent whose model is a function that calls execute_code once."""

import json

from asked import answer, run
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel


async def main(asked):
    seen = {"tools": [], "returned": None}

    def model(messages, info):
        seen["tools"] = [tool.name for tool in info.function_tools]
        for part in messages[-1].parts:
            if part.part_kind in ("tool-return", "retry-prompt"):
                seen["returned"] = part
                return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart("execute_code", asked.arguments)])

    if asked.url:
        transport = StreamableHttpTransport(asked.url, headers=asked.headers)
    else:
        transport = StdioTransport(command=asked.command[0], args=asked.command[1:], keep_alive=False)
    agent = Agent(FunctionModel(model), toolsets=[MCPToolset(transport)])
    async with agent:
        await agent.run("go")
    returned = seen["returned"]
    structured = returned.content
    if isinstance(structured, str):
        try:
            structured = json.loads(structured)
        except ValueError:
            structured = {"text": structured}
    # It hands structured content to the model whether the call failed or not.
    failed = returned.part_kind == "retry-prompt" or structured.get("status") == "failed"
    answer("pydantic-ai-slim", seen["tools"], structured, failed)


run(main)
