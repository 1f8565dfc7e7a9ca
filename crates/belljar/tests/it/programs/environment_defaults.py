import os
import platform
import sys

host = os.environ.get("APP_HOST", "localhost")
port = int(os.getenv("APP_PORT", "5432"))
print(host, port, "APP_HOST" in os.environ, os.getenv("NOPE"), os.sep, sys.platform, platform.system(), os.name)
os.environ["APP_MODE"] = "test"
print(os.environ["APP_MODE"], os.path.expandvars("$APP_MODE/x"), os.environ.pop("APP_MODE"), sys.version_info >= (3, 9), __name__, len(sys.argv), os.getcwd() == os.path.abspath("."))
try:
    os.environ["MISSING"]
except KeyError as error:
    print("KeyError", error)
