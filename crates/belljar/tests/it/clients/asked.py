"""What every client program is asked to do, and how it answers.

    PROGRAM --code CODE [--language L] [--mode M] [--decide approve|deny|close|run|always] --http URL --token T
    PROGRAM --code CODE [--language L] [--mode M] [--decide approve|deny|close|run|always] --stdio COMMAND ARGUMENT...

It lists the tools, calls execute_code, and prints one line of JSON (with --run ID instead of --code,
those that can decide look at that run with get_run):
{"client": name and version, "tools": [names], "structured": {...}, "isError": bool}.
With --files it also says what a model gets of files: "pictures", the media types of the pictures that it
sees as pictures, and "read", the text of each file that the answer links to, read by its link.
"""

import argparse
import asyncio
import json
from dataclasses import dataclass, field
from importlib.metadata import version


@dataclass
class Asked:
    tool: str
    arguments: dict
    mode: str
    decide: str | None
    files: bool
    command: list[str] = field(default_factory=list)
    url: str | None = None
    token: str | None = None

    @property
    def headers(self):
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


def asked():
    parser = argparse.ArgumentParser()
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--code")
    what.add_argument("--run")
    parser.add_argument("--language")
    parser.add_argument("--mode", default="auto", help="protocol: auto, legacy or 2026-07-28")
    parser.add_argument("--decide", choices=["approve", "deny", "close", "run", "always"])
    parser.add_argument("--files", action="store_true")
    parser.add_argument("--http")
    parser.add_argument("--token")
    parser.add_argument("--stdio", nargs=argparse.REMAINDER, default=[])
    given = parser.parse_args()
    tool, arguments = "execute_code", {"code": given.code}
    if given.run:
        tool, arguments = "get_run", {"run_id": given.run}
    if given.language:
        arguments["language"] = given.language
    return Asked(tool, arguments, given.mode, given.decide, given.files, given.stdio, given.http, given.token)


def elicitation(decide):
    """The answer of a person to a form, as the fields of an MCP result."""
    match decide:
        case "approve" | "deny":
            return {"action": "accept", "content": {"approve": decide == "approve"}}
        case "run" | "always":
            return {"action": "accept", "content": {"decision": decide}}
        case _:
            return {"action": "cancel"}


def answer(client, tools, structured, is_error, **files):
    name = f"{client} {version(client)}"
    print(json.dumps({"client": name, "tools": tools, "structured": structured, "isError": bool(is_error), **files}), flush=True)


def run(main):
    """Two minutes are enough for any of them; a client that hangs is a failure, not a wait."""
    asyncio.run(asyncio.wait_for(main(asked()), 120))
