import atexit
import sys

atexit.register(print, "at the end")
print("checking")
if 4 not in [1, 2, 3]:
    print("4 is missing", file=sys.stderr)
    sys.exit(2)
print("never")
