"""Runs a command on a terminal of its own until it shows a text, then presses Ctrl-C: until.py TEXT COMMAND…

What the terminal showed goes to standard output; the exit status is the command's.
"""

import os
import pty
import sys

text, command = sys.argv[1].encode(), sys.argv[2:]
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(command[0], command)
shown = b""
is_pressed = False
while True:
    if text in shown and not is_pressed:
        is_pressed = True
        os.write(terminal, b"\x03")
    try:
        some = os.read(terminal, 65536)
    except OSError:  # how Linux tells that the other side is closed
        break
    if not some:
        break
    shown += some
sys.stdout.buffer.write(shown)
_, status = os.waitpid(pid, 0)
sys.exit(os.waitstatus_to_exitcode(status))
