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


STRICT = {"convert_schemas_to_strict": True}


class Stub(Model):
    """Calls a tool once, then repeats what came back."""

    def __init__(self, asked):
        self.tool, self.arguments = asked.tool, asked.arguments
        self.tools = []
        self.output = None

    async def get_response(self, system_instructions, input, model_settings, tools, *args, **kwargs):
        self.tools = [tool.name for tool in tools]
        self.definitions = tools
        results = [item for item in input if isinstance(item, dict) and item.get("type") == "function_call_output"]
        if results:
            self.output = results[-1]["output"]
            text = ResponseOutputText(type="output_text", text="done", annotations=[])
            said = ResponseOutputMessage(id="2", type="message", role="assistant", status="completed", content=[text])
        else:
            named = next(tool for tool in tools if tool.name == self.tool)
            empty = nothing(named.params_json_schema) if named.strict_json_schema else {}
            arguments = json.dumps({**empty, **self.arguments})
            said = ResponseFunctionToolCall(
                id="1", call_id="1", type="function_call", name=self.tool, arguments=arguments
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


def nothing(schema):
    """What a model writes for the properties that it leaves out: a strict schema makes all of them required,
    and gives each the one type that it has."""
    empty = {"string": "", "integer": 0, "object": {}}
    return {name: empty[part["type"]] for name, part in schema["properties"].items()}


def is_typed(schema):
    below = [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]
    return ("type" in schema or "anyOf" in schema) and all(is_typed(part) for part in below)


async def with_files(asked, server):
    """The SDK's default: a model gets content, and tools have strict schemas."""
    stub = Stub(asked)
    await Runner.run(Agent(name="tester", model=stub, mcp_servers=[server], mcp_config=STRICT), "go")
    for tool in stub.definitions:
        assert tool.strict_json_schema and is_typed(tool.params_json_schema), (tool.name, tool.params_json_schema)
    parts = stub.output
    pictures = [part["image_url"].split(";")[0].removeprefix("data:") for part in parts if part["type"] == "input_image"]
    texts = [json.loads(part["text"]) for part in parts if part["type"] == "input_text"]
    texts = [json.loads(text["text"]) if text.get("type") == "text" else text for text in texts]
    links = [text["uri"] for text in texts if text.get("type") == "resource_link"]
    read = [(await server.session.read_resource(uri)).contents[0].text for uri in links]
    answer("openai-agents", stub.tools, texts[0], False, pictures=pictures, read=read)


async def main(asked):
    set_tracing_disabled(True)
    if asked.url:
        server = MCPServerStreamableHttp(
            params={"url": asked.url, "headers": asked.headers}, use_structured_content=not asked.files
        )
    else:
        params = {"command": asked.command[0], "args": asked.command[1:]}
        server = MCPServerStdio(params=params, use_structured_content=not asked.files)
    async with server:
        if asked.files:
            return await with_files(asked, server)
        stub = Stub(asked)
        agent = Agent(name="tester", model=stub, mcp_servers=[server], mcp_config=STRICT)
        await Runner.run(agent, "go")
        structured = structured_content(stub.output)
        answer("openai-agents", stub.tools, structured, structured.get("status") == "failed")


run(main)
