from __future__ import annotations

import abc
import functools
from typing import ClassVar, Generic, Protocol, TypeVar, runtime_checkable

T = TypeVar("T")


@runtime_checkable
class Priced(Protocol):
    def price(self) -> float: ...


class Item(abc.ABC):
    made: ClassVar[int] = 0
    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name
        Item.made += 1

    @abc.abstractmethod
    def price(self) -> float: ...

    def __repr__(self):
        return f"{type(self).__name__}({self.name!r}, {self.price():.2f})"

    @classmethod
    def named(cls, name):
        return cls(name)


@functools.total_ordering
class Book(Item):
    def price(self):
        return 10 + len(self.name)

    def __eq__(self, other):
        return self.price() == other.price()

    def __lt__(self, other):
        return self.price() < other.price()

    def __hash__(self):
        return hash(self.name)

    @property
    def title(self):
        return self.name.title()


class Stack(Generic[T]):
    def __init__(self):
        self._items: list[T] = []

    def push(self, item: T) -> Stack[T]:
        self._items.append(item)
        return self

    def __len__(self):
        return len(self._items)

    def __iter__(self):
        return reversed(self._items)

    def __getitem__(self, at):
        return self._items[at]

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        print("leaving", kind and kind.__name__)
        return kind is KeyError


with Stack[Book]().push(Book.named("a tale")).push(Book("dune")) as stack:
    print(max(stack), list(stack), len(stack), stack[0].title, isinstance(stack[0], Priced), Item.made, stack[0] >= stack[1])
    raise KeyError("swallowed")
try:
    Item("x")
except TypeError as error:
    print(str(error)[:40])
print(Book.__mro__[1].__name__, vars(Stack())["_items"], callable(Book), Book.price.__qualname__)
