"""XML read as a stream of events, so that a document costs no more memory than its text; entities are refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, NoReturn
from xml.parsers import expat

from memory.errors import ExtractionError, gettext_noop

_PIECE_BYTES = 65_536


class XmlHandler:
    """Hears the events, and lets pass what a subclass does not take up.

    Names of elements and attributes come without their namespace, except that attributes of the namespace of
    relationships keep "r:", since `id` and `r:id` stand side by side.
    """

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""

    def end(self, name: str) -> None:
        """An element ends."""

    def text(self, text: str) -> None:
        """Character data; one run may come in several pieces."""


def iterparse(file: IO[bytes], listener: XmlHandler) -> Iterator[None]:
    """Tell `listener` the events of the XML in `file`, with a pause after each piece of it.

    Raises ExtractionError where it is not well formed and where it declares entities, by which a few bytes become
    gigabytes, or another file.
    """
    # Expat resolves namespaces; the separator is a character that no name holds.
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler = lambda name, attributes: listener.start(
        _local(name), {_attribute(key): value for key, value in attributes.items()}
    )
    parser.EndElementHandler = lambda name: listener.end(_local(name))
    parser.CharacterDataHandler = listener.text
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
