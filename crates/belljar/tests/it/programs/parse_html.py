from html import escape, unescape
from html.parser import HTMLParser

PAGE = """<html><body><h1>News</h1><ul class="items"><li><a href="/a?x=1&amp;y=2">First &lt;b&gt;</a></li>
<li><a href='/b'>Second</a></li></ul><!-- note --><table><tr><td>1</td><td>2</td></tr></table></body></html>"""


class Links(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.links, self.cells, self._href, self._depth = [], [], None, 0

    def handle_starttag(self, tag, attrs):
        self._depth += 1
        if tag == "a":
            self._href = dict(attrs).get("href")
        self._cell = tag == "td"

    def handle_endtag(self, tag):
        self._depth -= 1
        if tag == "a":
            self._href = None

    def handle_data(self, data):
        if self._href:
            self.links.append((self._href, data))
        elif getattr(self, "_cell", False) and data.strip():
            self.cells.append(int(data))

    def handle_comment(self, data):
        print("comment", data)


parser = Links()
parser.feed(PAGE)
print(parser.links, parser.cells, parser._depth, escape("<a href='x'>"), unescape("&eacute;&#8364;"))
