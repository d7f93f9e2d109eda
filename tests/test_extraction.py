"""Extraction of text and locations from all formats; malicious files only cause an error message."""

from __future__ import annotations

import errno
import io
import json
import os
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memory.documents.extraction import (
    FORMATS,
    ExtractedText,
    ExtractionCancelledError,
    ExtractionLimits,
    Marker,
    formats,
    location_label,
)
from memory.documents.extraction import read as read_file
from memory.documents.extraction.plain import headings
from memory.documents.extraction.protocol import ResultParser, encode_line
from memory.errors import ExtractionError
from tests import files

ROOT = Path(__file__).resolve().parent.parent
SMALL = ExtractionLimits(memory_mb=256, processor_seconds=5, wall_seconds=20)
Read = Callable[..., ExtractedText]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Return a function that extracts text from bytes."""

    def reading(data: bytes | str, name: str = "file", **options: Any) -> ExtractedText:
        path = tmp_path / "upload"
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return read_file(path, name=name, **options)

    return reading


@pytest.fixture
def error_of(read: Read) -> Callable[..., str]:
    """Return a function that returns the extraction's error message and checks that the next file still works."""

    def reason(data: bytes | str, name: str = "file", **options: Any) -> str:
        with pytest.raises(ExtractionError) as caught:
            read(data, name, **options)
        assert read("still here").text == "still here"
        return str(caught.value)

    return reason


def labels(reading: ExtractedText) -> list[str]:
    """Return where each location starts, with its label."""
    return [location_label(reading.marks, mark.start, mark.start + 1) for mark in reading.marks]


def label_of(reading: ExtractedText, text: str) -> str:
    start = reading.text.index(text)
    return location_label(reading.marks, start, start + len(text))


# Encodings

LANGUAGES = {
    "utf-8": "Zwölf Boxkämpfer jagen Viktor über den Sylter Deich. 漢字 ❤",
    "utf-8-sig": "Zwölf Boxkämpfer",
    "utf-16": "Zwölf Boxkämpfer, 漢字",
    "utf-16-le": "Twelve boxers, in a file without a byte order mark",
    "utf-32": "Zwölf Boxkämpfer",
    "latin-1": "Le garçon a mangé une crêpe à la fraise près de la forêt.",
    "cp1252": "Die Straße führt über die Brücke – „schön“ war es für 5 €.",
    "cp1250": "Příliš žluťoučký kůň úpěl ďábelské ódy.",
    "cp1251": "Привет, это простой русский текст для проверки.",
    "koi8_r": "Привет, это простой русский текст для проверки.",
    "cp1253": "Καλημέρα σας, αυτό είναι ένα κείμενο.",
    "shift_jis": "これは日本語のテキストです。東京は日本の首都です。",
    "euc_jp": "これは日本語のテキストです。東京は日本の首都です。",
    "iso2022_jp": "これは日本語のテキストです。",
    "gb18030": "这是一个中文文本，用来测试编码检测。",
    "big5": "這是一個中文文本，用來測試編碼檢測。",
    "euc_kr": "이것은 한국어 텍스트입니다. 서울은 수도입니다.",
}


@pytest.mark.parametrize("encoding", LANGUAGES)
def test_plain_text_is_read_in_every_encoding(read, encoding):
    reading = read(f"{LANGUAGES[encoding]}\n".encode(encoding), "note.txt")
    assert reading.text == LANGUAGES[encoding] + "\n"
    assert (reading.kind, reading.title, reading.marks) == ("text", "", ())


def test_one_invalid_byte_does_not_change_the_detected_utf_8(read):
    reading = read("schön ".encode() * 50 + b"\xff" + "grün".encode())
    assert reading.text.startswith("schön schön")
    assert reading.text.endswith("\ufffdgrün")


def test_a_web_page_is_read_in_its_declared_encoding(read):
    page = '<meta charset="iso-8859-5"><p>Привет</p>'
    assert read(page.encode("iso8859_5"), "a.html").text == "Привет"


@pytest.mark.parametrize(
    ("declared", "encoding"), [("iso-8859-1", "cp1252"), ("us-ascii", "cp1252"), ("iso-8859-9", "cp1254")]
)
def test_a_declared_encoding_has_the_characters_that_browsers_read_in_it(read, declared, encoding):
    page = f'<meta charset="{declared}"><p>„Müller“ – 5 €</p>'
    assert read(page.encode(encoding), "a.html").text == "„Müller“ – 5 €"


@pytest.mark.parametrize("declared", ["utf-8", "undefined", "idna", "punycode", "hex", "unknown"])
def test_a_declared_encoding_that_cannot_be_right_is_not_used(read, declared):
    page = f'<meta charset="{declared}"><p>Wir haben die Größe der Präsentation für Müller geändert.</p>'
    assert read(page.encode("cp1252"), "a.html").text == "Wir haben die Größe der Präsentation für Müller geändert."


def test_line_endings_are_normalised_and_control_characters_removed(read):
    assert read(b"one\r\ntwo\rthree\ffour\x1b\x07\n" + b"\n" * 300, "a.txt").text.rstrip() == "one\ntwo\nthree\nfour"


# Formats


def test_source_code_is_unchanged(read):
    code = "def f():\n\treturn 1  # one\n"
    assert read(code, "f.py") == ExtractedText(code, (), "code", "")
    assert read(code, "Makefile").kind == "code"


def test_markdown_is_unchanged_and_its_headings_are_locations(read):
    text = "# Installation\n\nFirst.\n\n## Docker\n\nRun it.\n\nPodman\n------\n\nThen.\n\n# Use\n\nIt.\n"
    reading = read(text, "guide.md")
    assert reading.text == text
    assert (reading.kind, reading.title) == ("markdown", "Installation")
    assert labels(reading) == ["Installation", "Installation › Docker", "Installation › Podman", "Use"]
    assert label_of(reading, "Run it") == "Installation › Docker"


@pytest.mark.parametrize(
    "text",
    [
        "```\n# no\n```\n",
        "~~~~\n~~~\n# no\n~~~~\n",
        "#no\n",
        "    # no\n",
        "- a\n---\n",
        "---\ntitle: a\n---\n",
        "a\nb\n---\n",
    ],
)
def test_text_that_resembles_a_heading_is_none(text):
    assert headings(text) == []


def test_a_heading_label_has_no_markup():
    assert [text for _, _, text in headings("## See [the *docs*](http://x) `now` ##\n")] == ["See the docs now"]


def test_a_web_page_yields_its_visible_text(read):
    page = """<!doctype html><html><head><title>The  page</title><style>p{}</style></head><body><nav>Menu</nav>
    <h1>Start</h1><p>See <a href="x">the <b>link</b></a>,<br>and <span hidden>not</span> this &amp; that.
    <script>var no = "<p>no</p>"</script><h2>More</h2><ul><li>one<li>two</ul><pre>  a\n    b</pre>
    <div style="display: none">no<div>no</div></div><p hidden>no<p>yes</body></html>"""
    reading = read(page, "whatever")
    assert reading.text == ("Start\n\nSee the link,\nand this & that.\n\nMore\n\n- one\n- two\n\n  a\n    b\n\nyes")
    assert (reading.kind, reading.title) == ("html", "The page")
    assert labels(reading) == ["Start", "Start › More"]


def test_a_table_of_a_web_page_repeats_its_column_names(read):
    rows = "<tr><th>Item<th>Price<tr><td>Paper<td>4<tr><td>Ink<td>9"
    assert read(f"<html><table>{rows}</table>").text == "Item: Paper; Price: 4\nItem: Ink; Price: 9"


def test_a_table_with_row_headers_repeats_them(read):
    rows = "<tr><th>Name</th><td>Ann</td></tr><tr><th>City</th><td>Rome</td></tr>"
    assert read(f"<html><table>{rows}</table>").text == "Name: Ann\nCity: Rome"


def test_a_layout_table_is_read_cell_by_cell(read):
    inner = "<table><tr><th>A<th>B<tr><td>1<td>2</table>"
    page = f"<html><table><tr><td>Left</td><td><h2>Right</h2><p>Text</p>{inner}</td></tr></table>"
    reading = read(page)
    assert reading.text == "Left\n\nRight\n\nText\n\nA: 1; B: 2"
    assert labels(reading) == ["Right"]


def test_a_pdf_has_page_locations(read):
    reading = read(files.pdf(["One\nline", "", "Three"], title="Annual report"), "a.pdf")
    assert reading.text == "One\nline\n\nThree"
    assert (reading.kind, reading.title) == ("pdf", "Annual report")
    assert labels(reading) == ["page 1", "page 3"]
    assert location_label(reading.marks, 0, len(reading.text)) == "pages 1–3"


@pytest.mark.parametrize("title", ["Microsoft Word - draft.doc", "untitled", "scan0001.tif", " - "])
def test_a_generated_title_is_ignored(read, title):
    assert read(files.pdf(["Text"], title=title)).title == ""


def test_a_pdf_protected_only_against_changes_is_read(read):
    assert read(files.pdf(["Text"], owner_password="secret")).text == "Text"


def test_a_word_document_yields_headings_lists_tables_and_footnotes(read):
    body = (
        files.word_paragraph("Guide", "H1")
        + files.word_paragraph("Mind this.", extra='<w:footnoteReference w:id="7"/>')
        + files.word_paragraph("Setup", "H2")
        + files.word_paragraph("one", "Item")
        + files.word_paragraph("two", "Item")
        + files.word_table([["Item", "Price"], ["Paper", "4"]])
    )
    note = f'<w:footnote w:id="7">{files.word_paragraph("Really.")}</w:footnote>'
    reading = read(files.docx(body, title="The guide", footnotes=note))
    assert reading.text == ("Guide\n\nMind this.[1]\n\nSetup\n\n- one\n- two\n\nItem: Paper; Price: 4\n\n[1] Really.")
    assert (reading.kind, reading.title) == ("docx", "The guide")
    assert labels(reading) == ["Guide", "Guide › Setup"]


def test_deleted_and_hidden_text_of_a_word_document_is_not_read(read):
    body = (
        "<w:p><w:del><w:r><w:delText>deleted</w:delText></w:r></w:del><w:r><w:t>kept</w:t></w:r>"
        "<w:r><w:rPr><w:vanish/></w:rPr><w:t>hidden</w:t></w:r></w:p>"
    )
    assert read(files.docx(body)).text == "kept"


def test_slides_are_read_in_order_with_their_notes(read):
    deck = files.pptx(
        [
            files.slide_shape("first\nsecond") + files.slide_shape("Top", "title") + files.slide_shape("1", "sldNum"),
            files.slide_shape("hidden"),
            files.slide_table([["Item", "Price"], ["Paper", "4"]]),
        ],
        hidden=[2],
        notes="Smile",
    )
    reading = read(deck)
    assert reading.text == "Top\n\nfirst\nsecond\n\nNotes: Smile\n\nItem: Paper; Price: 4"
    assert (reading.kind, reading.title) == ("pptx", "Top")
    assert labels(reading) == ["slide 1", "slide 3"]


def test_a_workbook_is_read_by_rows_with_column_names(read):
    costs = (
        files.sheet_row(1, "Budget")
        + files.sheet_row(3, "@0", "Price", "Due", "Share", "At")
        + files.sheet_row(14, "@1", 4.5, "45000|1", "0.125|2", "45000.5|3")
        + files.sheet_row(15, "Ink", "", "45001|1")
    )
    workbook = files.xlsx(
        {"Costs": costs, "Secret": files.sheet_row(1, "no")}, strings=["Item", "Paper"], hidden=["Secret"]
    )
    reading = read(workbook)
    assert reading.text == (
        "Costs\nBudget\nItem: Paper; Price: 4.5; Due: 2023-03-15; Share: 12.5%; At: 2023-03-15 12:00\n"
        "Item: Ink; Due: 2023-03-16"
    )
    assert reading.kind == "xlsx"
    assert labels(reading) == ["sheet Costs", "sheet Costs, row 1", "sheet Costs, row 14", "sheet Costs, row 15"]
    assert (
        location_label(reading.marks, reading.text.index("Item: Paper"), len(reading.text)) == "sheet Costs, rows 14–15"
    )


def test_two_cells_at_opposite_corners_are_cheap(read):
    corners = f'{files.sheet_row(1, "near")}<row r="1048576"><c r="XFD1048576"><v>2</v></c></row>'
    reading = read(files.xlsx({"S": corners}), limits=SMALL)
    assert reading.text == "S\nnear\n2"
    assert labels(reading)[-1] == "sheet S, row 1048576"


@pytest.mark.parametrize(
    ("table", "name"),
    [
        ('name,city\nAnn,"Rome, Italy"\nBob,Oslo\n', "a.csv"),
        ("name;city\nAnn;Rome, Italy\nBob;Oslo\n", "a.csv"),
        ("sep=;\nname;city\nAnn;Rome, Italy\nBob;Oslo\n", "a.csv"),
        ("name\tcity\nAnn\tRome, Italy\nBob\tOslo\n", "a.tsv"),
    ],
)
def test_a_text_table_is_read_with_any_delimiter(read, table, name):
    reading = read(table, name)
    assert reading.text == "name: Ann; city: Rome, Italy\nname: Bob; city: Oslo"
    assert reading.kind == "csv"
    assert labels(reading) == (["row 3", "row 4"] if table.startswith("sep") else ["row 2", "row 3"])


def test_a_table_without_column_names_gets_none(read):
    assert read("Ann,12\nBob,13\n", "a.csv").text == "Ann; 12\nBob; 13"


def test_years_can_be_column_names(read):
    assert read("Item,2023,2024\nPaper,4,5\n", "a.csv").text == "Item: Paper; 2023: 4; 2024: 5"


@pytest.mark.parametrize("old", [False, True])
def test_an_e_book_is_read_by_chapters(read, old):
    pages = {
        "a.xhtml": '<?xml version="1.0" encoding="utf-8"?><html><h1>One</h1><p>Text</p><h2>Part</h2><p>More</p></html>',
        "b.xhtml": "<html><p>Second</p></html>",
    }
    reading = read(files.epub(pages, {"a.xhtml": "One", "b.xhtml": "Two"}, title="The book", old=old))
    assert reading.text == "One\n\nText\n\nPart\n\nMore\n\nSecond"
    assert (reading.kind, reading.title) == ("epub", "The book")
    assert labels(reading) == ["One", "One › Part", "Two"]


def test_an_e_mail_yields_headers_plain_text_and_attachment_names(read):
    mail = (
        "From: Ann <ann@example.org>\nTo: bob@example.org\nSubject: =?utf-8?q?Caf=C3=A9?=\nDate: Mon, 01 Jan 2024 10:00:00 +0000\n"
        "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=Q\n\n"
        "--Q\nContent-Type: multipart/alternative; boundary=R\n\n"
        "--R\nContent-Type: text/html\n\n<p>in HTML</p>\n--R\nContent-Type: text/plain; charset=iso-8859-1\n"
        "Content-Transfer-Encoding: quoted-printable\n\nSch=F6n\n--R--\n"
        "--Q\nContent-Type: application/pdf\nContent-Disposition: attachment; filename=bill.pdf\n\nxx\n--Q--\n"
    )
    reading = read(mail, "a.eml")
    assert reading.text == (
        "From: Ann <ann@example.org>\nTo: bob@example.org\nDate: Mon, 01 Jan 2024 10:00:00 +0000\nSubject: Café\n\n"
        "Schön\n\nAttachment: bill.pdf"
    )
    assert (reading.kind, reading.title) == ("email", "Café")


def test_an_html_e_mail_is_read_as_a_web_page(read):
    mail = "Subject: Hi\nContent-Type: text/html\n\n<p>Hello <b>you</b></p><style>p{}</style>\n"
    assert read(mail, "a.eml").text == "Subject: Hi\n\nHello you"


# Detection of the format


def test_the_content_decides_the_format_not_the_name(read):
    assert read(files.docx(files.word_paragraph("Text")), "a.pdf").kind == "docx"
    assert read(files.pdf(["Text"]), "a.txt").kind == "pdf"
    assert read(b"an odd line\x00\n" + files.pdf(["Text"])).kind == "pdf"
    assert read("A file that begins with %PDF-1.7 is a PDF.", "a.md").kind == "markdown"
    assert read("only words", "a.pdf").kind == "text"
    assert read("only words", "a.docx").kind == "text"


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html", "a.pdf", "a.png", ""])
def test_an_image_is_no_text_whatever_its_name(error_of, name):
    message = error_of(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(range(256)), name)
    assert message.startswith("Unsupported file type. Supported: Plain text, Markdown,")


def test_every_format_is_listed_once_and_every_extension_has_one_format():
    assert len({f.kind for f in FORMATS}) == len(FORMATS)
    extensions = [e for f in FORMATS for e in f.extensions]
    assert len(set(extensions)) == len(extensions)


def test_a_name_is_never_a_path(read, tmp_path, monkeypatch):
    (tmp_path / "other.md").write_text("# not this")
    monkeypatch.chdir(tmp_path)
    for name in ("../../etc/passwd", "/etc/passwd", "other.md", "..", "\0", "a" * 10_000, "-c", "x.\n\udc80"):
        assert read("# this", name).text == "# this"


# Locations of chunks


def test_a_chunk_before_the_first_location_gets_the_first_one_in_it():
    marks = (Marker(10, "heading", "Start", 1), Marker(50, "page", "3"))
    assert location_label(marks, 0, 5) == ""
    assert location_label(marks, 0, 20) == "Start"
    assert location_label((), 0, 5) == ""


def test_a_chunk_on_several_pages_names_the_first_and_last():
    marks = tuple(Marker(10 * n, "page", str(n + 1)) for n in range(5))
    assert location_label(marks, 12, 20) == "page 2"
    assert location_label(marks, 12, 21) == "pages 2–3"


def test_a_row_range_does_not_span_sheets():
    marks = (
        Marker(0, "row", "1", within="A"),
        Marker(5, "sheet", "B"),
        Marker(6, "row", "1", within="B"),
        Marker(9, "row", "2", within="B"),
    )
    assert location_label(marks, 0, 12) == "sheet A, row 1"


# Unreadable files


def test_an_empty_file_is_reported(error_of):
    assert error_of(b"", "a.pdf") == "This file is empty."
    assert error_of(b" \n \n", "a.txt") == "There is no text in this file."


def test_a_scanned_pdf_explains_what_to_do(error_of):
    assert error_of(files.pdf(["", ""])) == (
        "This PDF has no text in it, only pictures of pages. Run it through text recognition (OCR) first."
    )


def test_a_password_protected_pdf_is_reported(error_of):
    assert error_of(files.pdf(["Text"], password="secret")) == (
        "This PDF is protected by a password. Remove it and upload again."
    )


def test_a_password_protected_office_document_is_reported(error_of):
    container = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(70_000)
    assert "old Office format" in error_of(container)
    assert "protected by a password" in error_of(container + "EncryptedPackage".encode("utf-16-le"))


def test_a_copy_protected_book_is_reported(error_of):
    assert "copy-protected" in error_of(files.epub({"a.xhtml": "<p>x"}, {}, locked="a.xhtml"))


BINARY = {
    "pdf": lambda: files.pdf(["A page of text"] * 20),
    "docx": lambda: files.docx("".join(files.word_paragraph(f"Paragraph {n}") for n in range(500))),
    "pptx": lambda: files.pptx([files.slide_shape("Text")] * 20),
    "xlsx": lambda: files.xlsx({"S": "".join(files.sheet_row(n, "a", n) for n in range(1, 500))}),
    "epub": lambda: files.epub({f"{n}.xhtml": "<p>Text" for n in range(20)}, {}),
}


@pytest.mark.parametrize("kind", ["docx", "pptx", "xlsx", "epub"])
def test_a_truncated_file_is_reported_as_damaged(error_of, kind):
    data = BINARY[kind]()
    assert error_of(data[: len(data) // 2], f"a.{kind}").startswith("This file is damaged: ")


def test_a_pdf_without_structure_is_reported_as_damaged(error_of):
    assert error_of(b"%PDF-1.7\nnothing of the kind") == "This PDF is damaged and cannot be read."


@pytest.mark.parametrize("kind", BINARY)
def test_corrupted_bytes_end_in_an_error_or_a_text(read, kind):
    """With every seventh byte after the first kilobyte changed, only a text or an ExtractionError may result."""
    data = bytearray(BINARY[kind]())
    data[1000::7] = b"\x5a" * len(data[1000::7])
    try:
        assert read(bytes(data), limits=SMALL).kind == kind
    except ExtractionError as error:
        assert str(error).startswith("This ")  # noqa: PT017 (both ends are fine)


def test_a_package_without_its_document_is_reported_as_damaged(error_of):
    data = files.archive({"[Content_Types].xml": "<Types/>", "word/other.xml": "<x/>"})
    assert error_of(data) == "This file is damaged: it does not say where its document is."


def test_a_deeply_nested_e_mail_is_refused_before_it_is_parsed(error_of):
    parts = "".join(f"--b{n}\nContent-Type: multipart/mixed; boundary=b{n + 1}\n\n" for n in range(1, 600))
    data = f"From: a@b.example\nSubject: Nested\nContent-Type: multipart/mixed; boundary=b1\n\n{parts}"
    assert error_of(data, "a.eml").startswith("This email has more than 500 parts within parts.")


def test_a_missing_part_is_reported_in_our_words(error_of):
    book = "<package><manifest><item id='p' href='gone.xhtml' media-type='application/xhtml+xml'/></manifest>"
    book += "<spine><itemref idref='p'/></spine></package>"
    container = "<container><rootfiles><rootfile full-path='b.opf'/></rootfiles></container>"
    data = files.archive({"mimetype": "application/epub+zip", "META-INF/container.xml": container, "b.opf": book})
    assert error_of(data, "a.epub") == "This file is damaged: a part that it refers to is not in it."


def test_a_text_longer_than_the_limit_is_reported(error_of):
    message = error_of("long " * 1000, limits=ExtractionLimits(max_characters=1000))
    assert message == "This file has more than 1,000 characters of text. Upload it in parts."


# Malicious files


def test_a_pdf_of_ten_thousand_pages_reports_the_limit(error_of):
    assert "10,000 pages; at most 5,000 can be read" in error_of(files.pdf(["x"] * 10_000))


@pytest.mark.parametrize("kind", ["docx", "xlsx", "epub"])
def test_a_zip_bomb_is_not_unpacked(error_of, kind):
    spaces = " " * 210_000_000
    bombs = {
        "docx": lambda: files.docx(spaces),
        "xlsx": lambda: files.xlsx({"S": spaces}),
        "epub": lambda: files.epub({"a.xhtml": spaces}, {}),
    }
    assert error_of(bombs[kind](), limits=SMALL) == "This file unpacks to more than 200 MB."


def test_a_small_zip_bomb_is_detected_by_its_ratio(error_of):
    assert error_of(files.docx(" " * 50_000_000)) == "This file unpacks to more than 200 times its size."


def test_a_zip_bomb_with_a_false_size_is_detected(error_of):
    honest = files.docx(files.word_paragraph("word " * 200_000))
    with zipfile.ZipFile(io.BytesIO(honest)) as package:
        size = package.getinfo("word/document.xml").file_size
    assert honest.count(size.to_bytes(4, "little")) == 2
    lying = honest.replace(size.to_bytes(4, "little"), (1000).to_bytes(4, "little"))
    assert error_of(lying).startswith("This file is damaged: ")


def test_an_archive_with_very_many_members_is_not_listed(error_of):
    many = files.archive(
        {"[Content_Types].xml": "", "word/document.xml": ""} | {f"word/{n}": "" for n in range(40_000)}
    )
    assert error_of(many) == "This file holds too many parts to be a document."
    assert error_of(with_zip64_record(many)) == "This file holds too many parts to be a document."


def with_zip64_record(archive: bytes) -> bytes:
    """Return the archive with the size of its list of members in a record for large archives only."""
    at = archive.rindex(b"PK\x05\x06")
    count, size, start = struct.unpack("<HII", archive[at + 10 : at + 20])
    record = struct.pack("<4sQHHIIQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, size, start)
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, at, 1)
    return archive[:at] + record + locator + archive[at : at + 12] + struct.pack("<II", 0, start) + archive[at + 20 :]


@pytest.mark.parametrize("kind", ["docx", "xlsx"])
def test_an_entity_expansion_is_refused(error_of, kind):
    body = files.word_paragraph("x") + "<w:p><w:r><w:t>&l9;</w:t></w:r></w:p>"
    bomb = files.docx(body, prolog=files.LAUGHS) if kind == "docx" else files.xlsx({"S": ""}, prolog=files.LAUGHS)
    assert "declares XML entities" in error_of(bomb, limits=SMALL)


def test_an_external_entity_is_refused(error_of, tmp_path):
    (tmp_path / "secret").write_text("secret")
    prolog = f'<!DOCTYPE x [<!ENTITY e SYSTEM "file://{tmp_path}/secret">]>'
    assert "declares XML entities" in error_of(files.docx("<w:p><w:r><w:t>&e;</w:t></w:r></w:p>", prolog=prolog))


@pytest.mark.parametrize("depth", [1000, 50_000])
def test_deeply_nested_tags_are_read(read, depth):
    assert read("<html>" + "<div>" * depth + "deep" + "</div>" * depth, limits=SMALL).text == "deep"
    assert read(files.docx("<w:sdt>" * depth + files.word_paragraph("deep") + "</w:sdt>" * depth)).text == "deep"


def test_a_pdf_of_nested_arrays_is_reported(error_of):
    nested = files.pdf_of([b"<</Type/Catalog/Pages 2 0 R/X " + b"[" * 100_000 + b"]" * 100_000 + b">>"])
    assert error_of(nested, limits=SMALL) == "This PDF is damaged and cannot be read."


def test_a_pdf_with_a_cycle_of_pages_is_reported(error_of):
    circle = [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Count 1/Kids[2 0 R]>>"]
    assert error_of(files.pdf_of(circle), limits=SMALL).startswith("This ")


def test_a_file_that_needs_too_much_memory_is_reported(read, error_of):
    rows = "".join(files.sheet_row(n, f"some text of its own {n}", n, n + 1, n + 2) for n in range(1, 60_000))
    message = error_of(
        files.xlsx({"S": rows}, strings=[f"{n} {'x' * 300}" for n in range(100_000)]),
        limits=ExtractionLimits(memory_mb=64),
    )
    assert message == "This file needs more than 64 MB of memory to be read."


def test_a_file_that_needs_too_much_cpu_time_is_reported(error_of):
    slow = files.pdf(["words and words\n" * 40] * 3000)
    assert error_of(slow, limits=ExtractionLimits(processor_seconds=1)) == (
        "Reading this file exceeded the CPU limit (1 s)."
    )


def test_a_file_that_takes_too_long_is_reported(error_of):
    slow = files.pdf(["words and words\n" * 40] * 3000)
    assert (
        error_of(slow, limits=ExtractionLimits(wall_seconds=0.5)) == "This file took longer than 0.5 seconds to read."
    )


def test_an_unresponsive_process_is_killed(read, tmp_path, monkeypatch):
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\nexec sleep 600\n")
    silent.chmod(0o755)
    monkeypatch.setattr("memory.documents.extraction.process.sys.executable", str(silent))
    with pytest.raises(ExtractionError, match=r"took longer than 0\.3 seconds"):
        read("text", limits=ExtractionLimits(wall_seconds=0.3))


def test_extraction_can_be_cancelled(read):
    calls = []

    def stop() -> bool:
        calls.append(True)
        return len(calls) > 2

    with pytest.raises(ExtractionCancelledError):
        read(files.pdf(["words and words\n" * 40] * 3000), stop=stop)
    assert len(calls) == 3


def test_no_process_is_left_behind(read, monkeypatch):
    started: list[subprocess.Popen[bytes]] = []

    class WatchedProcess(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", WatchedProcess)
    with pytest.raises(ExtractionCancelledError):
        read(files.pdf(["words\n" * 40] * 3000), stop=lambda: bool(started))
    with pytest.raises(ProcessLookupError):
        os.kill(started[0].pid, 0)


# Sandbox of the child process


def run_confined(code: str, limits: str = "ExtractionLimits()") -> str:
    """Run `code` in a process that confined itself; return its output."""
    script = (
        "import os, socket, subprocess, sys\n"
        "from memory.documents.extraction.sandbox import confine\nfrom memory.documents.extraction.result import ExtractionLimits\n"
        f"confine({limits})\ntry:\n    {code}\n    print('allowed')\n"
        "except (OSError, MemoryError) as error:\n    print(type(error).__name__)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    return result.stdout.strip() or str(result.returncode)


@pytest.mark.parametrize(
    "code",
    [
        "socket.socket()",
        "socket.create_connection(('127.0.0.1', 80))",
        "socket.getaddrinfo('example.org', 80)",
        "open('/etc/passwd')",
        "open('/tmp/x.py', 'w')",
        "open(os.__file__, 'r+')",
        "os.open('/etc/passwd', os.O_RDONLY)",
        "os.remove('/nowhere')",
        "os.mkdir('/tmp/x')",
        "os.system('true')",
        "os.fork()",
        "os.kill(1, 0)",
        "os.execv('/bin/true', ['true'])",
        "subprocess.run(['true'])",
        "import ctypes; ctypes.CDLL(None)",
    ],
)
def test_a_confined_process_may_not(code):
    assert run_confined(code) == "PermissionError"


def test_a_confined_process_may_import_what_extraction_needs():
    assert run_confined("import pypdf, charset_normalizer, email.policy; open(os.__file__).read(10)") == "allowed"


def test_a_confined_process_cannot_exceed_its_memory():
    assert run_confined("b'x' * 300_000_000", "ExtractionLimits(memory_mb=200)") == "MemoryError"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has namespaces")
def test_without_the_audit_hook_the_system_still_denies_network_access():
    script = (
        "import errno, socket\nfrom memory.documents.extraction.sandbox import _leave_network\n"
        "left = _leave_network()\ns = socket.socket()\ns.settimeout(5)\n"
        "print(left, errno.errorcode.get(s.connect_ex(('192.0.2.1', 80))))"
    )
    result = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    remaining, error = result.stdout.split()
    assert remaining == "False" or error == errno.errorcode[errno.ENETUNREACH]


def test_the_child_process_imports_neither_django_nor_the_configuration():
    code = (
        "import sys, memory.documents.extraction.worker, memory.documents.extraction.pdf, memory.documents.extraction.docx, memory.documents.extraction.mail\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('django', 'chromadb', 'cato_web', 'chat', 'numpy')])"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_the_child_process_receives_no_secrets(monkeypatch, tmp_path):
    monkeypatch.setenv("SECRET_KEY", "secret")
    environments: list[dict[str, str]] = []
    real = subprocess.Popen

    def watch(*args: Any, **options: Any) -> Any:
        environments.append(options["env"])
        return real(*args, **options)

    monkeypatch.setattr("memory.documents.extraction.process.subprocess.Popen", watch)
    (tmp_path / "a").write_text("text")
    read_file(tmp_path / "a", name="a")
    assert set(environments[0]) == {"PYTHONPATH", "PYTHONUTF8"}


# Output of the child process is not trusted


@pytest.mark.parametrize(
    "message",
    [
        b"nonsense\n",
        b"1\n",
        b"null\n",
        b"{}\n",
        b"[" * 100_000 + b"\n",
        b'"' + b"x" * 3_000_000,
        encode_line("x" * 1001),
        encode_line([[5, "page", "1", 0, ""]]),
        encode_line([[0, "door", "1", 0, ""]]),
        encode_line([[0, "page", 1, 0, None]]),
        encode_line([[0, "page"]]),
        encode_line({"title": "", "pages": -1}),
    ],
)
def test_an_invalid_response_is_refused(message):
    with pytest.raises(ExtractionError, match="make no sense"):
        ResultParser(ExtractionLimits(max_characters=1000)).take(message)


def test_half_a_response_is_no_text():
    answer = ResultParser(ExtractionLimits())
    answer.take(
        encode_line({"kind": "text"}) + encode_line("some text") + json.dumps({"title": "", "pages": 2}).encode()
    )
    assert answer.reading() is None
    answer.take(b"\n")
    assert answer.reading() == ExtractedText("some text", (), "text", "", pages=2)


def test_endless_comments_before_a_page_do_not_delay_the_upload():
    assert formats.detect_format(io.BytesIO(b"<!---->" * 8000 + b"<p>"), "a.txt") == "text"


def test_the_format_of_an_open_file_is_detected_without_a_process():
    file = io.BytesIO(files.pdf(["Text"]))
    assert formats.detect_format(file, "a.txt") == "pdf"
    assert file.tell() == 0
