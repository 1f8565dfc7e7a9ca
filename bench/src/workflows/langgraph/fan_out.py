"""A graph that sends each of TASKS items to a node, for each line of standard input."""

import operator
import pathlib
import sqlite3
import sys
import time
from typing import Annotated, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.types import Send


class State(TypedDict):
    items: list
    done: Annotated[list, operator.add]


def each(state):
    return [Send("one", {"item": item}) for item in state["items"]]


graph = StateGraph(State)
graph.add_node("one", lambda given: {"done": [given["item"]]})
graph.add_conditional_edges(START, each, ["one"])
database = sqlite3.connect(pathlib.Path(__file__).with_suffix(".db"), check_same_thread=False)
saver = SqliteSaver(database)
saver.setup()
compiled = graph.compile(checkpointer=saver)
print("ready", flush=True)
for number, _ in enumerate(sys.stdin):
    config = {"configurable": {"thread_id": str(number)}, "max_concurrency": AT_ONCE}
    began = time.perf_counter_ns()
    given = compiled.invoke({"items": list(range(TASKS))}, config, durability="sync")
    print(time.perf_counter_ns() - began, len(given["done"]), flush=True)
