"""A graph of two nodes: `run THREAD` is killed in the second, `resume THREAD` goes on there."""

import os
import pathlib
import signal
import sqlite3
import sys
from typing import TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph

what, thread = sys.argv[1:]


class State(TypedDict):
    done: str


def first(_):
    print("first", flush=True)
    return {"done": "first"}


def second(_):
    print("second", flush=True)
    if what == "run":
        os.kill(os.getpid(), signal.SIGKILL)
    return {"done": "second"}


graph = StateGraph(State)
graph.add_node("first", first)
graph.add_node("second", second)
graph.add_edge(START, "first")
graph.add_edge("first", "second")
database = sqlite3.connect(pathlib.Path(__file__).with_suffix(".db"), check_same_thread=False)
compiled = graph.compile(checkpointer=SqliteSaver(database))
config = {"configurable": {"thread_id": thread}}
compiled.invoke({"done": ""} if what == "run" else None, config, durability="sync")
