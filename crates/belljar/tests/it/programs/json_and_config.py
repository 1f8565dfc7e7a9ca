import configparser
import copy
import io
import json
import pprint
import tomllib
from decimal import Decimal

text = '{"b": [1, 2.50, null], "a": {"ünï": true}}'
data = json.loads(text, parse_float=Decimal)
print(data, json.dumps(json.loads(text), indent=2, sort_keys=True, ensure_ascii=False), json.dumps("é"), json.dumps({1: 2, None: 3}))
pprint.pprint({"key" * 5: list(range(30)), "other": {"nested": ["x" * 30, "y" * 30]}}, width=60)


class Encoder(json.JSONEncoder):
    def default(self, value):
        return sorted(value) if isinstance(value, set) else super().default(value)


print(json.dumps({"s": {3, 1}}, cls=Encoder), json.dumps([1, 2], separators=(",", ":")), copy.deepcopy(data) == data)
for bad in ("{'a': 1}", "[1, 2", ""):
    try:
        json.loads(bad)
    except json.JSONDecodeError as error:
        print(error)
try:
    json.dumps(object())
except TypeError as error:
    print(error)
config = configparser.ConfigParser()
config.read_string("[db]\nhost = localhost\nport = 5432\n[web]\ndebug = yes\n")
print(config.sections(), config.getint("db", "port"), config["web"].getboolean("debug"), config.get("db", "user", fallback="root"), tomllib.loads('[a]\nb = [1, 2]\nc = 2024-01-01'))
out = io.StringIO()
config.write(out)
print(out.getvalue())
