"""How guest code spells a tool call: `mcp.server.tool(...)`, `tools`, `load`.

The guest knows no tools: it passes a name on as written, and the host resolves it.
"""

from collections.abc import Mapping

from .toolcall import ToolCall, value_of
from .toolerrors import NAMES

# The server name of Belljar's own tools.
OWN = "belljar"


def make_names(calls) -> dict:
    """The names of one run."""
    tools = Tools(calls)

    def load(handle):
        """The value behind a handle, whole."""
        return calls.call(OWN, "load", {"handle": handle})

    def __callTool__(name, args=None):  # noqa: N802 - the name of the same in TypeScript
        """Calls a tool by its full name."""
        return calls.call(None, _text(name), _merged(name, (args,), {}))

    return {
        "mcp": Servers(calls),
        "tools": tools,
        "load": load,
        "__callTool__": __callTool__,
        **NAMES,
    }


class Servers:
    """`mcp`: its attributes are the servers."""

    __slots__ = ("_belljar_calls",)

    def __init__(self, calls):
        self._belljar_calls = calls

    def __getattr__(self, name: str):
        return self[_public(name)]

    def __getitem__(self, name: str):
        return Server(self._belljar_calls, _text(name))

    def __repr__(self) -> str:
        return "<mcp: call mcp.SERVER.TOOL(name=value); tools.search('what for') finds tools>"

    __iter__ = __contains__ = None


class Server:
    """`mcp.server`: its attributes are the tools."""

    __slots__ = ("_belljar_calls", "_belljar_server")

    def __init__(self, calls, server: str):
        self._belljar_calls = calls
        self._belljar_server = server

    def __getattr__(self, name: str):
        return self[_public(name)]

    def __getitem__(self, name: str):
        return Tool(self._belljar_calls, self._belljar_server, _text(name))

    def __call__(self, *_positional, **_named):
        server = _spelled("mcp", self._belljar_server)
        raise TypeError(f"{server} is a server; call one of its tools: {server}.TOOL(name=value)")

    def __repr__(self) -> str:
        return f"<server {_spelled('mcp', self._belljar_server)}>"

    __iter__ = __contains__ = None


class Tool:
    """`mcp.server.tool`: calling it calls the tool."""

    __slots__ = ("_belljar_calls", "_belljar_server", "_belljar_tool")

    def __init__(self, calls, server: str, tool: str):
        self._belljar_calls = calls
        self._belljar_server = server
        self._belljar_tool = tool

    def __call__(self, /, *positional, **named):
        if positional:
            named = _merged(self, positional, named)
        return self._belljar_calls.call(self._belljar_server, self._belljar_tool, named)

    def __getattr__(self, name: str):
        name = _public(name)
        server = _spelled("mcp", self._belljar_server)
        tool = f"{self._belljar_tool}.{name}"
        raise AttributeError(
            f"{_shown(self)} is a tool and has no {name!r}; call it, {_shown(self)}(...), or if "
            f"there is a tool {tool!r}: {server}[{tool!r}](...)"
        )

    def __repr__(self) -> str:
        return f"<tool {_shown(self)}>"


class Tools:
    """`tools`: call by name, search, describe and list."""

    __slots__ = ("_belljar_calls",)

    def __init__(self, calls):
        self._belljar_calls = calls

    def call(self, name, args=None, /, **named):
        """Calls a tool by its full name, `server__tool`."""
        if args is None and isinstance(named.get("args"), Mapping):
            args = named.pop("args")
        return self._belljar_calls.call(None, _text(name), _merged(name, (args,), named))

    def search(self, intent, k=5):
        """The tools that fit a purpose best."""
        return self._belljar_calls.call(OWN, "search", {"intent": intent, "k": k})

    def describe(self, name):
        """The arguments and the result of a tool."""
        return self._belljar_calls.call(OWN, "describe", {"name": name})

    def list(self):
        """All tools that this run may call."""
        return self._belljar_calls.call(OWN, "list", {})

    def __repr__(self) -> str:
        return "<tools: call(name, args), search(intent), describe(name), list()>"


def _merged(tool, positional: tuple, named: dict) -> dict:
    """The arguments of a call: one dict, names, or both where they do not overlap."""
    given = positional[0] if len(positional) == 1 else positional
    if type(given) is ToolCall:
        given = value_of(given)
    if given is None:
        return named
    if not isinstance(given, Mapping):
        what = f"{len(given)} values" if len(positional) > 1 else type(given).__name__
        raise TypeError(
            f"{_shown(tool)}() takes its arguments by name, {_example(tool)}, or as one dict; it "
            f"was given {what}"
        )
    if not named:
        return given
    twice = next((name for name in named if name in given), None)
    if twice is not None:
        raise TypeError(f"{_shown(tool)}() got {twice!r} twice: in the dict and by name")
    return {**given, **named}


def _shown(tool) -> str:
    if type(tool) is not Tool:
        return "tools.call"
    return _spelled(_spelled("mcp", tool._belljar_server), tool._belljar_tool)


def _example(tool) -> str:
    if type(tool) is not Tool:
        return f"tools.call({tool!r}, name=value)"
    return f"{_shown(tool)}(name=value)"


def _spelled(owner: str, name: str) -> str:
    return f"{owner}.{name}" if name.isidentifier() else f"{owner}[{name!r}]"


def _public(name: str) -> str:
    """Names that Python itself looks up are not servers or tools."""
    if name.startswith("__") and name.endswith("__"):
        raise AttributeError(name)
    return name


def _text(name) -> str:
    if not isinstance(name, str):
        raise TypeError(f"the name of a tool must be a string, not {type(name).__name__}")
    return str.__str__(name)
