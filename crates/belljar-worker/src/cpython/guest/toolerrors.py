"""The exceptions of tool calls, as guest code knows them.

The message of a tool is the text of the exception, unchanged; `code`, `hint` and the tool's name
are attributes. A refused call is a PermissionError, like anything else that is refused.
"""

from .hints import Hint

_TOOL_CODES = (
    "tool.failed",
    "tool.arguments",
    "tool.unknown",
    "tool.timeout",
    "tool.unavailable",
    "tool.in_doubt",
)
_PERMISSION_CODES = (
    "permission.tool",
    "permission.network",
    "approval.denied",
    "approval.expired",
)
_FETCH_CODES = ("fetch.failed",)
_FETCH_TIMEOUT_CODES = ("fetch.timeout",)
_LIMIT_CODES = ("limit.tool_calls", "limit.result")
_SERIALIZATION_CODES = ("serialization.unsupported", "serialization.depth")


class _CodedError:
    """An exception with a code, a hint and the name of a tool."""

    _codes = ("runtime.thrown",)

    def __init__(self, message="", *rest, code=None, hint=None, tool_name=None):
        super().__init__(message, *rest)
        self.code = code or self._codes[0]
        self.hint = hint
        self.tool_name = tool_name

    @property
    def toolName(self):  # noqa: N802 - the name it has in results
        return self.tool_name

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class ToolError(_CodedError, Exception):
    """A tool failed, or could not be called."""

    _codes = _TOOL_CODES


class RefusedCall(_CodedError, PermissionError):
    """Policy or a person refused a call."""

    _codes = _PERMISSION_CODES


class LimitError(_CodedError, Exception):
    """A call is over a limit."""

    _codes = _LIMIT_CODES


class SerializationError(_CodedError, TypeError):
    """An argument that JSON cannot represent."""

    _codes = _SERIALIZATION_CODES


class FetchError(_CodedError, ConnectionError):
    """A request to a host could not be made, or got no answer."""

    _codes = _FETCH_CODES


class FetchTimeout(FetchError, TimeoutError):
    """The answer to a request took longer than it was given."""

    _codes = _FETCH_TIMEOUT_CODES


for _kind in (ToolError, RefusedCall, LimitError, SerializationError, FetchError, FetchTimeout):
    _kind.__module__ = "builtins"
RefusedCall.__name__ = RefusedCall.__qualname__ = "PermissionError"

NAMES = {
    "ToolError": ToolError,
    "LimitError": LimitError,
    "SerializationError": SerializationError,
    "FetchError": FetchError,
}
_KINDS = (RefusedCall, LimitError, FetchError, FetchTimeout)


def of_fault(fault, line) -> Exception:
    """The exception for the host's answer to a call that gave no value."""
    code = fault.get("code")
    kind = next((one for one in _KINDS if code in one._codes), ToolError)
    missing, hint = fault.get("missing"), fault.get("hint")
    if isinstance(missing, dict):
        hint = Hint(hint or "", missing.get("kind"), missing.get("name"))
    error = kind(
        fault.get("message") or "the tool failed",
        code=code,
        hint=hint,
        tool_name=fault.get("toolName"),
    )
    error._line = line
    return error


def of_problem(problem) -> Exception:
    """The exception for arguments that cannot be encoded."""
    kind = LimitError if problem.code in _LIMIT_CODES else SerializationError
    return kind(problem.message, code=problem.code, hint=problem.hint)


def cause_of(error):
    """The exception itself if it is one of these, or the first of them in a group."""
    return _first(error, 10)


def details(error):
    """Code, hint, tool and line of one of these exceptions."""
    # Guest code may have made it, or changed it.
    code = error.__dict__.get("code")
    code = code if isinstance(code, str) and code in error._codes else error._codes[0]
    hint, tool = error.__dict__.get("hint"), error.__dict__.get("tool_name")
    line = error.__dict__.get("_line")
    return (
        code,
        hint if isinstance(hint, str) else None,
        tool if isinstance(tool, str) else None,
        line if isinstance(line, int) else None,
    )


def _first(error, depth: int):
    if isinstance(error, _CodedError):
        return error
    inner = getattr(error, "exceptions", None)
    if depth and isinstance(inner, tuple) and type(error).__name__.endswith("ExceptionGroup"):
        found = (_first(one, depth - 1) for one in inner if isinstance(one, BaseException))
        return next((one for one in found if one is not None), None)
    return None
