import itertools as it
import operator
from collections import Counter, OrderedDict, deque, namedtuple
from functools import lru_cache, partial, reduce


def chunked(items, size):
    source = iter(items)
    while block := list(it.islice(source, size)):
        yield block


def averager():
    total = n = 0
    mean = None
    while True:
        value = yield mean
        total, n = total + value, n + 1
        mean = total / n


coroutine = averager()
next(coroutine)
print([coroutine.send(x) for x in (10, 20, 60)], list(chunked(range(7), 3)))
print([(k, len(list(g))) for k, g in it.groupby(sorted("mississippi"))], list(it.accumulate([1, 2, 3], operator.mul)), list(it.pairwise("abc")))
print(list(it.product("ab", [1, 2])), list(it.combinations(range(4), 2))[-1], list(it.zip_longest([1], [2, 3], fillvalue=0)), [*it.chain.from_iterable([[1], [2]])])
Point = namedtuple("Point", "x y", defaults=[0])
print(Point(1), Point(1, 2)._replace(y=9)._asdict(), Counter("banana").most_common(2), deque([1, 2, 3], maxlen=2), OrderedDict(a=1))


@lru_cache(maxsize=None)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


print(fib(90), fib.cache_info(), reduce(lambda a, b: a * b, range(1, 6)), partial(int, base=2)("101"), sorted({"b": 1, "a": 2}.items(), key=operator.itemgetter(1)))
print({x: y for x, y in zip("ab", (1, 2))}, [n for row in [[1, 2], [3]] for n in row if n % 2], {*"aab"} == {"a", "b"}, (lambda *a, k=1, **kw: (a, k, kw))(1, k=2, z=3), [*"ab", *range(2)])
