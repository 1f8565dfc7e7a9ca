"""What code leaves in the global `state`: handed on beside its value (A9)."""

from .value import Attributes, ValueProblem, encode
from .wire import utf8

NAME = "state"
# The most that is handed on, in bytes of JSON; the host takes no more.
MAX_STATE_BYTES = 1 << 20


def prepare(namespace: dict) -> None:
    """Makes the name, so that code can put things into it without more ado."""
    if NAME not in namespace:
        namespace[NAME] = Attributes()


def send(link, namespace: dict, max_bytes: int) -> bool:
    """Sends the state, if it is a dict with something in it. Gives whether it differs, as JSON, from
    what was left. What cannot be sent is left out and logged: `state` may be a name the code has for
    something of its own, and a run does not fail for that."""
    left = namespace.get(NAME)
    if not isinstance(left, dict) or not left:
        return False
    try:
        encoded = encode(left, min(max_bytes, MAX_STATE_BYTES), NAME)
    except ValueProblem as problem:
        _leave_out(link, problem.message)
    except Exception as error:  # what a class of the agent's raises, or a tool call in it
        _leave_out(link, f"{NAME} cannot be read: {type(error).__name__}")
    else:
        link.state(encoded.json, cut=False)
        return encoded.lossy
    return False


def _leave_out(link, why: str) -> None:
    link.print("log", utf8(f"[state] not returned: {why}"))
    link.state(b"", cut=True)
