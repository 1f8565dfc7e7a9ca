"""Runs a command on a terminal of its own and answers its question: terminal.py ANSWER COMMAND…

What the terminal showed goes to standard output; the exit status is the command's. With ANSWER_AFTER=FILE
and ASKED=FILE, it creates the second when the question is there, and answers when the first has three lines.
"""

import os
import pty
import select
import sys

answer, command = sys.argv[1], sys.argv[2:]
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(command[0], command)
shown = b""
answered = False
after = os.environ.get("ANSWER_AFTER")


def may_answer():
    if after is None:
        return b"[y/N" in shown and shown.endswith(b"] ")
    if b"[y/N/r]" not in shown:
        return False
    open(os.environ["ASKED"], "w").close()
    with open(after) as file:
        return len(file.readlines()) >= 3


while True:
    if not answered and may_answer():
        answered = True
        os.write(terminal, answer.encode() + b"\n")
    if not select.select([terminal], [], [], 0.05)[0]:
        continue
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
