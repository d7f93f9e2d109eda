"""Long texts are split into meaningful chunks without losing anything."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from memory.api import add_note
from memory.documents.chunking import STRATEGIES, Span, lengths, split
from memory.documents.chunking.spans import ChunkSizes
from memory.documents.chunking.units import units
from memory.errors import InvalidInputError
from memory.spaces import access

# Runtime is not tested here.
without_deadline = hypothesis_settings(deadline=None)
STRUCTURED = ("semantic", "hybrid")
# Each is one visible character and does not join its neighbours.
CLUSTERS = [
    "a", "Z", "7", "漢", "e\u0301", "o\u0323\u0302", "\U0001f44d\U0001f3fd", "❤\ufe0f", "1\ufe0f\u20e3",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea", "\u1112\u1161\u11ab", "각", " \u0301",
    "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f", "\r\n",
]  # fmt: skip
MARKDOWN = [
    "# Title", "## Part", "Long\n====", "- one", "1. two", "  more", "```", "~~~", "| a | b |", "|---|---|", "x = 1",
    "A sentence. Another! 一つ。二つ？", "Dr. No, z. B. hier.", "> said", "", "", "   ", "#", "---", "\t",
]  # fmt: skip


def cut(text: str, strategy: str = "semantic", **sizes: Any) -> list[Span]:
    usual = {"chunk_size": 600, "chunk_overlap": 0, "max_chunk_size": 1500, "preserve_sentence_boundaries": True}
    return list(split(text, strategy=strategy, **(usual | sizes)))


def chunks(text: str, strategy: str = "semantic", **sizes: Any) -> list[str]:
    return [text[span.start : span.end] for span in cut(text, strategy, **sizes)]


@st.composite
def sizes(draw: st.DrawFn, smallest: int = 1) -> dict[str, Any]:
    size = draw(st.integers(smallest, 60))
    return {
        "chunk_size": size,
        "chunk_overlap": draw(st.integers(0, size - 1)),
        "max_chunk_size": size + draw(st.integers(0, 60)),
        "preserve_sentence_boundaries": draw(st.booleans()),
    }


spaces_and_marks = st.sampled_from([" ", "\n", "\n\n", ". ", "。", "! ", " " * 20])
clusters = st.lists(st.sampled_from(CLUSTERS) | spaces_and_marks, max_size=120)
markdown = st.lists(st.sampled_from(MARKDOWN), max_size=40).map("\n".join)
texts = st.text(max_size=300) | markdown | clusters.map("".join)


def check(text: str, strategy: str, size_options: dict[str, Any]) -> None:
    spans = cut(text, strategy, **size_options)
    max_length = size_options["max_chunk_size"] if strategy == "semantic" else size_options["chunk_size"]
    overlap = 0 if strategy == "truncate" else size_options["chunk_overlap"]
    assert all(0 < end - start <= max_length and text[start:end].strip() for start, end in spans)
    assert all(a.start < b.start and a.end < b.end and a.end - b.start <= overlap for a, b in pairwise(spans))
    if strategy != "truncate":
        bounds = [0, *(edge for span in spans for edge in span), len(text)]
        assert not "".join(text[a:b] for a, b in zip(bounds[::2], bounds[1::2], strict=True) if a < b).strip()
    assert spans == cut(text, strategy, **size_options)


@pytest.mark.parametrize("strategy", STRATEGIES)
@without_deadline
@given(text=texts, size_options=sizes())
@example(
    text=" \u0301",
    size_options={"chunk_size": 1, "chunk_overlap": 0, "max_chunk_size": 1, "preserve_sentence_boundaries": True},
)
def test_chunks_contain_all_text_and_respect_the_size_limits(strategy, text, size_options):
    check(text, strategy, size_options)


@pytest.mark.parametrize("strategy", STRATEGIES)
@without_deadline
@given(parts=clusters, size_options=sizes(smallest=max(map(len, CLUSTERS))))
def test_a_grapheme_is_never_split(strategy, parts, size_options):
    borders, at = {0}, 0
    for part in parts:
        # White space and punctuation may be split anywhere, clusters may not.
        borders |= {at + len(part)} if part in CLUSTERS else set(range(at, at + len(part) + 1))
        at += len(part)
    for start, end in cut("".join(parts), strategy, **size_options):
        assert {start, end} <= borders


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("cluster", [c for c in CLUSTERS if c.strip()])
def test_a_run_of_one_character_is_split_between_repetitions(strategy, cluster):
    text = cluster * 40
    for size in range(len(cluster), 4 * len(cluster) + 1):
        for overlap in (0, size - 1):
            for span in cut(text, strategy, chunk_size=size, chunk_overlap=overlap, max_chunk_size=size):
                assert span.start % len(cluster) == span.end % len(cluster) == 0


def test_a_grapheme_that_does_not_fit_below_its_heading_stays_whole():
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    assert chunks(f"# T\n{family}", "hybrid", chunk_size=8, max_chunk_size=8) == ["# T", family]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_grapheme_longer_than_the_maximum_is_split(strategy):
    text = "a" + "\u0301" * 100
    found = cut(text, strategy, chunk_size=10, max_chunk_size=20)
    assert max(end - start for start, end in found) == (20 if strategy == "semantic" else 10)


# Everything except a fence, which turns headings into code, may surround a heading.
@pytest.mark.parametrize("strategy", STRUCTURED)
@without_deadline
@given(
    parts=st.lists(st.sampled_from(["# H", "## Hh", "Word word word.", "- item", "| a |", "x" * 70]), max_size=30),
    size_options=sizes(smallest=20),
)
def test_no_chunk_ends_with_a_heading(strategy, parts, size_options):
    # Text between headings, since a run of headings may be longer than a chunk.
    lines = [part for a, b in pairwise([*parts, "# H"]) for part in ([a, "Text."] if a[0] == b[0] == "#" else [a])]
    text = "\n\n".join(lines)
    found = cut(text, strategy, **size_options)
    for span in found:
        if text[span.end :].strip():
            assert not text[span.start : span.end].rpartition("\n")[2].startswith("#")


@without_deadline
@given(titles=st.lists(st.integers(1, 6), min_size=1, max_size=8), size_options=sizes(smallest=30))
def test_a_heading_starts_a_chunk(titles, size_options):
    text = "\n\n".join(f"{'#' * level} Title\n\nSome text. And more of it." for level in titles)
    starts = {span.start for span in cut(text, **size_options)}
    assert {at for at in range(len(text)) if text[at] == "#" and (at == 0 or text[at - 1] == "\n")} <= starts


def test_consecutive_headings_stay_with_the_following_text():
    assert chunks("# A\n\n## B\n\n" + "Word. " * 20, chunk_size=40)[0].startswith("# A\n\n## B\n\nWord.")


def test_a_heading_stays_with_the_start_of_a_sentence_longer_than_a_chunk():
    first = chunks("# Title\n\n" + "word " * 100, "hybrid", chunk_size=50, max_chunk_size=50)[0]
    assert first.startswith("# Title\n\nword")
    assert 40 < len(first) <= 50


def test_a_heading_inside_a_fence_is_code():
    text = "Words here.\n\n```\n# not a title\nx = 1\n```\n\nMore words."
    assert chunks(text, chunk_size=60) == [text]


@pytest.mark.parametrize("strategy", STRUCTURED)
@pytest.mark.parametrize(
    "block",
    [
        "```python\nx = 1\n\ny = 2. z\n```",
        "| a | b |\n|---|---|\n| 1. One | 2 |",
        "a | b\n--- | ---\n1. x | 2",
        "- One. Two.\n- Three\n  four\n\n  five\n- Six",
    ],
    ids=["fence", "table", "table without edges", "list"],
)
def test_a_block_that_fits_is_not_split(strategy, block):
    text = f"Some words before it, which take room.\n\n{block}\n\nAnd some words after it, which take room."
    assert any(block in chunk for chunk in chunks(text, strategy, chunk_size=50, max_chunk_size=50))


@pytest.mark.parametrize("strategy", STRUCTURED)
@pytest.mark.parametrize(
    ("head", "row"),
    [("```\n", "call(1). then(2)"), ("| h | i |\n|---|---|\n", "| One. Two | x |"), ("", "- One. Two. Three")],
    ids=["fence", "table", "list"],
)
def test_a_long_block_is_split_between_its_lines(strategy, head, row):
    text = head + "\n".join([row] * 20)
    for chunk in chunks(text, strategy, chunk_size=60):
        assert set(chunk.splitlines()) <= {row, *head.splitlines()}


def test_of_many_short_lines_a_chunk_is_not_measured_again_for_each(monkeypatch):
    wide, measured = lengths._WIDE, 0

    def findall(text: str, start: int, end: int) -> list[str]:
        nonlocal measured
        measured += end - start
        return wide.findall(text, start, end)

    monkeypatch.setattr(lengths, "_WIDE", SimpleNamespace(findall=findall, search=wide.search, match=wide.match))
    text = "- ab\n" * 2000
    assert chunks(text)[0] == "\n".join(["- ab"] * 120)
    assert measured < 10 * len(text)


def test_a_long_list_without_marks_is_split_between_its_lines_in_few_steps():
    text = "one 漢\n" * 1000 + "| a | b |\n- item\n"
    assert {line for chunk in chunks(text) for line in chunk.splitlines()} == {"one 漢", "| a | b |", "- item"}
    assert len(list(units(text, ChunkSizes(600, 0, 1500, at_sentences=True)))) < 100


def test_fitting_paragraphs_stay_whole_and_longer_ones_are_split_at_sentences():
    short, long = "First one. Second one.", "Here is one. " * 6
    assert chunks(f"{short}\n\n{short}\n\n{long}", chunk_size=50) == [
        f"{short}\n\n{short}",
        "Here is one. Here is one. Here is one.",
        "Here is one. Here is one. Here is one.",
    ]


def test_only_semantic_chunking_keeps_a_long_sentence_whole():
    sentence = "Word " * 20 + "end."
    assert chunks(f"Short. {sentence} Short.", chunk_size=50, max_chunk_size=200) == ["Short.", sentence, "Short."]
    assert max(map(len, chunks(sentence, "hybrid", chunk_size=50, max_chunk_size=200))) <= 50
    assert max(map(len, chunks(sentence, chunk_size=50, max_chunk_size=80))) <= 50


def test_hybrid_merges_short_sections():
    text = "# A\n\nOne.\n\n# B\n\nTwo."
    assert chunks(text, chunk_size=40) == ["# A\n\nOne.", "# B\n\nTwo."]
    assert chunks(text, "hybrid", chunk_size=40) == [text]


def test_overlap_is_whole_sentences():
    text = "One is here. Two is here. Three is here. Four is here."
    assert chunks(text, chunk_size=30, chunk_overlap=16) == [
        "One is here. Two is here.",
        "Two is here. Three is here.",
        "Three is here. Four is here.",
    ]
    assert chunks(text, chunk_size=30, chunk_overlap=12)[1] == "Two is here. Three is here."
    assert chunks(text, chunk_size=30, chunk_overlap=11)[1] == "Three is here. Four is here."


def test_fixed_size_is_equal_pieces_or_ends_at_sentences():
    text = "One is here. Two is here. Three is here."
    assert chunks(text, "fixed_size", chunk_size=20, preserve_sentence_boundaries=False) == [
        "One is here. Two is",
        "here. Three is here.",
    ]
    assert chunks(text, "fixed_size", chunk_size=30) == ["One is here. Two is here.", "Three is here."]
    shared = chunks("abcdefghij", "fixed_size", chunk_size=4, chunk_overlap=1, preserve_sentence_boundaries=False)
    assert shared == ["abcd", "defg", "ghij"]


def test_truncate_keeps_only_the_beginning():
    assert chunks("\n\n  abcdef", "truncate", chunk_size=3) == ["abc"]
    assert chunks(" \n ", "truncate") == []


@pytest.mark.parametrize(
    "sentences",
    [
        ["He met Dr. Who at noon.", "They left."],
        ["It cost 3.14 euros, e.g. here!", "“Really?”", "Yes."],
        ["Tiere, z. B. Hunde, sind am 3. Mai da.", "Vgl. bzw. siehe oben.", "Ende."],
        ["“Stop!” he said.", "Then he left…", "So."],
    ],
)
def test_sentences_end_at_sentence_boundaries(sentences):
    max_length = max(map(len, sentences))
    assert chunks(" ".join(sentences), chunk_size=1, max_chunk_size=max_length) == sentences


def test_chinese_and_japanese_sentences_end_without_a_space():
    assert chunks("今日は雨。「本当？」はい！终于。", chunk_size=1, max_chunk_size=20) == [
        "今日は雨。",
        "「本当？」",
        "はい！",
        "终于。",
    ]


@pytest.mark.parametrize("strategy", STRATEGIES)
@without_deadline
@given(
    parts=st.lists(st.sampled_from(["漢", "字。", "かな", "한국어 ", "Word ", "a. ", "\n\n", "# 题\n"]), max_size=200)
)
def test_a_chinese_japanese_or_korean_character_counts_as_more_than_two(strategy, parts):
    text = "".join(parts)
    for start, end in cut(text, strategy, chunk_size=50, chunk_overlap=20, max_chunk_size=80):
        wide = sum(char > "\u2e80" for char in text[start:end])
        assert end - start + 1.25 * wide <= (80 if strategy == "semantic" else 50)


def test_wide_text_fills_its_chunks_and_keeps_the_overlap():
    assert chunks("漢" * 100, "fixed_size", chunk_size=90, chunk_overlap=9) == ["漢" * 40, "漢" * 40, "漢" * 28]
    assert chunks("漢" * 40 + " " + "word " * 30, "hybrid", chunk_size=90) == [
        "漢" * 40,
        *["word " * 17 + "word"],
        "word " * 11 + "word",
    ]


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"strategy": "lines"}, "allowed are truncate, fixed_size, semantic, hybrid"),
        ({"chunk_size": 0}, "chunk_size should be at least 1"),
        ({"chunk_overlap": 600}, r"below chunk_size \(600\)"),
        ({"chunk_overlap": -1}, "at least 0"),
        ({"max_chunk_size": 599}, r"not be below chunk_size \(600\)"),
    ],
)
def test_inconsistent_sizes_are_refused(wrong, expected):
    with pytest.raises(InvalidInputError, match=expected):
        cut("text", **wrong)


def test_a_note_is_split_as_configured(person, settings):
    sizes = {"chunking_strategy": "fixed_size", "chunk_size": 50, "chunk_overlap": 10, "max_chunk_size": 50}
    store = settings.CATO.vector_store.model_copy(update=sizes | {"preserve_sentence_boundaries": False})
    settings.CATO = settings.CATO.model_copy(update={"vector_store": store})
    text = "".join(map(str, range(100)))
    stored = add_note(text, space=access.personal_space(person.pk), owner_id=person.pk, source="cli")
    assert [exchange.user_message for exchange in stored] == [text[at : at + 50] for at in range(0, len(text) - 10, 40)]


def test_two_megabytes_are_split_whatever_they_contain():
    """Only the test timeout limits this: quadratic behaviour would take hours."""
    size = 2_000_000
    for text in [
        "The fox jumps over the dog. " * 15 + "\n\n",
        "狐狸跳过了懒狗。" * 15 + "\n\n",
        "x",
        "漢",
        "\n",
        "#",
    ]:
        content = text * (size // len(text))
        assert (cut(content) != []) == bool(content.strip())
    assert cut("```\n" + "some = code(1) + code(2)\n" * (size // 25))
