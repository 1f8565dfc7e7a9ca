import cmath
import fractions
import heapq
import math
import random
import statistics
from bisect import bisect_left, insort
from decimal import ROUND_HALF_UP, Decimal, getcontext

getcontext().prec = 28
print(Decimal("0.1") + Decimal("0.2"), Decimal("2.675").quantize(Decimal("0.01"), ROUND_HALF_UP), fractions.Fraction(3, 9), 0.1 + 0.2, round(2.5), round(-1.5), 7 // -2, -7 % 3)
print(statistics.mean([1, 2, 3, 4]), statistics.median([3, 1, 2]), statistics.stdev([2, 4, 4, 4, 5, 5, 7, 9]), statistics.mode("aab"), statistics.quantiles(range(11), n=4))
print(math.comb(10, 3), math.gcd(48, 18), math.isclose(0.3, 0.1 + 0.2), math.inf > 1e308, cmath.sqrt(-4), 2**200, math.factorial(25), divmod(17, 5), int("ff", 16), bin(10), float("nan") != float("nan"))
random.seed(7)
print(random.random(), random.randint(1, 6), random.choice("abc"), random.sample(range(20), 4), random.shuffle([1]))
heap = [5, 1, 4]
heapq.heapify(heap)
heapq.heappush(heap, 0)
print([heapq.heappop(heap) for _ in range(4)], heapq.nlargest(2, [1, 9, 5]), bisect_left([1, 3, 5], 3), sum([0.1] * 10), math.fsum([0.1] * 10))
