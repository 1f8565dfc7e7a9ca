"""OpenAI's Agents SDK: an agent whose model is a stub that calls execute_code once.

The stub speaks for a model, so that no network is needed; everything else is the SDK's own.
"""

import json

from agents import Agent, ModelResponse, Runner, set_tracing_disabled
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
from agents.models.interface import Model
from agents.usage import Usage
from asked import answer, run
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText


class Stub(Model):
    """Calls execute_code, then repeats what came back."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.tools = []
        self.output = None

    async def get_response(self, system_instructions, input, model_settings, tools, *args, **kwargs):
        self.tools = [tool.name for tool in tools]
        results = [item for item in input if isinstance(item, dict) and item.get("type") == "function_call_output"]
        if results:
            self.output = results[-1]["output"]
            text = ResponseOutputText(type="output_text", text="done", annotations=[])
            said = ResponseOutputMessage(id="2", type="message", role="assistant", status="completed", content=[text])
        else:
            arguments = json.dumps(self.arguments)
            said = ResponseFunctionToolCall(
                id="1", call_id="1", type="function_call", name="execute_code", arguments=arguments
            )
        return ModelResponse(output=[said], usage=Usage(), response_id=None)

    def stream_response(self, *args, **kwargs):
        raise NotImplementedError


def structured_content(output):
    """Tool output reaches a model as text, or as a list of texts."""
    if isinstance(output, list):
        output = output[0]["text"]
    value = json.loads(output)
    return json.loads(value["text"]) if isinstance(value, dict) and value.get("type") == "text" else value


async def main(asked):
    set_tracing_disabled(True)
    if asked.url:
        server = MCPServerStreamableHttp(
            params={"url": asked.url, "headers": asked.headers}, use_structured_content=True
        )
    else:
        params = {"command": asked.command[0], "args": asked.command[1:]}
        server = MCPServerStdio(params=params, use_structured_content=True)
    async with server:
        stub = Stub(asked.arguments)
        await Runner.run(Agent(name="tester", model=stub, mcp_servers=[server]), "go")
        structured = structured_content(stub.output)
        answer("openai-agents", stub.tools, structured, structured.get("status") == "failed")


run(main)
