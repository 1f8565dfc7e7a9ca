"""What the servers of the test internet have: a repository, a package for pip, packages for npm."""

import base64
import hashlib
import io
import json
import os
import subprocess
import tarfile
import zipfile

# More than the connections that a run may have at once.
PARTS = 40


def make_repository(directory):
    """A bare repository with one commit: DIRECTORY/project.git."""
    work = directory / "project"
    environment = dict(os.environ, HOME=str(directory), GIT_CONFIG_NOSYSTEM="1")
    work.mkdir()
    (work / "README").write_text("a project\n")
    # Large enough that its pack is not a single packet.
    (work / "data").write_bytes(os.urandom(1 << 20))
    author = ["-c", "user.name=Someone", "-c", "user.email=someone@example.com"]
    for arguments in (
        ["init", "--quiet", "--initial-branch=main"],
        ["add", "."],
        [*author, "commit", "--quiet", "--message=first"],
        ["clone", "--quiet", "--bare", ".", "../project.git"],
        ["--git-dir=../project.git", "config", "http.receivepack", "true"],
    ):
        subprocess.run(["git", *arguments], cwd=work, env=environment, check=True)


def index():
    """A package index as PEP 503 describes it, with one wheel; by path."""
    wheel = _wheel("greeting", "1.0", "def greet():\n    return 'hello from a package'\n")
    name = "greeting-1.0-py3-none-any.whl"
    digest = hashlib.sha256(wheel).hexdigest()
    page = f'<!DOCTYPE html><a href="/files/{name}#sha256={digest}">{name}</a>'
    return {
        "/simple/greeting/": ("text/html", page.encode()),
        f"/files/{name}": ("application/octet-stream", wheel),
    }


def _wheel(name, version, code):
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": code,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return whole.getvalue()


def registry(url):
    """A registry with a package that depends on many others; by path."""
    parts = [f"greeting-part-{number}" for number in range(PARTS)]
    needed = "".join(f"require('{part}');" for part in parts)
    site = _package(url, "greeting", f"{needed}module.exports = 'hello from npm';", parts)
    for part in parts:
        site |= _package(url, part, "", [])
    return site


def _package(url, name, code, dependencies):
    manifest = {
        "name": name,
        "version": "1.0.0",
        "main": "index.js",
        "dependencies": {dependency: "1.0.0" for dependency in dependencies},
    }
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w:gz") as archive:
        for path, text in (("package.json", json.dumps(manifest)), ("index.js", code)):
            entry = tarfile.TarInfo(f"package/{path}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    tarball = whole.getvalue()
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(tarball).digest()).decode()
    path = f"/{name}/-/{name}-1.0.0.tgz"
    version = manifest | {"dist": {"tarball": url + path, "integrity": integrity}}
    document = {"name": name, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
    return {
        f"/{name}": ("application/json", json.dumps(document).encode()),
        path: ("application/octet-stream", tarball),
    }
