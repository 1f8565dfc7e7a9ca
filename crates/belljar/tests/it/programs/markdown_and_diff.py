import difflib
import shlex
import urllib.parse
from email.message import EmailMessage
from http import HTTPStatus
from ipaddress import ip_address, ip_network

old, new = "one\ntwo\nthree\n".splitlines(True), "one\n2\nthree\nfour\n".splitlines(True)
print("".join(difflib.unified_diff(old, new, "old", "new")), difflib.get_close_matches("appel", ["ape", "apple", "peach"]), round(difflib.SequenceMatcher(None, "abcd", "bcde").ratio(), 2))
url = urllib.parse.urlsplit("https://u:p@example.org:8080/a%20b/c?x=1&x=2&y=#f")
print(url.hostname, url.port, urllib.parse.parse_qs(url.query), urllib.parse.urlencode({"q": "a b&c", "n": [1, 2]}, doseq=True), urllib.parse.urljoin("http://h/a/b", "../c"), urllib.parse.quote("ü/x"), urllib.parse.unquote_plus("a+b%21"))
message = EmailMessage()
message["Subject"], message["To"] = "Héllo", "a@b.c"
message.set_content("Body\n")
print(message.as_string(), HTTPStatus(404).phrase, ip_address("10.0.0.1") in ip_network("10.0.0.0/8"), shlex.split("a 'b c' d\\ e"), shlex.quote("it's"))
