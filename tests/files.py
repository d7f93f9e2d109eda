"""Files of every supported format, generated, and some malicious ones."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from html import escape

from pypdf import PdfReader, PdfWriter

_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006"
_WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_SHEET = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_SLIDE = (
    'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
)
_RELATED = f'xmlns:r="{_OFFICE}/relationships"'
_NAV = '<item id="nav" href="nav.xhtml" properties="nav"/>'
_NCX = '<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>'
# "Billion laughs": each entity contains the previous one ten times.
_LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
LAUGHS = f'<!DOCTYPE l [<!ENTITY l0 "ha">{_LAUGHS}]>'


def archive(parts: dict[str, str | bytes]) -> bytes:
    """Return a zip archive of `parts` by name."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as package:
        for name, content in parts.items():
            package.writestr(name, content)
    return file.getvalue()


def relationships(*relations: tuple[str, str]) -> str:
    """Return a relationships part with ids r1, r2 and so on; each relation is a type and a target."""
    rows = (
        f'<Relationship Id="r{number}" Type="{_OFFICE}/relationships/{kind}" Target="{target}"/>'
        for number, (kind, target) in enumerate(relations, 1)
    )
    return f'<Relationships xmlns="{_PACKAGE}/relationships">{"".join(rows)}</Relationships>'


def office(main: str, parts: dict[str, str | bytes], title: str = "") -> bytes:
    """Return an Office document whose main part is `main`."""
    core = f'<c:coreProperties xmlns:c="c" xmlns:dc="dc"><dc:title>{escape(title)}</dc:title></c:coreProperties>'
    shared = {
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": relationships(("officeDocument", main), ("metadata/core-properties", "docProps/core.xml")),
        "docProps/core.xml": core,
    }
    return archive(shared | parts)


def word_paragraph(text: str, style: str = "", extra: str = "") -> str:
    styled = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f'<w:p>{styled}<w:r><w:t xml:space="preserve">{escape(text)}</w:t>{extra}</w:r></w:p>'


def word_table(rows: Sequence[Sequence[str]]) -> str:
    cells = ("".join(f"<w:tc>{word_paragraph(cell)}</w:tc>" for cell in row) for row in rows)
    return "<w:tbl>" + "".join(f"<w:tr>{row}</w:tr>" for row in cells) + "</w:tbl>"


def docx(body: str, *, title: str = "", prolog: str = "", footnotes: str = "") -> bytes:
    """Return a Word document; its styles `H1` and `H2` are headings, by name and by outline level."""
    styles = (
        f'<w:styles {_WORD}><w:style w:styleId="H1"><w:name w:val="heading 1"/></w:style>'
        '<w:style w:styleId="Outlined"><w:name w:val="Own"/><w:pPr><w:outlineLvl w:val="1"/></w:pPr></w:style>'
        '<w:style w:styleId="H2"><w:name w:val="Chapter of mine"/><w:basedOn w:val="Outlined"/></w:style>'
        '<w:style w:styleId="Item"><w:name w:val="List Bullet"/></w:style></w:styles>'
    )
    parts: dict[str, str | bytes] = {
        "word/document.xml": f"{prolog}<w:document {_WORD}><w:body>{body}</w:body></w:document>",
        "word/_rels/document.xml.rels": relationships(("styles", "styles.xml"), ("footnotes", "footnotes.xml")),
        "word/styles.xml": styles,
        "word/footnotes.xml": f"<w:footnotes {_WORD}>{footnotes}</w:footnotes>",
    }
    return office("word/document.xml", parts, title)


def slide_shape(text: str, placeholder: str = "") -> str:
    kind = f'<p:ph type="{placeholder}"/>' if placeholder else ""
    paragraphs = "".join(f"<a:p><a:r><a:t>{escape(line)}</a:t></a:r></a:p>" for line in text.split("\n"))
    return f"<p:sp><p:nvSpPr><p:nvPr>{kind}</p:nvPr></p:nvSpPr><p:txBody>{paragraphs}</p:txBody></p:sp>"


def slide_table(rows: Sequence[Sequence[str]]) -> str:
    cells = ("".join(f"<a:tc><a:p><a:r><a:t>{cell}</a:t></a:r></a:p></a:tc>" for cell in row) for row in rows)
    return "<p:graphicFrame><a:tbl>" + "".join(f"<a:tr>{row}</a:tr>" for row in cells) + "</a:tbl></p:graphicFrame>"


def pptx(slides: Sequence[str], *, hidden: Sequence[int] = (), notes: str = "") -> bytes:
    """Return a presentation; `hidden` are slide numbers, and the first slide has `notes`."""
    ids = "".join(f'<p:sldId id="{255 + n}" r:id="r{n}"/>' for n in range(1, len(slides) + 1))
    parts: dict[str, str | bytes] = {
        "ppt/presentation.xml": f"<p:presentation {_SLIDE} {_RELATED}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>",
        "ppt/_rels/presentation.xml.rels": relationships(
            *(("slide", f"slides/s{n + 1}.xml") for n in range(len(slides)))
        ),
        "ppt/slides/_rels/s1.xml.rels": relationships(("notesSlide", "../notes/n1.xml")),
        "ppt/notes/n1.xml": f"<p:notes {_SLIDE}>{slide_shape('1', 'sldNum')}{slide_shape(notes, 'body')}</p:notes>",
    }
    for number, shapes in enumerate(slides, 1):
        show = ' show="0"' if number in hidden else ""
        parts[f"ppt/slides/s{number}.xml"] = f"<p:sld {_SLIDE}{show}>{shapes}</p:sld>"
    return office("ppt/presentation.xml", parts)


def sheet_row(number: int, *cells: str | float) -> str:
    """Return a row: `@0` is a shared string, `value|style` a styled cell, everything else is literal."""
    elements = []
    for column, cell in zip("ABCDEFGH", cells, strict=False):
        reference = f'r="{column}{number}"'
        if isinstance(cell, str) and cell.startswith("@"):
            elements.append(f'<c {reference} t="s"><v>{cell[1:]}</v></c>')
        elif isinstance(cell, str) and "|" in cell:
            value, style = cell.split("|")
            elements.append(f'<c {reference} s="{style}"><v>{value}</v></c>')
        elif isinstance(cell, str):
            elements.append(f'<c {reference} t="inlineStr"><is><t>{escape(cell)}</t></is></c>' if cell else "")
        else:
            elements.append(f"<c {reference}><v>{cell}</v></c>")
    return f'<row r="{number}">{"".join(elements)}</row>'


def xlsx(sheets: dict[str, str], *, strings: Sequence[str] = (), hidden: Sequence[str] = (), prolog: str = "") -> bytes:
    """Return a workbook of rows by sheet name; style 1 is a date, 2 a percentage, 3 a custom date and time."""
    states = {name: "hidden" if name in hidden else "visible" for name in sheets}
    listed = "".join(
        f'<sheet name="{name}" sheetId="{n}" r:id="r{n}" state="{state}"/>'
        for n, (name, state) in enumerate(states.items(), 1)
    )
    targets = [("worksheet", f"worksheets/s{n}.xml") for n in range(1, len(sheets) + 1)]
    styles = (
        f'<styleSheet {_SHEET}><numFmts><numFmt numFmtId="164" formatCode="dd/mm/yyyy\\ hh:mm;@"/></numFmts>'
        '<cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="9"/><xf numFmtId="164"/></cellXfs></styleSheet>'
    )
    parts: dict[str, str | bytes] = {
        "xl/workbook.xml": f"<workbook {_SHEET} {_RELATED}><sheets>{listed}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": relationships(
            *targets, ("styles", "styles.xml"), ("sharedStrings", "strings.xml")
        ),
        "xl/styles.xml": styles,
        "xl/strings.xml": f"<sst {_SHEET}>{''.join(f'<si><t>{escape(s)}</t></si>' for s in strings)}</sst>",
    }
    for number, rows in enumerate(sheets.values(), 1):
        parts[f"xl/worksheets/s{number}.xml"] = f"{prolog}<worksheet {_SHEET}><sheetData>{rows}</sheetData></worksheet>"
    return office("xl/workbook.xml", parts)


def epub(
    pages: dict[str, str], contents: dict[str, str], *, title: str = "", locked: str = "", old: bool = False
) -> bytes:
    """Return an e-book; `contents` gives chapter titles, `locked` an encrypted page.

    `old`: with the table of contents of EPUB 2.
    """
    items = "".join(f'<item id="{name}" href="{name}" media-type="application/xhtml+xml"/>' for name in pages)
    spine = "".join(f'<itemref idref="{name}"/>' for name in pages)
    links = "".join(f'<li><a href="{name}#top">{label}</a></li>' for name, label in contents.items())
    points = "".join(
        f'<navPoint><navLabel><text>{label}</text></navLabel><content src="{name}"/></navPoint>'
        for name, label in contents.items()
    )
    parts: dict[str, str | bytes] = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>',
        "OPS/book.opf": f'<package xmlns:dc="dc"><metadata><dc:title>{title}</dc:title></metadata><manifest>{items}'
        f"{_NCX if old else _NAV}</manifest><spine>{spine}</spine></package>",
        "OPS/toc.ncx": f'<!DOCTYPE ncx PUBLIC "-//NISO//DTD ncx 2005-1//EN" "x.dtd"><ncx><navMap>{points}</navMap></ncx>',
        "OPS/nav.xhtml": f'<html xmlns:epub="e"><nav epub:type="toc"><ol>{links}</ol></nav></html>',
    }
    if locked:
        parts["META-INF/encryption.xml"] = f'<e><CipherReference URI="OPS/{locked}"/></e>'
    for name, page in pages.items():
        parts[f"OPS/{name}"] = page
    return archive(parts)


def pdf(pages: Sequence[str], *, title: str = "", password: str = "", owner_password: str = "") -> bytes:
    """Return a PDF with lines of text on its pages; an empty page is like a scan."""
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b"", b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    kids = []
    for text in pages:
        lines = "".join(f"({_pdf_escape(line)}) Tj T* " for line in text.split("\n")) if text else ""
        stream = f"BT /F1 12 Tf 14 TL 50 800 Td {lines}ET".encode("cp1252")
        objects.append(b"<</Length %d>>stream\n%b\nendstream" % (len(stream), stream))
        objects.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F1 3 0 R>>>>/Contents %d 0 R>>"
            % len(objects)
        )
        kids.append(b"%d 0 R" % len(objects))
    objects[1] = b"<</Type/Pages/Count %d/Kids[%b]>>" % (len(kids), b" ".join(kids))
    objects.append(b"<</Title(%b)>>" % _pdf_escape(title).encode("cp1252"))
    data = pdf_of(objects, b"/Info %d 0 R" % len(objects))
    if not password and not owner_password:
        return data
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(data)))
    writer.encrypt(password, owner_password or None, algorithm="AES-256")
    cells = io.BytesIO()
    writer.write(cells)
    return cells.getvalue()


def pdf_page(content: str, *, form: str = "") -> bytes:
    """Return a PDF of one page, 595 x 842 points, with these operations.

    /Im is an image, /Fm a form of the operations `form`, /Gs a graphics state with zero opacity.
    """
    stream, inner, font = content.encode("cp1252"), form.encode("cp1252"), b"<</Font<</F1 3 0 R>>>>"
    return pdf_of(
        [
            b"<</Type/Catalog/Pages 2 0 R>>",
            b"<</Type/Pages/Count 1/Kids[5 0 R]>>",
            b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
            b"<</Length %d>>stream\n%b\nendstream" % (len(stream), stream),
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 4 0 R/Resources<</Font<</F1 3 0 R>>"
            b"/XObject<</Im 6 0 R/Fm 7 0 R>>/ExtGState<</Gs<</ca 0>>>>>>>>",
            b"<</Type/XObject/Subtype/Image/Width 1/Height 1/ColorSpace/DeviceGray/BitsPerComponent 8/Length 1>>"
            b"stream\n\x80\nendstream",
            b"<</Type/XObject/Subtype/Form/BBox[0 0 595 842]/Resources %b/Length %d>>stream\n%b\nendstream"
            % (font, len(inner), inner),
        ]
    )


def pdf_of(objects: Sequence[bytes], trailer: bytes = b"") -> bytes:
    """Return a PDF of numbered objects, the first of which is the catalogue."""
    data, offsets = bytearray(b"%PDF-1.7\n"), []
    for number, content in enumerate(objects, 1):
        offsets.append(len(data))
        data += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    start, count = len(data), len(objects) + 1
    data += b"xref\n0 %d\n0000000000 65535 f \n" % count + b"".join(
        b"%010d 00000 n \n" % reference for reference in offsets
    )
    data += b"trailer\n<</Size %d/Root 1 0 R%b>>\nstartxref\n%d\n%%%%EOF\n" % (count, trailer, start)
    return bytes(data)


def _pdf_escape(text: str) -> str:
    return text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
