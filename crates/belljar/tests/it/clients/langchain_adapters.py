"""LangChain's MCP adapters: tools as an agent of LangChain gets them."""

import json

from asked import answer, run
from langchain_core.tools import ToolException
from langchain_mcp_adapters.callbacks import Callbacks
from langchain_mcp_adapters.client import MultiServerMCPClient
from mcp.types import ElicitResult


def text(content):
    return content if isinstance(content, str) else content[0]["text"]


async def main(asked):
    if asked.url:
        server = {"transport": "streamable_http", "url": asked.url, "headers": asked.headers}
    else:
        server = {"transport": "stdio", "command": asked.command[0], "args": asked.command[1:]}

    async def elicit(_mcp_context, params, _context):
        forms.append(params.model_dump(by_alias=True, exclude_none=True))
        if asked.decide == "close":
            return ElicitResult(action="cancel")
        decision = {"approve": "once"}.get(asked.decide, asked.decide)
        return ElicitResult(action="accept", content={"decision": decision})

    forms = []
    callbacks = Callbacks(on_elicitation=elicit) if asked.decide else None
    client = MultiServerMCPClient({"belljar": server}, callbacks=callbacks)
    tools = await client.get_tools()
    execute = next(tool for tool in tools if tool.name == asked.tool)
    names = [tool.name for tool in tools]
    call = {"name": asked.tool, "args": asked.arguments, "id": "1", "type": "tool_call"}
    try:
        message = await execute.ainvoke(call)
    except ToolException as error:
        answer("langchain-mcp-adapters", names, {"text": str(error)}, True, forms=forms)
        return
    # Of a failed call it passes on the text only, which is the same JSON.
    structured = (message.artifact or {}).get("structured_content") or json.loads(text(message.content))
    blocks = [block for block in message.content if isinstance(block, dict)]
    pictures = [block["mime_type"] for block in blocks if block["type"] == "image"]
    links = [block["url"] for block in blocks if block["type"] == "file"]
    resources = await client.get_resources("belljar", uris=links) if links else []
    read = [resource.as_string() for resource in resources]
    more = {"pictures": pictures, "read": read, "forms": forms}
    answer("langchain-mcp-adapters", names, structured, message.status == "error", **more)


run(main)
