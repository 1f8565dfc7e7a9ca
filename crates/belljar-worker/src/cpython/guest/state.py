"""The global `state` that code leaves: returned beside its value (A9)."""

from .value import Attributes, ValueProblem, encode
from .wire import utf8

NAME = "state"
# The maximum size, in bytes of JSON; the host takes no more.
MAX_STATE_BYTES = 1 << 20


def prepare(namespace: dict) -> None:
    """Creates `state`, so that code can write to it at once."""
    if NAME not in namespace:
        namespace[NAME] = Attributes()


def send(link, namespace: dict, max_bytes: int) -> bool:
    """Sends the state if it is a non-empty dict. Returns whether it differs, as JSON, from the
    original. A state that cannot be sent is dropped and logged, not an error: the code may use the
    name `state` for its own purpose."""
    left = namespace.get(NAME)
    if not isinstance(left, dict) or not left:
        return False
    try:
        encoded = encode(left, min(max_bytes, MAX_STATE_BYTES), NAME)
    except ValueProblem as problem:
        _leave_out(link, problem.message)
    except Exception as error:  # raised by the agent's class or a tool call
        _leave_out(link, f"{NAME} cannot be read: {type(error).__name__}")
    else:
        link.state(encoded.json, cut=False)
        return encoded.lossy
    return False


def _leave_out(link, why: str) -> None:
    link.print("log", utf8(f"[state] not returned: {why}"))
    link.state(b"", cut=True)
