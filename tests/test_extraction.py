"""The text comes out of every file a team has, with its places; a file made to do harm costs a sentence, no more."""

from __future__ import annotations

import errno
import io
import json
import os
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
    """Reads bytes, called `name`, as a file."""

    def reading(data: bytes | str, name: str = "file", **given: Any) -> ExtractedText:
        path = tmp_path / "upload"
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return read_file(path, name=name, **given)

    return reading


@pytest.fixture
def why_not(read: Read) -> Callable[..., str]:
    """The sentence with which reading fails; the next file is read all the same."""

    def reason(data: bytes | str, name: str = "file", **given: Any) -> str:
        with pytest.raises(ExtractionError) as caught:
            read(data, name, **given)
        assert read("still here").text == "still here"
        return str(caught.value)

    return reason


def places(reading: ExtractedText) -> list[str]:
    """Where each mark stands, for a person."""
    return [location_label(reading.marks, mark.start, mark.start + 1) for mark in reading.marks]


def place_of(reading: ExtractedText, words: str) -> str:
    start = reading.text.index(words)
    return location_label(reading.marks, start, start + len(words))


# Text in every encoding

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
def test_plain_text_is_read_in_whatever_encoding(read, encoding):
    reading = read(f"{LANGUAGES[encoding]}\n".encode(encoding), "note.txt")
    assert reading.text == LANGUAGES[encoding] + "\n"
    assert (reading.kind, reading.title, reading.marks) == ("text", "", ())


def test_one_broken_byte_does_not_make_utf_8_into_something_else(read):
    reading = read("schön ".encode() * 50 + b"\xff" + "grün".encode())
    assert reading.text.startswith("schön schön")
    assert reading.text.endswith("\ufffdgrün")


def test_a_page_is_read_in_the_encoding_it_declares(read):
    page = '<meta charset="iso-8859-5"><p>Привет</p>'
    assert read(page.encode("iso8859_5"), "a.html").text == "Привет"


def test_line_ends_are_one_and_control_characters_gone(read):
    assert read(b"one\r\ntwo\rthree\ffour\x1b\x07\n" + b"\n" * 300, "a.txt").text.rstrip() == "one\ntwo\nthree\nfour"


# What each format gives


def test_source_code_stays_as_it_is(read):
    code = "def f():\n\treturn 1  # one\n"
    assert read(code, "f.py") == ExtractedText(code, (), "code", "")
    assert read(code, "Makefile").kind == "code"


def test_markdown_stays_as_it_is_and_its_headings_are_places(read):
    text = "# Installation\n\nFirst.\n\n## Docker\n\nRun it.\n\nPodman\n------\n\nThen.\n\n# Use\n\nIt.\n"
    reading = read(text, "guide.md")
    assert reading.text == text
    assert (reading.kind, reading.title) == ("markdown", "Installation")
    assert places(reading) == ["Installation", "Installation › Docker", "Installation › Podman", "Use"]
    assert place_of(reading, "Run it") == "Installation › Docker"


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
def test_what_only_looks_like_a_heading_is_none(text):
    assert headings(text) == []


def test_a_heading_is_told_without_its_marks():
    assert [words for _, _, words in headings("## See [the *docs*](http://x) `now` ##\n")] == ["See the docs now"]


def test_a_web_page_gives_what_a_reader_sees(read):
    page = """<!doctype html><html><head><title>The  page</title><style>p{}</style></head><body><nav>Menu</nav>
    <h1>Start</h1><p>See <a href="x">the <b>link</b></a>,<br>and <span hidden>not</span> this &amp; that.
    <script>var no = "<p>no</p>"</script><h2>More</h2><ul><li>one<li>two</ul><pre>  a\n    b</pre>
    <div style="display: none">no<div>no</div></div><p hidden>no<p>yes</body></html>"""
    reading = read(page, "whatever")
    assert reading.text == ("Start\n\nSee the link,\nand this & that.\n\nMore\n\n- one\n- two\n\n  a\n    b\n\nyes")
    assert (reading.kind, reading.title) == ("html", "The page")
    assert places(reading) == ["Start", "Start › More"]


def test_a_table_of_a_web_page_keeps_the_names_of_its_columns(read):
    rows = "<tr><th>Item<th>Price<tr><td>Paper<td>4<tr><td>Ink<td>9"
    assert read(f"<html><table>{rows}</table>").text == "Item: Paper; Price: 4\nItem: Ink; Price: 9"


def test_a_table_whose_rows_are_named_keeps_these_names(read):
    rows = "<tr><th>Name</th><td>Ann</td></tr><tr><th>City</th><td>Rome</td></tr>"
    assert read(f"<html><table>{rows}</table>").text == "Name: Ann\nCity: Rome"


def test_a_table_that_lays_out_a_page_is_read_cell_by_cell(read):
    inner = "<table><tr><th>A<th>B<tr><td>1<td>2</table>"
    page = f"<html><table><tr><td>Left</td><td><h2>Right</h2><p>Text</p>{inner}</td></tr></table>"
    reading = read(page)
    assert reading.text == "Left\n\nRight\n\nText\n\nA: 1; B: 2"
    assert places(reading) == ["Right"]


def test_a_pdf_is_told_by_its_pages(read):
    reading = read(files.pdf(["One\nline", "", "Three"], title="Annual report"), "a.pdf")
    assert reading.text == "One\nline\n\nThree"
    assert (reading.kind, reading.title) == ("pdf", "Annual report")
    assert places(reading) == ["page 1", "page 3"]
    assert location_label(reading.marks, 0, len(reading.text)) == "pages 1–3"


@pytest.mark.parametrize("title", ["Microsoft Word - draft.doc", "untitled", "scan0001.tif", " - "])
def test_a_title_that_nobody_gave_is_none(read, title):
    assert read(files.pdf(["Text"], title=title)).title == ""


def test_a_pdf_that_is_only_protected_against_changes_is_read(read):
    assert read(files.pdf(["Text"], owner_password="secret")).text == "Text"


def test_a_word_document_gives_headings_lists_tables_and_footnotes(read):
    body = (
        files.word_paragraph("Guide", "H1")
        + files.word_paragraph("Mind this.", more='<w:footnoteReference w:id="7"/>')
        + files.word_paragraph("Setup", "H2")
        + files.word_paragraph("one", "Item")
        + files.word_paragraph("two", "Item")
        + files.word_table([["Item", "Price"], ["Paper", "4"]])
    )
    note = f'<w:footnote w:id="7">{files.word_paragraph("Really.")}</w:footnote>'
    reading = read(files.docx(body, title="The guide", footnotes=note))
    assert reading.text == ("Guide\n\nMind this.[1]\n\nSetup\n\n- one\n- two\n\nItem: Paper; Price: 4\n\n[1] Really.")
    assert (reading.kind, reading.title) == ("docx", "The guide")
    assert places(reading) == ["Guide", "Guide › Setup"]


def test_what_was_deleted_from_a_word_document_or_is_hidden_in_it_is_not_read(read):
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
    assert places(reading) == ["slide 1", "slide 3"]


def test_a_workbook_is_read_by_rows_with_the_names_of_their_columns(read):
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
    assert places(reading) == ["sheet Costs", "sheet Costs, row 1", "sheet Costs, row 14", "sheet Costs, row 15"]
    assert (
        location_label(reading.marks, reading.text.index("Item: Paper"), len(reading.text)) == "sheet Costs, rows 14–15"
    )


def test_two_cells_at_opposite_corners_cost_nothing(read):
    corners = f'{files.sheet_row(1, "near")}<row r="1048576"><c r="XFD1048576"><v>2</v></c></row>'
    reading = read(files.xlsx({"S": corners}), limits=SMALL)
    assert reading.text == "S\nnear\n2"
    assert places(reading)[-1] == "sheet S, row 1048576"


@pytest.mark.parametrize(
    ("table", "name"),
    [
        ('name,city\nAnn,"Rome, Italy"\nBob,Oslo\n', "a.csv"),
        ("name;city\nAnn;Rome, Italy\nBob;Oslo\n", "a.csv"),
        ("sep=;\nname;city\nAnn;Rome, Italy\nBob;Oslo\n", "a.csv"),
        ("name\tcity\nAnn\tRome, Italy\nBob\tOslo\n", "a.tsv"),
    ],
)
def test_a_table_in_text_is_read_whatever_parts_its_fields(read, table, name):
    reading = read(table, name)
    assert reading.text == "name: Ann; city: Rome, Italy\nname: Bob; city: Oslo"
    assert reading.kind == "csv"
    assert places(reading) == (["row 3", "row 4"] if table.startswith("sep") else ["row 2", "row 3"])


def test_a_table_without_names_for_its_columns_gets_none(read):
    assert read("Ann,12\nBob,13\n", "a.csv").text == "Ann; 12\nBob; 13"


def test_years_may_name_columns(read):
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
    assert places(reading) == ["One", "One › Part", "Two"]


def test_an_e_mail_gives_its_headers_its_plain_text_and_the_names_of_its_attachments(read):
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


def test_an_e_mail_in_html_alone_is_read_as_a_page(read):
    mail = "Subject: Hi\nContent-Type: text/html\n\n<p>Hello <b>you</b></p><style>p{}</style>\n"
    assert read(mail, "a.eml").text == "Subject: Hi\n\nHello you"


# Which kind it is


def test_the_content_decides_and_not_the_name(read):
    assert read(files.docx(files.word_paragraph("Text")), "a.pdf").kind == "docx"
    assert read(files.pdf(["Text"]), "a.txt").kind == "pdf"
    assert read(b"an odd line\x00\n" + files.pdf(["Text"])).kind == "pdf"
    assert read("A file that begins with %PDF-1.7 is a PDF.", "a.md").kind == "markdown"
    assert read("only words", "a.pdf").kind == "text"
    assert read("only words", "a.docx").kind == "text"


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html", "a.pdf", "a.png", ""])
def test_a_picture_is_no_text_whatever_its_name(why_not, name):
    said = why_not(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(range(256)), name)
    assert said.startswith("Unsupported file type. Supported: Plain text, Markdown,")


def test_every_format_is_listed_once_and_every_extension_has_one_format():
    assert len({f.kind for f in FORMATS}) == len(FORMATS)
    extensions = [e for f in FORMATS for e in f.extensions]
    assert len(set(extensions)) == len(extensions)


def test_a_name_is_never_a_path(read, tmp_path, monkeypatch):
    (tmp_path / "other.md").write_text("# not this")
    monkeypatch.chdir(tmp_path)
    for name in ("../../etc/passwd", "/etc/passwd", "other.md", "..", "\0", "a" * 10_000, "-c", "x.\n\udc80"):
        assert read("# this", name).text == "# this"


# Where a piece stands


def test_a_piece_before_every_mark_has_the_first_place_in_it():
    marks = (Marker(10, "heading", "Start", 1), Marker(50, "page", "3"))
    assert location_label(marks, 0, 5) == ""
    assert location_label(marks, 0, 20) == "Start"
    assert location_label((), 0, 5) == ""


def test_a_piece_over_several_pages_names_the_first_and_last():
    marks = tuple(Marker(10 * n, "page", str(n + 1)) for n in range(5))
    assert location_label(marks, 12, 20) == "page 2"
    assert location_label(marks, 12, 21) == "pages 2–3"


def test_rows_of_another_sheet_are_not_counted_on():
    marks = (
        Marker(0, "row", "1", within="A"),
        Marker(5, "sheet", "B"),
        Marker(6, "row", "1", within="B"),
        Marker(9, "row", "2", within="B"),
    )
    assert location_label(marks, 0, 12) == "sheet A, row 1"


# What cannot be read says so


def test_an_empty_file_says_so(why_not):
    assert why_not(b"", "a.pdf") == "This file is empty."
    assert why_not(b" \n \n", "a.txt") == "There is no text in this file."


def test_a_scanned_pdf_says_what_to_do(why_not):
    assert why_not(files.pdf(["", ""])) == (
        "This PDF has no text in it, only pictures of pages. Run it through text recognition (OCR) first."
    )


def test_a_password_protected_pdf_says_so(why_not):
    assert why_not(files.pdf(["Text"], password="secret")) == (
        "This PDF is protected by a password. Remove it and upload again."
    )


def test_a_password_protected_office_document_says_so(why_not):
    container = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(70_000)
    assert "old Office format" in why_not(container)
    assert "protected by a password" in why_not(container + "EncryptedPackage".encode("utf-16-le"))


def test_a_copy_protected_book_says_so(why_not):
    assert "copy-protected" in why_not(files.epub({"a.xhtml": "<p>x"}, {}, locked="a.xhtml"))


BINARY = {
    "pdf": lambda: files.pdf(["A page of text"] * 20),
    "docx": lambda: files.docx("".join(files.word_paragraph(f"Paragraph {n}") for n in range(500))),
    "pptx": lambda: files.pptx([files.slide_shape("Text")] * 20),
    "xlsx": lambda: files.xlsx({"S": "".join(files.sheet_row(n, "a", n) for n in range(1, 500))}),
    "epub": lambda: files.epub({f"{n}.xhtml": "<p>Text" for n in range(20)}, {}),
}


@pytest.mark.parametrize("kind", ["docx", "pptx", "xlsx", "epub"])
def test_half_a_file_is_said_to_be_damaged(why_not, kind):
    data = BINARY[kind]()
    assert why_not(data[: len(data) // 2], f"a.{kind}").startswith("This file is damaged: ")


def test_a_pdf_without_any_structure_is_said_to_be_damaged(why_not):
    assert why_not(b"%PDF-1.7\nnothing of the kind") == "This PDF is damaged and cannot be read."


@pytest.mark.parametrize("kind", BINARY)
def test_scrambled_bytes_end_in_a_sentence_or_a_reading(read, kind):
    """Every seventh byte after the first kilobyte is another: nothing but a reading or ExtractionError comes of it."""
    data = bytearray(BINARY[kind]())
    data[1000::7] = b"\x5a" * len(data[1000::7])
    try:
        assert read(bytes(data), limits=SMALL).kind == kind
    except ExtractionError as error:
        assert str(error).startswith("This ")  # noqa: PT017 (both ends are fine)


def test_a_package_that_lacks_its_document_is_said_to_be_damaged(why_not):
    data = files.archive({"[Content_Types].xml": "<Types/>", "word/other.xml": "<x/>"})
    assert why_not(data) == "This file is damaged: it does not say where its document is."


def test_an_email_of_parts_within_parts_is_refused_before_it_is_parsed(why_not):
    parts = "".join(f"--b{n}\nContent-Type: multipart/mixed; boundary=b{n + 1}\n\n" for n in range(1, 600))
    data = f"From: a@b.example\nSubject: Nested\nContent-Type: multipart/mixed; boundary=b1\n\n{parts}"
    assert why_not(data, "a.eml").startswith("This e-mail has more than 500 parts within parts.")


def test_a_package_that_lacks_a_part_says_so_in_words_of_ours(why_not):
    book = "<package><manifest><item id='p' href='gone.xhtml' media-type='application/xhtml+xml'/></manifest>"
    book += "<spine><itemref idref='p'/></spine></package>"
    container = "<container><rootfiles><rootfile full-path='b.opf'/></rootfiles></container>"
    data = files.archive({"mimetype": "application/epub+zip", "META-INF/container.xml": container, "b.opf": book})
    assert why_not(data, "a.epub") == "This file is damaged: a part that it refers to is not in it."


def test_a_text_longer_than_allowed_says_so(why_not):
    said = why_not("long " * 1000, limits=ExtractionLimits(max_characters=1000))
    assert said == "This file has more than 1,000 characters of text. Upload it in parts."


# Files made to do harm


def test_a_pdf_of_ten_thousand_pages_says_how_many_can_be_read(why_not):
    assert "10,000 pages; at most 5,000 can be read" in why_not(files.pdf(["x"] * 10_000))


@pytest.mark.parametrize("kind", ["docx", "xlsx", "epub"])
def test_a_zip_bomb_is_not_unpacked(why_not, kind):
    spaces = " " * 210_000_000
    bombs = {
        "docx": lambda: files.docx(spaces),
        "xlsx": lambda: files.xlsx({"S": spaces}),
        "epub": lambda: files.epub({"a.xhtml": spaces}, {}),
    }
    assert why_not(bombs[kind](), limits=SMALL) == "This file unpacks to more than 200 MB."


def test_a_small_zip_bomb_is_known_by_its_ratio(why_not):
    assert why_not(files.docx(" " * 50_000_000)) == "This file unpacks to more than 200 times its size."


def test_a_zip_bomb_that_lies_about_its_size_is_found_out(why_not):
    honest = files.docx(files.word_paragraph("word " * 200_000))
    with zipfile.ZipFile(io.BytesIO(honest)) as package:
        size = package.getinfo("word/document.xml").file_size
    assert honest.count(size.to_bytes(4, "little")) == 2
    lying = honest.replace(size.to_bytes(4, "little"), (1000).to_bytes(4, "little"))
    assert why_not(lying).startswith("This file is damaged: ")


def test_an_archive_of_very_many_parts_is_not_listed(why_not):
    many = files.archive(
        {"[Content_Types].xml": "", "word/document.xml": ""} | {f"word/{n}": "" for n in range(40_000)}
    )
    assert why_not(many) == "This file holds too many parts to be a document."


@pytest.mark.parametrize("kind", ["docx", "xlsx"])
def test_xml_that_multiplies_itself_is_refused(why_not, kind):
    body = files.word_paragraph("x") + "<w:p><w:r><w:t>&l9;</w:t></w:r></w:p>"
    made = files.docx(body, prolog=files.LAUGHS) if kind == "docx" else files.xlsx({"S": ""}, prolog=files.LAUGHS)
    assert "declares XML entities" in why_not(made, limits=SMALL)


def test_xml_that_reaches_for_another_file_is_refused(why_not, tmp_path):
    (tmp_path / "secret").write_text("secret")
    prolog = f'<!DOCTYPE x [<!ENTITY e SYSTEM "file://{tmp_path}/secret">]>'
    assert "declares XML entities" in why_not(files.docx("<w:p><w:r><w:t>&e;</w:t></w:r></w:p>", prolog=prolog))


@pytest.mark.parametrize("depth", [1000, 50_000])
def test_tags_nested_very_deeply_are_read(read, depth):
    assert read("<html>" + "<div>" * depth + "deep" + "</div>" * depth, limits=SMALL).text == "deep"
    assert read(files.docx("<w:sdt>" * depth + files.word_paragraph("deep") + "</w:sdt>" * depth)).text == "deep"


def test_a_pdf_of_nested_arrays_ends_in_a_sentence(why_not):
    nested = files.pdf_of([b"<</Type/Catalog/Pages 2 0 R/X " + b"[" * 100_000 + b"]" * 100_000 + b">>"])
    assert why_not(nested, limits=SMALL) == "This PDF is damaged and cannot be read."


def test_a_pdf_whose_pages_are_their_own_children_ends_in_a_sentence(why_not):
    circle = [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Count 1/Kids[2 0 R]>>"]
    assert why_not(files.pdf_of(circle), limits=SMALL).startswith("This ")


def test_a_file_that_needs_too_much_memory_says_so(read, why_not):
    rows = "".join(files.sheet_row(n, f"some text of its own {n}", n, n + 1, n + 2) for n in range(1, 60_000))
    said = why_not(
        files.xlsx({"S": rows}, strings=[f"{n} {'x' * 300}" for n in range(100_000)]),
        limits=ExtractionLimits(memory_mb=64),
    )
    assert said == "This file needs more than 64 MB of memory to be read."


def test_a_file_that_takes_too_much_computing_says_so(why_not):
    slow = files.pdf(["words and words\n" * 40] * 3000)
    assert why_not(slow, limits=ExtractionLimits(processor_seconds=1)) == (
        "Reading this file exceeded the CPU limit (1 s)."
    )


def test_a_file_that_takes_too_long_says_so(why_not):
    slow = files.pdf(["words and words\n" * 40] * 3000)
    assert why_not(slow, limits=ExtractionLimits(wall_seconds=0.5)) == "This file took longer than 0.5 seconds to read."


def test_a_process_that_never_answers_is_ended(read, tmp_path, monkeypatch):
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\nexec sleep 600\n")
    silent.chmod(0o755)
    monkeypatch.setattr("memory.documents.extraction.process.sys.executable", str(silent))
    with pytest.raises(ExtractionError, match=r"took longer than 0\.3 seconds"):
        read("text", limits=ExtractionLimits(wall_seconds=0.3))


def test_reading_stops_when_it_is_told_to(read):
    asked = []

    def stop() -> bool:
        asked.append(True)
        return len(asked) > 2

    with pytest.raises(ExtractionCancelledError):
        read(files.pdf(["words and words\n" * 40] * 3000), stop=stop)
    assert len(asked) == 3


def test_no_process_is_left_behind(read, monkeypatch):
    started: list[subprocess.Popen[bytes]] = []

    class Watched(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *args: Any, **given: Any) -> None:
            super().__init__(*args, **given)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Watched)
    with pytest.raises(ExtractionCancelledError):
        read(files.pdf(["words\n" * 40] * 3000), stop=lambda: bool(started))
    with pytest.raises(ProcessLookupError):
        os.kill(started[0].pid, 0)


# The process that reads may do nothing else


def confined(code: str, limits: str = "ExtractionLimits()") -> str:
    """What `code` prints in a process that confined itself."""
    script = (
        "import os, socket, subprocess, sys\n"
        "from memory.documents.extraction.sandbox import confine\nfrom memory.documents.extraction.result import ExtractionLimits\n"
        f"confine({limits})\ntry:\n    {code}\n    print('allowed')\n"
        "except (OSError, MemoryError) as error:\n    print(type(error).__name__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    return done.stdout.strip() or str(done.returncode)


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
def test_it_may_not(code):
    assert confined(code) == "PermissionError"


def test_it_may_import_what_reading_takes():
    assert confined("import pypdf, charset_normalizer, email.policy; open(os.__file__).read(10)") == "allowed"


def test_it_may_not_take_more_memory_than_allowed():
    assert confined("b'x' * 300_000_000", "ExtractionLimits(memory_mb=200)") == "MemoryError"


@pytest.mark.skipif(sys.platform != "linux", reason="namespaces are of Linux")
def test_where_the_system_allows_it_there_is_no_network_even_without_the_hook():
    script = (
        "import errno, socket\nfrom memory.documents.extraction.sandbox import _leave_network\n"
        "left = _leave_network()\ns = socket.socket()\ns.settimeout(5)\n"
        "print(left, errno.errorcode.get(s.connect_ex(('192.0.2.1', 80))))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    left, error = done.stdout.split()
    assert left == "False" or error == errno.errorcode[errno.ENETUNREACH]


def test_it_knows_nothing_of_django_or_the_configuration():
    code = (
        "import sys, memory.documents.extraction.worker, memory.documents.extraction.pdf, memory.documents.extraction.docx, memory.documents.extraction.mail\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('django', 'chromadb', 'cato_web', 'chat', 'numpy')])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_it_is_given_no_secret(monkeypatch, tmp_path):
    monkeypatch.setenv("SECRET_KEY", "secret")
    seen: list[dict[str, str]] = []
    real = subprocess.Popen

    def watch(*args: Any, **given: Any) -> Any:
        seen.append(given["env"])
        return real(*args, **given)

    monkeypatch.setattr("memory.documents.extraction.process.subprocess.Popen", watch)
    (tmp_path / "a").write_text("text")
    read_file(tmp_path / "a", name="a")
    assert set(seen[0]) == {"PYTHONPATH", "PYTHONUTF8"}


# What comes back is not believed


@pytest.mark.parametrize(
    "said",
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
    ],
)
def test_an_answer_that_makes_no_sense_is_refused(said):
    with pytest.raises(ExtractionError, match="makes no sense"):
        ResultParser(ExtractionLimits(max_characters=1000)).take(said)


def test_half_an_answer_is_no_reading():
    answer = ResultParser(ExtractionLimits())
    answer.take(encode_line({"kind": "text"}) + encode_line("some text") + json.dumps({"title": ""}).encode())
    assert answer.reading() is None
    answer.take(b"\n")
    assert answer.reading() == ExtractedText("some text", (), "text", "")


def test_comments_without_end_before_a_page_do_not_hold_up_the_upload():
    assert formats.detect_format(io.BytesIO(b"<!---->" * 8000 + b"<p>"), "a.txt") == "text"


def test_a_kind_is_told_without_a_process_for_an_open_file():
    file = io.BytesIO(files.pdf(["Text"]))
    assert formats.detect_format(file, "a.txt") == "pdf"
    assert file.tell() == 0
