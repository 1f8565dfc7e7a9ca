import bz2
import gzip
import io
import lzma
import struct
import tarfile

data = b"belljar " * 100
for module in (gzip, bz2, lzma):
    print(module.__name__, module.decompress(module.compress(data)) == data)
with gzip.open("log.gz", "wt", encoding="utf-8") as file:
    file.write("line é\n" * 3)
with gzip.open("log.gz", "rt", encoding="utf-8") as file:
    print(sum(1 for _ in file))
buffer = io.BytesIO()
with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
    info = tarfile.TarInfo("a/b.txt")
    info.size = 5
    archive.addfile(info, io.BytesIO(b"hello"))
buffer.seek(0)
with tarfile.open(fileobj=buffer) as archive:
    print(archive.getnames(), archive.extractfile("a/b.txt").read())
    archive.extractall("unpacked")
print(open("unpacked/a/b.txt").read(), struct.unpack("<IhB", struct.pack("<IhB", 7, -2, 255)), struct.calcsize("!IhB"), memoryview(data)[:3].tobytes(), bytearray(b"abc")[1:].hex(), int.from_bytes(b"\x01\x00", "big"))
