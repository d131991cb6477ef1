"""Untrusted XML: a bounded tree, checked number by number, written back in a form the engine reads safely.

Knows XML and the attribute names of MJCF and URDF; opens no file. The tree remembers the file and line of every
element, so that a complaint of the engine about the rewritten text leads back to the user's own line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from trueup.core.errors import TrueupError

MAX_XML_BYTES = 20_000_000
MAX_ELEMENTS = 50_000
MAX_ATTRIBUTES = 300_000
MAX_DEPTH = 100
# Elements that load shared libraries into the process, or that only such libraries give a meaning to.
FORBIDDEN = {"plugin", "extension", "instance"}
# Attributes whose words are names, so that a joint may be called "inf".
NAMES = {"name", "class", "childclass", "file", "filename", "data", "prefix", "model", "link", "target"} | {
    f"{kind}{number}"
    for kind in ["joint", "body", "geom", "site", "mesh", "material", "texture", "tendon", "actuator", "objname"]
    for number in ("", "1", "2")
}
# The largest numbers (products of all words) taken from attributes that make the engine allocate or loop; `tag key`
# where other elements use the key for something harmless.
LIMITS: dict[str, float] = {
    **dict.fromkeys(("texture width", "texture height"), 8192),
    **dict.fromkeys(("nrow", "ncol"), 4096),
    **dict.fromkeys(("njmax", "nconmax", "nuserdata", "nkey"), 100_000),
    **dict.fromkeys(("memory", "nstack"), 256_000_000),
    **dict.fromkeys(("nsample", "dim", "actdim", "actlimited"), 10_000),
    **dict.fromkeys(("iterations", "ls_iterations", "noslip_iterations", "ccd_iterations"), 10_000),
    **dict.fromkeys(("sdf_iterations", "sdf_initpoints"), 1_000),
    **dict.fromkeys(("offwidth", "offheight", "shadowsize"), 16_384),
    "resolution": 16_384**2,
    **dict.fromkeys(("numslices", "numstacks", "numquads"), 1_000),
    **dict.fromkeys(("maxhullvert", "vertcollide", "cellcount"), 100_000),
    **dict.fromkeys(("replicate count", "composite count", "flexcomp count"), 10_000),
    "numeric size": 1_000_000,
}
MAX_NUSER = 1_000

_SUSPECT = re.compile(r"[nN]|0[xX]|[eE]\+?\d{3}|\d{300}")  # cheap; nan and inf both have an n
_HEXADECIMAL = re.compile(r"[+-]?0[xX][0-9a-fA-F]")
_NON_FINITE = re.compile(r"[+-]?(?:nan|inf)(?:$|[(i])", re.IGNORECASE)
_MEMORY_UNITS = {"K": 2.0**10, "M": 2.0**20, "G": 2.0**30, "T": 2.0**40, "P": 2.0**50, "E": 2.0**60}


@dataclass(slots=True)
class XmlNode:
    """One element: tag, attributes in order, children, and where the user wrote it."""

    tag: str
    attrs: dict[str, str]
    file: Path
    line: int
    children: list[XmlNode] = field(default_factory=list)

    @property
    def place(self) -> str:
        name = self.attrs.get("name")
        return f"line {self.line}, <{self.tag}{f' name={name!r}' if name else ''}>"

    def walk(self) -> Iterator[XmlNode]:
        """This element and everything below, in document order."""
        rest = [self]
        while rest:
            node = rest.pop()
            yield node
            rest.extend(reversed(node.children))

    def find_all(self, tag: str) -> list[XmlNode]:
        return [child for child in self.children if child.tag == tag]

    def find(self, tag: str) -> XmlNode | None:
        return next((child for child in self.children if child.tag == tag), None)

    def error(self, message: str) -> TrueupError:
        return TrueupError(message, file=self.file, place=self.place)


def parse_xml(data: bytes, file: Path) -> XmlNode:
    """Parse bytes into a tree without entities; every failure names the line."""
    parser = expat.ParserCreate()
    above = XmlNode("", {}, file, 0)  # of the root
    stack, elements, attributes = [above], 0, 0
    too_many = f"has more than {MAX_ELEMENTS} elements or {MAX_ATTRIBUTES} attributes, which no robot needs"

    def start(tag: str, attrs: dict[str, str]) -> None:
        nonlocal elements, attributes
        node = XmlNode(tag, attrs, file, parser.CurrentLineNumber)
        elements, attributes = elements + 1, attributes + len(attrs)
        if elements > MAX_ELEMENTS or attributes > MAX_ATTRIBUTES:
            raise node.error(too_many)
        if len(stack) > MAX_DEPTH:
            raise node.error(f"is nested more than {MAX_DEPTH} elements deep")
        stack[-1].children.append(node)
        stack.append(node)

    def refuse(*_: object) -> None:
        line = f"line {parser.CurrentLineNumber}"
        raise TrueupError("declares a DOCTYPE; remove it (entities are not read)", file=file, place=line)

    parser.StartElementHandler, parser.EndElementHandler = start, lambda tag: stack.pop()
    parser.StartDoctypeDeclHandler = refuse
    if data.count(b"=") > MAX_ATTRIBUTES:  # before the parser gathers them all for one element
        raise TrueupError(too_many, file=file, place="line 1")
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        place = f"line {error.lineno}, column {error.offset}"
        raise TrueupError(f"is not valid XML: {expat.ErrorString(error.code)}", file=file, place=place) from None
    except (ValueError, LookupError) as error:
        raise TrueupError(f"has an encoding that cannot be read: {error}", file=file, place="line 1") from None
    return above.children[0]


def check_tree(root: XmlNode) -> None:
    """Refuse elements that load code, hold a number that is not finite, or declare an absurd size."""
    for node in root.walk():
        if node.tag in FORBIDDEN:
            raise node.error(f"<{node.tag}> loads code into the engine and is not read; remove it")
        for key, text in node.attrs.items():
            if key not in NAMES and not key.startswith("file") and _SUSPECT.search(text):
                _check_finite(node, key, text)
            limit = MAX_NUSER if key.startswith("nuser_") else LIMITS.get(key) or LIMITS.get(f"{node.tag} {key}")
            if limit is not None:
                _check_limit(node, key, text, limit)


def _check_finite(node: XmlNode, key: str, text: str) -> None:
    for word in re.split(r"[\s,;]+", text):
        if _HEXADECIMAL.match(word):
            raise node.error(f"attribute {key}={text[:40]!r}: write numbers in decimal, not hexadecimal")
        if _NON_FINITE.match(word) or math.isinf(_number(word)):
            raise node.error(f"attribute {key}={text[:40]!r} holds {word[:20]!r}; every number must be finite")


def _check_limit(node: XmlNode, key: str, text: str, limit: float) -> None:
    """Compare the product of all words with the limit (`count="10 10 10"` makes a thousand)."""
    total = 1.0
    for word in text.split():
        unit = _MEMORY_UNITS.get(word[-1].upper()) if key in ("memory", "nstack") else None
        total *= max(abs(_number(word[:-1] if unit else word)) * (unit or 1.0), 1.0)
    if total > limit:
        raise node.error(f"attribute {key}={text[:40]!r} is above the limit of {limit:.0f}")


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return 0.0


def write_xml(root: XmlNode) -> tuple[str, list[XmlNode]]:
    """Return the text, one tag a line, and the element that each line (from 1) came from."""
    lines: list[str] = []
    origin: list[XmlNode] = [root]

    def write(node: XmlNode, indent: str) -> None:
        attrs = "".join(f" {key}={quoteattr(value)}" for key, value in node.attrs.items())
        lines.append(f"{indent}<{node.tag}{attrs}{'>' if node.children else '/>'}")
        origin.append(node)
        for child in node.children:
            write(child, (indent + "  ")[:40])
        if node.children:
            lines.append(f"{indent}</{node.tag}>")
            origin.append(node)

    write(root, "")
    return "\n".join(lines), origin
