"""Style sheets and scripts are served in a few bundles."""

from __future__ import annotations

import gzip
import re
from collections import Counter
from pathlib import Path

import httpx

from cato_web.assets import BUNDLES

STATIC = Path(__file__).parents[1] / "static"
# Files outside the bundles: loaded first on every page, on a few pages or on demand only, for paper, or with their own
# settings.
UNBUNDLED = {
    "css/print.css",
    "js/boot.js", "js/notifications.js", "js/notification-settings.js", "js/bulk-select.js", "js/table-controls.js",
    "js/kept-page.js", "js/key-hints.js", "js/saved-page.js", "js/source-sheet.js", "js/single-keys.js",
    "js/passkeys.js", "js/recovery-codes.js", "js/own-time-zone.js",
    # Loaded where an administrator has set a model, or an address, for them.
    "js/recorder.js", "js/dictation.js", "js/dictation-keys.js", "js/read-aloud.js",
    "css/voice.css", "css/web-search.css",
}  # fmt: skip


def test_each_style_sheet_and_script_is_in_one_bundle():
    files = {f"{path.parent.name}/{path.name}" for pattern in ("css/*.css", "js/*.js") for path in STATIC.glob(pattern)}
    bundled = Counter(part for parts in BUNDLES.values() for part in parts)

    assert set(bundled) | UNBUNDLED == files
    assert set(bundled.values()) == {1}


def test_a_page_links_bundles_with_hashed_names(cato):
    page = httpx.get(f"{cato.url}/sign-in").text
    sheet, _print, _pages = re.findall(r'<link rel="stylesheet" href="([^"]+)"', page)
    assert re.fullmatch(r"/static/css/cato\.[0-9a-f]{12}\.css", sheet)

    answer = httpx.get(f"{cato.url}{sheet}")
    assert "immutable" in answer.headers["Cache-Control"]
    assert answer.headers["Content-Encoding"] in ("gzip", "br", "zstd")
    for part in BUNDLES["css/cato.css"]:
        rule = next(line for line in (STATIC / part).read_text().splitlines() if line.strip().endswith("{"))
        assert rule in answer.text


def test_the_chat_bundles_stay_below_their_size_limit(cato):
    # Threads do not load these, or only after an @.
    names = BUNDLES.keys() - {"js/search.js", "js/knowledge.js", "js/documents.js", "css/pages.css", "js/mentions.js"}
    total = sum(len(gzip.compress(b"".join((STATIC / part).read_bytes() for part in BUNDLES[n]))) for n in names)

    assert total < 40_000
