import base64
import binascii
import hashlib
import hmac
import secrets
import uuid
import zlib

text = "žluťoučký kůň".encode("utf-8")
for name in ("md5", "sha1", "sha256", "blake2b", "sha3_256"):
    print(name, hashlib.new(name, text).hexdigest()[:32])
print(hmac.new(b"key", text, hashlib.sha256).hexdigest(), hmac.compare_digest(b"a", b"a"))
print(base64.b64encode(text), base64.urlsafe_b64decode("_-8="), binascii.hexlify(b"\x00\xff"), zlib.crc32(text))
print(len(secrets.token_hex(8)), len(str(uuid.uuid4())), uuid.uuid5(uuid.NAMESPACE_DNS, "example.org"))
print(hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 1000).hex(), zlib.decompress(zlib.compress(b"x" * 100)) == b"x" * 100)
