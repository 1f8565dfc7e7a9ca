import contextlib
import traceback
import warnings


class AppError(Exception):
    def __init__(self, message, code):
        super().__init__(message)
        self.code = code


def parse(value):
    try:
        return int(value)
    except ValueError as error:
        raise AppError(f"bad value {value!r}", 42) from error


try:
    parse("x")
except AppError as error:
    print(error, error.code, repr(error.__cause__), error.args, traceback.format_exception_only(type(error), error))
    last = traceback.extract_tb(error.__traceback__)[-1]
    print(last.name, last.line)
try:
    try:
        1 / 0
    finally:
        print("cleanup")
except ArithmeticError as error:
    print(type(error).__mro__[1].__name__)
else:
    print("never")
with warnings.catch_warnings(record=True) as caught, contextlib.ExitStack() as stack:
    warnings.simplefilter("always")
    stack.callback(print, "unwound")
    warnings.warn("old", DeprecationWarning)
    print(len(caught), caught[0].category.__name__)
for thing in ("[][1]", "{}['k']", "None.x", "'a' + 1", "undefined", "int('z')"):
    try:
        {"[][1]": lambda: [][1], "{}['k']": lambda: {}["k"], "None.x": lambda: None.x, "'a' + 1": lambda: "a" + 1, "undefined": lambda: undefined, "int('z')": lambda: int("z")}[thing]()
    except Exception as error:
        print(type(error).__name__, error)
