"""Fetches the packages of sources.json from their registries, and checks that they are the right ones.

Only the archive of each package is downloaded; nothing of it is installed or run.
"""

import dataclasses
import hashlib
import json
import pathlib
import subprocess
import sys

LIST = pathlib.Path(__file__).with_name("sources.json")


@dataclasses.dataclass
class Source:
    """A package, and what is taken from it."""

    registry: str
    name: str
    version: str
    file: str
    sha256: str
    licence: str
    reader: str
    used: str

    def fetched(self, directory: pathlib.Path) -> pathlib.Path:
        """The package's archive, downloaded unless it is there; another file of that name is an error."""
        path = directory / self.file
        if not path.exists():
            subprocess.run(self.download(directory), check=True, cwd=directory)
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if found != self.sha256:
            sys.exit(f"{path} has the hash {found} instead of {self.sha256}")
        return path

    def download(self, directory: pathlib.Path) -> list[str]:
        if self.registry == "npm":
            return ["npm", "pack", "--silent", f"{self.name}@{self.version}"]
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        # Only its files are wanted: no dependencies, and any version of Python will do.
        plain = ["--no-deps", "--ignore-requires-python", "--only-binary", ":all:"]
        return [*pip, *plain, "--dest", str(directory), f"{self.name}=={self.version}"]


def sources() -> list[Source]:
    return [Source(**one) for one in json.loads(LIST.read_text())]
