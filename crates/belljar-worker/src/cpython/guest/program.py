"""Compiles the agent's source to code that gives a value (A2).

The value is an explicit top-level `return`, else the last expression. Code without a top-level
`return` is compiled as the module it is, with its last expression apart. Code with one becomes the
body of a function all of whose names are declared global: so `return` behaves as in any function,
inside loops, `with` and `finally` and past any `except`, while names stay at module level.
"""

import ast
import inspect
import re
import types
from sys import _getframe as _frame_at

from .restrict import guard, needs_guard

# The first item of what the function gives when no `return` of the agent's was reached.
_FELL = "\0belljar: no return was reached"
# The function for a star import inside a function; it is found among the builtins.
STAR_IMPORT = "__belljar_star_import__"

# The function around a tool call that is a statement of its own, without `await`.
SETTLE = "__belljar_settle__"

_AWAIT_FLAG = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


class Program:
    """Compiled guest code. `start` runs it and documents its value."""

    def __init__(self, source: str, file_name: str):
        self.file_name = file_name
        self._source = source
        self._tree = None
        expression = self._as_expression()
        if expression is None:
            self._compile_statements()
        else:
            self._is_function = False
            self._codes = [expression]
        self.is_async = any(code.co_flags & inspect.CO_COROUTINE for code in self._codes)

    @property
    def tree(self):
        """The source as a tree."""
        if self._tree is None:
            self._tree = ast.parse(self._source, self.file_name)
        return self._tree

    def _as_expression(self):
        """The code of what is a single expression in plain sight, or None. Without a tree of it in
        between that takes half as long."""
        if _sign_of_more(self._source) or needs_guard(self._source):
            return None
        try:
            return self._compile(self._source, "eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            # The path through the tree reports the error.
            return None

    def _compile_statements(self) -> None:
        source = self._source
        if "await" in source and any(name in source for name in _CALLERS):
            _settle_statements(self.tree)
        if needs_guard(source):
            guard(self.tree)
        # Without the word there is no `return`, and nothing else to know.
        survey = Survey(self.tree if "return" in source else ast.Module([], []))
        # A `yield` would turn the function into a generator: the module's own error is better.
        self._is_function = survey.has_return and not survey.has_yield
        if self._is_function:
            self._codes = [self._compile_function(survey)]
        else:
            self._codes = self._compile_module()

    def start(self, namespace: dict):
        """Runs the code and gives its `Outcome`, or a coroutine that does so if `is_async`."""
        return self._run_async(namespace) if self.is_async else self._run(namespace)

    def _run(self, namespace):
        value = None
        for code in self._codes:
            value = self._enter(code, namespace)
        return self._outcome(value)

    async def _run_async(self, namespace):
        value = None
        for code in self._codes:
            value = self._enter(code, namespace)
            if code.co_flags & inspect.CO_COROUTINE:
                value = await value
        return self._outcome(value)

    def _enter(self, code, namespace):
        if self._is_function:
            return types.FunctionType(code, namespace)()
        return eval(code, namespace)

    def _outcome(self, value):
        if not self._is_function:
            return Outcome(value, is_explicit=False)
        if type(value) is tuple and value and type(value[0]) is str and value[0] == _FELL:
            return Outcome(value[1], is_explicit=False)
        return Outcome(value, is_explicit=True)

    def _compile(self, tree, mode: str):
        return compile(tree, self.file_name, mode, flags=_AWAIT_FLAG, dont_inherit=True)

    def _compile_module(self):
        body = self.tree.body
        if not body or not isinstance(body[-1], ast.Expr):
            return [self._compile(self.tree, "exec")]
        codes = []
        if len(body) > 1:
            module = ast.Module(body[:-1], self.tree.type_ignores)
            codes.append(self._compile(module, "exec"))
        codes.append(self._compile(ast.Expression(body[-1].value), "eval"))
        return codes

    def _compile_function(self, survey):
        futures = [node for node in self.tree.body if _is_future(node)]
        body = [node for node in self.tree.body if not _is_future(node)]
        body = _AsBody().block(body)
        last = body[-1] if body else None
        value = last.value if isinstance(last, ast.Expr) else ast.Constant(None)
        ending = ast.Return(ast.Tuple([ast.Constant(_FELL), value], ast.Load()))
        if isinstance(last, ast.Expr):
            body[-1] = ast.copy_location(ending, last)
        else:
            body.append(ending)
        if survey.names:
            body.insert(0, ast.Global(sorted(survey.names)))
        kind = ast.AsyncFunctionDef if survey.has_await else ast.FunctionDef
        function = ast.parse("def main(): pass").body[0]
        fields = {name: getattr(function, name, None) for name in function._fields}
        fields.update(name="main", body=body)
        whole = kind(**fields)
        whole.lineno, whole.col_offset = 1, 0
        module = ast.Module([*futures, whole], [])
        ast.fix_missing_locations(module)
        return _named_module(_function_code(self._compile(module, "exec")))


# Signs of statements, of calls that must be awaited, or of code that the compiler warns about.
_sign_of_more = re.compile(r"\n| = |;|await|return|\\").search
# The names tool calls begin with.
_CALLERS = ("mcp", "tools", "__callTool__")


def _settle_statements(tree) -> None:
    """Has each statement that only makes a tool call, or stores its result, end before the next
    begins. In a program with `await` a call starts at once and does not block; without this,
    effects could happen in another order than their lines."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr)):
            value = node.value
            if isinstance(value, ast.Call) and _root(value.func) in _CALLERS:
                settle = ast.copy_location(ast.Name(SETTLE, ast.Load()), value)
                node.value = ast.copy_location(ast.Call(settle, [value], []), value)


def _root(node):
    """The name an expression such as `mcp.server.tool` or `mcp["server"].tool` begins with."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


class Outcome:
    """The value of the code, and whether a `return` gave it."""

    __slots__ = ("value", "is_explicit")

    def __init__(self, value, is_explicit: bool):
        self.value = value
        self.is_explicit = is_explicit


class Survey:
    """The facts about the top level of a program."""

    def __init__(self, tree: ast.Module):
        self.has_return = False
        self.has_await = False
        self.has_yield = False
        self.names = set()
        self._visit_all(tree.body)
        if self.has_return:
            self.names = _names(tree)

    def _visit_all(self, nodes) -> None:
        # A loop, not a recursion: expressions of generated code nest deeply.
        stack = list(nodes)
        while stack:
            node = stack.pop()
            if isinstance(node, _SCOPES):
                # Parts that are evaluated outside the new scope, such as decorators and defaults.
                stack.extend(_outer_parts(node))
                continue
            self._note(node)
            stack.extend(ast.iter_child_nodes(node))

    def _note(self, node) -> None:
        if isinstance(node, ast.Return):
            self.has_return = True
        elif isinstance(node, (ast.Await, ast.AsyncFor, ast.AsyncWith)):
            self.has_await = True
        elif isinstance(node, ast.comprehension) and node.is_async:
            self.has_await = True
        elif isinstance(node, (ast.Yield, ast.YieldFrom)):
            self.has_yield = True


def _outer_parts(node):
    if isinstance(node, ast.ClassDef):
        # `return` in a class body is an error that compiling reports; `await` too.
        return [*node.decorator_list, *node.bases, *node.keywords]
    arguments = node.args
    parts = [*arguments.defaults, *(d for d in arguments.kw_defaults if d is not None)]
    if not isinstance(node, ast.Lambda):
        parts.extend(node.decorator_list)
    return parts


def _names(tree) -> set:
    """Every name that anything binds. Names of inner scopes do no harm: at module level all names
    are global."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                names.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, ast.ExceptHandler):
            names.add(node.name)
        elif type(node).__name__ in ("MatchAs", "MatchStar"):
            names.add(node.name)
        elif type(node).__name__ == "MatchMapping":
            names.add(node.rest)
    return names - {None, "*", "__debug__"}


def binds(tree, name: str) -> bool:
    """Whether anything in a program gives this name a value."""
    return name in _names(tree)


class _AsBody(ast.NodeTransformer):
    """Rewrites statements that are legal in a module but not in a function with global names."""

    def block(self, statements):
        result = []
        for statement in statements:
            changed = self.visit(statement)
            result.extend(changed if isinstance(changed, list) else [changed])
        return result

    def visit(self, node):
        # New scopes and expressions are left as they are.
        if isinstance(node, (*_SCOPES, ast.expr)):
            return node
        return super().visit(node)

    def visit_AnnAssign(self, node):
        if not isinstance(node.target, ast.Name):
            return node
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([node.target], node.value), node)

    def visit_Global(self, node):
        return ast.copy_location(ast.Pass(), node)

    def visit_ImportFrom(self, node):
        if all(alias.name != "*" for alias in node.names):
            return node
        call = ast.Call(
            ast.Name(STAR_IMPORT, ast.Load()),
            [ast.Constant(node.module or ""), ast.Constant(node.level or 0)],
            [],
        )
        return ast.fix_missing_locations(ast.copy_location(ast.Expr(call), node))


def star_import(import_module):
    """`from module import *` as a function, which the rewritten code calls."""

    def run(module: str, level: int) -> None:
        namespace = _frame_at(1).f_globals
        found = import_module(module, namespace, None, ["*"], level)
        names = getattr(found, "__all__", None)
        if names is None:
            names = [name for name in vars(found) if not name.startswith("_")]
        for name in names:
            namespace[name] = getattr(found, name)

    return run


def _is_future(node) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__" and not node.level


def _function_code(module):
    return next(const for const in module.co_consts if isinstance(const, types.CodeType))


def _named_module(code):
    names = {"co_name": "<module>"}
    if hasattr(code, "co_qualname"):
        names["co_qualname"] = "<module>"
    return code.replace(**names)
