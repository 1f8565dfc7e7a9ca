"""Runs a command on a terminal of its own and answers its question: terminal.py ANSWER COMMAND…

What the terminal showed goes to standard output; the exit status is the command's.
"""

import os
import pty
import sys

answer, command = sys.argv[1], sys.argv[2:]
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(command[0], command)
shown = b""
answered = False
while True:
    try:
        some = os.read(terminal, 65536)
    except OSError:  # how Linux tells that the other side is closed
        break
    if not some:
        break
    shown += some
    if not answered and b"[y/N" in shown and shown.endswith(b"] "):
        answered = True
        os.write(terminal, answer.encode() + b"\n")
sys.stdout.buffer.write(shown)
_, status = os.waitpid(pid, 0)
sys.exit(os.waitstatus_to_exitcode(status))
