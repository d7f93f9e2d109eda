"""Parse XML as a stream, so that a document costs no more memory than its text; entities are refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, NoReturn
from xml.parsers import expat

from memory.errors import ExtractionError, gettext_noop

_PIECE_BYTES = 65_536


class XmlHandler:
    """Handlers of events; subclasses override those that they need.

    Names of elements and attributes have no namespace prefix, except that attributes of relationships keep "r:",
    because `id` and `r:id` occur together.
    """

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Handle the start of an element."""

    def end(self, name: str) -> None:
        """Handle the end of an element."""

    def text(self, text: str) -> None:
        """Handle character data; one run may arrive in parts."""


def iterparse(file: IO[bytes], handler: XmlHandler) -> Iterator[None]:
    """Send the events of the XML in `file` to `handler`, yielding after each block.

    Raises ExtractionError if it is not well formed, or declares entities, which can expand a few bytes to gigabytes or
    include other files.
    """
    # Expat resolves namespaces; no name contains the separator.
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler = lambda name, attributes: handler.start(
        _local(name), {_attribute(key): value for key, value in attributes.items()}
    )
    parser.EndElementHandler = lambda name: handler.end(_local(name))
    parser.CharacterDataHandler = handler.text
    parser.EntityDeclHandler = _refuse
    parser.ExternalEntityRefHandler = _refuse
    try:
        while piece := file.read(_PIECE_BYTES):
            parser.Parse(piece, False)
            yield
        parser.Parse(b"", True)
        yield
    except expat.ExpatError as error:
        raise ExtractionError(
            gettext_noop("This file is damaged: its XML is not well formed (%(error)s)."), error=str(error)
        ) from error


def _refuse(*_: object) -> NoReturn:
    raise ExtractionError(
        gettext_noop("This file declares XML entities, which no document needs and attacks use. It was not read.")
    )


def _local(name: str) -> str:
    return name.rpartition(" ")[2]


def _attribute(name: str) -> str:
    namespace, _, local = name.rpartition(" ")
    return "r:" + local if namespace.endswith("/relationships") else local
