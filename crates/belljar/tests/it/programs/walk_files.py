import fnmatch
import glob
import os
import shutil
import stat
import tempfile
import zipfile
from pathlib import Path

root = Path("project")
for name, text in {"src/main.py": "print('hi')\n", "src/util/io.py": "# io\n", "README.md": "# Hi\n", "data/a.bin": "\x00" * 10}.items():
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
for folder, folders, files in os.walk(root):
    folders.sort()
    print(os.path.relpath(folder, root), sorted(files))
print(sorted(str(p.relative_to(root)) for p in root.rglob("*.py")), glob.glob("project/**/*.md", recursive=True), fnmatch.filter(["a.py", "b.c"], "*.py"))
print({p.suffix: p.stat().st_size for p in sorted(root.rglob("*")) if p.is_file()}, (root / "README.md").stem, os.path.splitext("a.tar.gz"))
shutil.copytree(root, "copy")
shutil.make_archive("backup", "zip", "copy")
with zipfile.ZipFile("backup.zip") as archive:
    print(sorted(n for n in archive.namelist() if not n.endswith("/")), archive.read("README.md"))
os.chmod("copy/README.md", 0o600)
print(oct(stat.S_IMODE(os.stat("copy/README.md").st_mode)), os.path.exists("nope"), Path("a/../b").as_posix())
shutil.rmtree("copy")
with tempfile.TemporaryDirectory() as folder, open(os.path.join(folder, "t.txt"), "w+") as file:
    file.write("one\ntwo\n"); file.seek(4); print(file.readline().strip(), os.listdir(folder))
