"""Parses XML and keeps the line of every element; refuses document types (so also entities) and deep
nesting.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from .problem import Problem, TopologyError

DEEPEST = 64  # largest depth of nested elements


@dataclass
class Element:
    tag: str
    line: int
    attributes: dict[str, str]
    children: list[Element] = field(default_factory=list)
    text: str = ""  # text directly within the element

    def all(self, *path: str) -> Iterator[Element]:
        """Yields the descendants at this path of tags, one tag for each level below the element."""
        for child in self.children:
            if child.tag == path[0]:
                yield from child.all(*path[1:]) if len(path) > 1 else (child,)

    def below(self, tag: str) -> Iterator[Element]:
        """Yields all descendants of this tag, without the prefix of a namespace, in the order of the file."""
        for child in self.children:
            if child.tag.rpartition(":")[2] == tag:
                yield child
            yield from child.below(tag)

    def first(self, tag: str) -> Element | None:
        return next(self.all(tag), None)


def elements(file: str, content: bytes, remedy: str) -> Element:
    """Returns the root element. Raises TopologyError with the line if the content is not XML, declares a
    document type or nests more than DEEPEST elements. file, remedy: for the message.
    """
    reader = expat.ParserCreate()
    above = [Element("", 0, {})]

    def refused(rule: str, line: int) -> TopologyError:
        return TopologyError([Problem(file, line, "", "", rule, remedy)])

    def begin(tag: str, attributes: dict[str, str]) -> None:
        if len(above) > DEEPEST:
            raise refused(f"has more than {DEEPEST} nested elements", reader.CurrentLineNumber)
        element = Element(tag, reader.CurrentLineNumber, attributes)
        above[-1].children.append(element)
        above.append(element)

    def doctype(*_: object) -> None:
        raise refused("declares a document type: entities are not expanded", reader.CurrentLineNumber)

    reader.StartElementHandler = begin

    def characters(text: str) -> None:
        above[-1].text += text

    reader.buffer_text = True
    reader.CharacterDataHandler = characters
    reader.EndElementHandler = lambda _tag: above.pop()
    reader.StartDoctypeDeclHandler = doctype
    try:
        reader.Parse(content, True)
    except expat.ExpatError as error:
        raise refused(f"is not XML ({expat.errors.messages[error.code]})", error.lineno) from None
    except (LookupError, ValueError) as error:  # the encoding is unknown
        raise refused(f"cannot be read ({error})", 0) from None
    return above[0].children[0]
