import inspect
import sys
import types
import typing
import weakref


def greet(name: str, *rest: int, loud: bool = False, **options: typing.Any) -> str:
    "Greets."
    return name


print(inspect.signature(greet), typing.get_type_hints(greet), inspect.getdoc(greet), greet.__kwdefaults__, inspect.isfunction(greet))
print(inspect.getsource(greet).splitlines()[0])
Dynamic = type("Dynamic", (object,), {"value": 5, "double": lambda self: self.value * 2})
print(Dynamic().double(), types.SimpleNamespace(a=1), getattr(Dynamic, "missing", "default"), sys.getsizeof(0) > 0, isinstance(greet, types.FunctionType))


class Meta(type):
    registry = {}

    def __new__(mcs, name, bases, space, **kwargs):
        made = super().__new__(mcs, name, bases, space)
        mcs.registry[name] = kwargs
        return made


class Plugin(metaclass=Meta, key="p"):
    def __init_subclass__(cls, **kwargs):
        print("subclass", cls.__name__)

    def __getattr__(self, name):
        return f"dynamic {name}"

    def __call__(self, x):
        return x + 1


class Special(Plugin):
    pass


class Positive:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, instance, owner):
        return getattr(instance, self.name, 0)

    def __set__(self, instance, value):
        if value < 0:
            raise ValueError(f"{self.name} must be positive")
        setattr(instance, self.name, value)


class Account:
    balance = Positive()


account, plugin = Account(), Special()
account.balance = 5
reference = weakref.ref(account)
print(Meta.registry, plugin.anything, plugin(1), account.balance, reference() is account, sorted(set(dir(account)) - set(dir(object)))[:3])
exec_free = {k: v.default for k, v in inspect.signature(greet).parameters.items() if v.default is not inspect.Parameter.empty}
print(exec_free, [m for m, _ in inspect.getmembers(Account, inspect.isdatadescriptor) if not m.startswith("__")])
