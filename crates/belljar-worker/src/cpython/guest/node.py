"""The body of an agent's node (F8): the keys of its context become names, and its changes to
`state` become part of its result."""

import json
from collections.abc import Mapping

# The function that code calls to declare itself the body of a node.
NODE = "__belljar_node__"
# The key of the context that lists the parts of the state that grow: a result is appended or added.
_GROWS = "__grows__"


class Node:
    """The node whose body this run is, once its code has declared itself one."""

    def __init__(self):
        self.is_one = False
        self._state = None
        self._before = {}
        self._grows = {}

    def begin(self, namespace: dict, code: str) -> None:
        """Makes global names of the keys of the context and of the modules that nodes need not
        import."""
        self.is_one = True
        context = namespace["context"]
        self._grows = context.pop(_GROWS, {})
        namespace.setdefault("json", json)
        if "datetime" in code:
            import datetime

            namespace.setdefault("datetime", datetime)
        namespace.update(context)
        state = context.get("state")
        # Code without the name does not change it.
        if isinstance(state, dict) and "state" in code:
            self._state = state
            self._before = {key: json.dumps(value) for key, value in state.items()}

    def takes(self, value) -> bool:
        """Whether the value of a last expression, without a `return`, is the node's value."""
        return not self.is_one or isinstance(value, Mapping)

    def gives(self, value):
        """The result of the node for this value of its code."""
        if self._state is None:
            return value
        changes = self._changes()
        if value is self._state:
            return changes
        if not changes:
            return value
        if value is None:
            return changes
        if isinstance(value, Mapping):
            return {**changes, **value}
        return {**changes, "result": value}

    def _changes(self) -> dict:
        changes = {}
        for key, value in self._state.items():
            before = self._before.get(key)
            if before is None or before != _written(value):
                changes[key] = self._added(key, before, value)
        return changes

    def _added(self, key, before, value):
        """The value of a part; for a part that grows, only the difference."""
        how = self._grows.get(key)
        if how is None or before is None:
            return value
        before = json.loads(before)
        if how == "append" and isinstance(value, list) and isinstance(before, list):
            return value[len(before) :] if value[: len(before)] == before else value
        if how == "sum" and isinstance(value, (int, float)) and isinstance(before, (int, float)):
            return value - before
        return value


def _written(value):
    """A value as JSON; None if it is not JSON, which then counts as a change."""
    try:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return None
