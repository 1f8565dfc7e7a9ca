import json
from dataclasses import asdict, astuple, dataclass, field, replace
from enum import Enum, Flag, IntEnum, auto
from typing import Optional


class Status(str, Enum):
    OPEN = "open"
    DONE = "done"


class Permission(Flag):
    READ = auto()
    WRITE = auto()


class Level(IntEnum):
    LOW = 1
    HIGH = 5


@dataclass(order=True)
class Task:
    priority: Level
    title: str = field(compare=False)
    status: Status = Status.OPEN
    tags: list[str] = field(default_factory=list)
    parent: Optional["Task"] = None

    def __post_init__(self):
        if not self.title:
            raise ValueError("title is required")


@dataclass(frozen=True)
class Point:
    x: int
    y: int = 0


task = Task(Level.HIGH, "write", tags=["a"])
print(task, replace(task, title="edit", parent=task) > Task(Level.LOW, "z"), asdict(task), astuple(Point(1)))
print(json.dumps(asdict(task)), Status("done"), Permission.READ | Permission.WRITE, Permission.WRITE in Permission.READ, [s.name for s in Status], Level(5) > 3, repr(Level.LOW), hash(Point(1)) == hash(Point(1)))
for make in (lambda: Task(Level.LOW, ""), lambda: setattr(Point(1), "x", 2), lambda: Status("other"), lambda: Point()):
    try:
        make()
    except Exception as error:
        print(type(error).__name__, error)
match Point(0, 3):
    case Point(x=0, y=y) if y > 2:
        print("on the axis", y)
    case {"x": _} | [_, *_]:
        print("no")
