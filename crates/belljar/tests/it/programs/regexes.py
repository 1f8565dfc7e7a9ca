import re
import textwrap

LOG = """2024-05-01 12:00:01 ERROR [db] timeout after 30s
2024-05-01 12:00:05 INFO [web] GET /index.html 200
2024-05-01 12:01:00 ERROR [web] GET /x 500"""
PATTERN = re.compile(r"""^(?P<date>\d{4}-\d{2}-\d{2})\s(?P<time>[\d:]+)\s
    (?P<level>[A-Z]+)\s\[(?P<part>\w+)\]\s(?P<text>.*)$""", re.VERBOSE | re.MULTILINE)
print([m.groupdict() for m in PATTERN.finditer(LOG) if m["level"] == "ERROR"])
print(re.sub(r"(\d+)s", lambda m: f"{int(m.group(1)) * 1000}ms", LOG.splitlines()[0]), re.split(r"[,;]\s*", "a, b;c"), re.fullmatch(r"\w+@\w+\.\w+", "a@b.co"))
print(re.findall(r"(?<!\d)(\d{3})-(\d{4})(?!\d)", "555-1234 1555-12345"), re.escape("a.b*c"), re.match("x", "y"), re.search(r"\bcat\b", "the cat", re.I).span())
print(textwrap.fill("The quick brown fox jumps over the lazy dog " * 2, width=40, initial_indent="* ", subsequent_indent="  "), textwrap.dedent("  a\n   b"), textwrap.shorten("hello world foo", 11))
try:
    re.compile("(unclosed")
except re.error as error:
    print(error, error.pos)
