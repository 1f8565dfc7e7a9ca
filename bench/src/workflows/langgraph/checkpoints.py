"""One checkpoint of a state of BYTES bytes for each line of standard input."""

import pathlib
import sqlite3
import sys
import time

from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.sqlite import SqliteSaver

database = sqlite3.connect(pathlib.Path(__file__).with_suffix(".db"), check_same_thread=False)
saver = SqliteSaver(database)
saver.setup()
config = {"configurable": {"thread_id": "bench", "checkpoint_ns": ""}}
print("ready", flush=True)
for step, _ in enumerate(sys.stdin):
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = {"state": str(step % 10) * BYTES}
    metadata = {"source": "loop", "step": step, "parents": {}}
    began = time.perf_counter_ns()
    config = saver.put(config, checkpoint, metadata, {})
    took = time.perf_counter_ns() - began
    (journal,) = database.execute("PRAGMA journal_mode").fetchone()
    (synchronous,) = database.execute("PRAGMA synchronous").fetchone()
    print(took, journal, synchronous, flush=True)
