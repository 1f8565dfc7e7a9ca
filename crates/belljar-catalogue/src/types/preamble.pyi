
T = TypeVar("T")

# The data that the caller passed in.
context: Any

def output(value: T) -> T:
    """Prints a value and returns it."""
    ...

def debug(value: T, label: str = ...) -> T:
    """Notes a value in the log and returns it."""
    ...

def load(handle: str) -> Any:
    """The whole value behind a handle, where a result was too large to be passed on."""
    ...

def __callTool__(name: str, args: Mapping[str, Any] | None = ...) -> Any:
    """Calls a tool by its full name."""
    ...

class Belljar_Tools:
    """Calling tools by name, and finding out what there is."""

    def call(self, name: str, args: Mapping[str, Any] | None = ..., /, **named: Any) -> Any:
        """Calls a tool by its full name, `server__tool`."""
        ...
    def search(self, intent: str, k: int = ...) -> Builtins.list[Any]:
        """The tools that fit best what is to be done."""
        ...
    def describe(self, name: str) -> str:
        """A tool's arguments and result."""
        ...
    def list(self) -> Builtins.list[Any]:
        """All tools there are."""
        ...

tools: Belljar_Tools

class ToolError(Exception):
    """A tool failed, was not there, or was called with wrong arguments."""

    code: str
    toolName: str | None
    hint: str | None
