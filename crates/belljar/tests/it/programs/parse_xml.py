import xml.etree.ElementTree as ET
from xml.dom import minidom

DOC = """<?xml version="1.0"?><feed xmlns:x="urn:x"><entry id="1"><title>A &amp; B</title><x:n>3</x:n></entry><entry id="2"><title/></entry></feed>"""
root = ET.fromstring(DOC)
for entry in root.iter("entry"):
    print(entry.get("id"), entry.findtext("title"), entry.find("{urn:x}n") is not None and entry.find("x:n", {"x": "urn:x"}).text)
new = ET.SubElement(root, "entry", id="3")
new.text = "<raw>"
ET.indent(root)
print(ET.tostring(root, encoding="unicode"))
print(minidom.parseString("<a><b c='1'>t</b></a>").toprettyxml(indent="  "), [e.tag for e in root.findall("./entry[@id='2']/*")])
try:
    ET.fromstring("<a><b></a>")
except ET.ParseError as error:
    print("ParseError", error, error.position)
