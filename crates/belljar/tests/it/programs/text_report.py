import locale
import string
import unicodedata
from string import Template

rows = [("Widget", 3, 9.99), ("Gâteau", 12, 100.0), ("日本", 1, 0.5)]
print(f"{'item':<10}|{'qty':^5}|{'price':>10}")
print("-" * 27)
for name, qty, price in rows:
    print(f"{name:<10}|{qty:^5d}|{price:>10,.2f}")
print("{:08.3f} {:+d} {:#x} {:e} {:.1%} {!r} {:>{w}}".format(3.14159, 5, 255, 12345.678, 0.256, "q", "r", w=4), "%-5s|%05d|%.2f" % ("ab", 42, 2.5))
print(Template("$who likes ${what}").substitute(who="A", what="B"), f"{1_000_000:_}", f"{rows[0][0]=}", "ﬁ".casefold(), unicodedata.normalize("NFKD", "é").encode("ascii", "ignore"), string.capwords("a bc"), locale.getlocale()[1])
print("abc".center(9, "*"), "a,b,,c".split(","), "  x ".strip(), "Straße".upper(), "hello world".title(), "x".join("abc"), "abc"[::-1], "tab\there".expandtabs(4), "a-b".partition("-"), "é".encode("utf-16-le"), b"\xff".decode("latin-1"), "ab" * 2, "abc".translate(str.maketrans("ab", "xy")))
print(str.format("{0[a]} {1.real}", {"a": 1}, 5), "%s %r" % ("x", None), "yes" if "b" in "abc" else "no", "\N{SNOWMAN}", "a\\b", r"a\nb", """tri"ple""", "caf\u00e9", len("👩‍👩‍👧"))
