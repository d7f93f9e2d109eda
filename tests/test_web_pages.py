"""Pages that a search has found: read only from public addresses and allowed hosts, within limits, as robots.txt says."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator

import httpx2
import pytest
from django.core.cache import cache

from chat.errors import ToolServerError, WebSearchError
from chat.tools.guarded_http import new_client
from chat.web_search import pages, robots
from chat.web_search.pages import read_pages
from chat.web_search.searxng import find_pages, is_web_address
from tests import web_server
from tests.web_server import Page, SearXNG, Site


@pytest.fixture
def site() -> Iterator[Site]:
    with web_server.running() as running:
        yield running


@pytest.fixture
def inside() -> Iterator[Site]:
    """Return a server inside the network that no configuration names."""
    with web_server.running() as running:
        running.html("/secret", "The secret of the network.")
        yield running


@pytest.fixture
def searxng() -> Iterator[SearXNG]:
    with web_server.running(SearXNG) as running:
        yield running


@pytest.fixture(autouse=True)
def configured(settings, site, searxng) -> None:
    """Allow the pages of the one site, which is on loopback like everything here."""
    conf = settings.CATO.web_search.model_copy(update={"searxng_url": searxng.url("/"), "internal_hosts": [site.host]})
    settings.CATO = settings.CATO.model_copy(update={"web_search": conf})
    cache.clear()


def read(address: str) -> str:
    return asyncio.run(read_pages([address])).get(address, "")


def test_the_visible_text_of_a_page_is_read(site):
    site.pages["/page"] = Page("<body><p>Seen.</p><script>alert()</script><p hidden>Unseen.</p></body>")
    site.pages["/text"] = Page("Plain text.", content_type="text/plain")
    texts = asyncio.run(read_pages([site.url("/page"), site.url("/text")]))
    assert texts == {site.url("/page"): "Seen.", site.url("/text"): "Plain text."}
    assert site.agents == {"Cato"}


@pytest.mark.parametrize(
    ("text", "charset"),
    [
        ("Dün toplantıyı cuma gününe ertelemeye karar verdik.", "iso-8859-9"),
        ("Vakar nusprendėme susitikimą nukelti į penktadienį.", "windows-1257"),
        ("Вчера мы решили перенести встречу на пятницу.", "iso-8859-5"),
        ("昨日、会議を金曜日に延期することにしました。", "shift_jis"),
    ],
)
@pytest.mark.parametrize("kind", ["text/html", "text/plain"])
def test_a_page_is_read_in_the_encoding_that_its_header_names(site, text, charset, kind):
    site.pages["/page"] = Page(text.encode(charset), content_type=f"{kind}; charset={charset}")
    assert read(site.url("/page")) == text


@pytest.mark.parametrize("charset", ["utf-8", "unknown", "hex", "us-ascii"])
def test_a_header_that_names_a_wrong_or_unknown_encoding_does_not_matter(site, charset):
    site.pages["/utf8"] = Page("Größe", content_type=f"text/html; charset={charset}")
    assert read(site.url("/utf8")) == "Größe"
    german = "<p>Gestern haben wir beschlossen, die Größe der Präsentation für Müller zu ändern."
    site.pages["/legacy"] = Page(german.encode("latin-1"), content_type=f"text/html; charset={charset}")
    assert "beschlossen" in read(site.url("/legacy"))


@pytest.mark.parametrize("where", ["127.0.0.1", "[::1]", "localhost", "169.254.169.254", "10.0.0.1", "0x7f000001"])
@pytest.mark.parametrize("with_port", [True, False])
def test_an_address_inside_the_network_is_not_read(site, inside, where, with_port):
    port = f":{inside.host.rpartition(':')[2]}" if with_port else ""
    address = f"http://{where}{port}/secret"
    site.pages["/away"] = Page(status=302, location=address)
    assert read(address) == ""
    assert read(site.url("/away")) == ""
    assert site.requests[-1] == "/away"
    assert inside.requests == []


def test_a_host_that_the_configuration_names_is_read(site, inside, settings):
    conf = settings.CATO.web_search.model_copy(update={"internal_hosts": [site.host, inside.host]})
    settings.CATO = settings.CATO.model_copy(update={"web_search": conf})
    site.pages["/away"] = Page(status=302, location=inside.url("/secret"))
    assert read(site.url("/away")) == "The secret of the network."


@pytest.mark.parametrize(
    ("address", "reason"),
    [("http://localhost/", "is inside the network"), ("http://93.184.216.34:8080/", "is not at the usual port")],
)
def test_names_are_resolved_before_a_connection_and_only_usual_ports_are_used(address, reason):
    async def get() -> None:
        async with new_client("", timeout=5, internal_hosts=[], only_usual_ports=True) as client:
            await client.get(address)

    with pytest.raises(ToolServerError, match=reason):
        asyncio.run(get())


def test_a_name_with_any_address_inside_the_network_is_not_read(inside, monkeypatch):
    def resolve(host: str, port: int, *_arguments: object, **_options: object) -> list[object]:
        addresses = ("93.184.216.34", "127.0.0.1") if host == "two.example" else (host,)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    async def get() -> None:
        async with new_client("", timeout=5, internal_hosts=[]) as client:
            await client.get("http://two.example/secret")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(ToolServerError, match="is inside the network"):
        asyncio.run(get())


def test_a_page_at_another_port_is_not_read_even_at_a_public_address(inside, monkeypatch):
    async def resolve(host: str, port: int) -> str:
        return "127.0.0.1"

    monkeypatch.setattr("chat.tools.guarded_http._public_address", resolve)
    assert read(f"http://public.example:{inside.host.rpartition(':')[2]}/secret") == ""
    assert inside.requests == []


def test_names_at_one_address_do_not_share_a_connection(site, monkeypatch):
    """The certificate of a connection was checked for one name."""

    async def resolve(host: str, port: int) -> str:
        return "127.0.0.1"

    async def get() -> None:
        async with new_client("", timeout=5, internal_hosts=[]) as client:
            for name in ("one.example", "one.example", "two.example"):
                await client.get(f"http://{name}:{site.host.rpartition(':')[2]}/")

    monkeypatch.setattr("chat.tools.guarded_http._public_address", resolve)
    asyncio.run(get())
    first, again, other = site.connections
    assert first == again != other


def test_three_redirects_are_followed_and_no_more(site):
    site.html("/0", "The end.")
    for number in range(1, 5):
        site.pages[f"/{number}"] = Page(status=301, location=f"/{number - 1}")
    assert read(site.url("/3")) == "The end."
    assert read(site.url("/4")) == ""


@pytest.mark.parametrize(
    "page",
    [
        Page("<p>Not HTML.</p>", content_type="application/pdf"),
        Page("<p>Not found.</p>", status=404),
        Page(b"<p>Text.<!--" + b"x" * 10_000 + b"-->", parts=101),
        Page("", content_type="text/html"),
    ],
    ids=["type", "status", "size", "empty"],
)
def test_a_page_of_another_kind_or_size_is_not_read(site, page):
    site.pages["/page"] = page
    assert read(site.url("/page")) == ""


def test_a_page_just_below_the_limit_is_read(site):
    site.pages["/page"] = Page(b"<p>Text.<!--" + b"x" * 10_000 + b"-->", parts=99)
    assert read(site.url("/page"))


def test_slow_pages_do_not_delay_the_others(site, monkeypatch):
    monkeypatch.setattr(pages, "_PAGE_TIMEOUT", 1.0)
    monkeypatch.setattr(pages, "_TIMEOUT", 12.0)
    site.html("/fast", "Fast.")
    site.pages["/late"] = Page("<p>Late.</p>", delay=30)
    # Each part comes in time, but not all of them.
    site.pages["/drops"] = Page("<p>Drop.</p>", delay=0.3, parts=100)
    began_at = time.monotonic()
    texts = asyncio.run(read_pages([site.url(path) for path in ("/late", "/drops", "/fast")]))
    assert texts == {site.url("/fast"): "Fast."}
    assert time.monotonic() - began_at < 10


@pytest.mark.parametrize(
    ("answer", "is_read"),
    [
        (Page(status=404), True),
        (Page("User-agent: *\nDisallow: /private", content_type="text/plain"), True),
        (Page("User-agent: *\nDisallow: /", content_type="text/plain"), False),
        (Page("\ufeffUser-agent: *\nDisallow: /", content_type="text/plain"), False),
        (Page("User-agent: Cato\nDisallow: /page\n\nUser-agent: *\nAllow: /", content_type="text/plain"), False),
        (Page("User-agent: Cato\nAllow: /\n\nUser-agent: *\nDisallow: /", content_type="text/plain"), True),
        (Page(status=500), False),
        (Page(status=301, location="http://127.0.0.1:9/robots.txt"), False),
    ],
)
def test_robots_txt_is_respected(site, answer, is_read):
    site.html("/page", "Text.")
    site.pages["/robots.txt"] = answer
    assert bool(read(site.url("/page"))) is is_read
    assert ("/page" in site.requests) is is_read


@pytest.mark.parametrize(
    ("rules", "path", "is_allowed"),
    [
        ("User-agent: *\nAllow: /\nDisallow: /private", "/private/a", False),
        ("User-agent: *\nDisallow: /\nAllow: /public", "/public/a", True),
        ("User-agent: *\nDisallow: /a\nAllow: /a", "/a", True),
        ("User-agent: *\nDisallow: /*/private", "/en/private", False),
        ("User-agent: *\nDisallow: /*/private", "/private", True),
        ("User-agent: *\nDisallow: /*?", "/search?q=x", False),
        ("User-agent: *\nDisallow: /*.php$", "/a.php", False),
        ("User-agent: *\nDisallow: /*.php$", "/a.php?b", True),
        ("User-agent: *\nDisallow: /*.php$", "/a.php/b.php", False),
        ("User-agent: *\nDisallow: /a$", "/a", False),
        ("User-agent: *\nDisallow: /a$", "/ab", True),
        ("User-agent: *\nDisallow:", "/a", True),
        ("User-agent: *\n\nDisallow: / # all", "/a", False),
        ("User-agent: *\nDisallow: /a\n\nUser-agent: *\nDisallow: /b", "/b", False),
        ("User-agent: other\nUser-agent: cato\nDisallow: /\nUser-agent: *\nAllow: /", "/a", False),
        ("User-agent: *\nDisallow: /größe", "/gr%C3%B6%C3%9Fe", False),
    ],
)
def test_the_longest_rule_for_cato_that_matches_decides(site, rules, path, is_allowed):
    site.pages["/robots.txt"] = Page(rules, content_type="text/plain")
    read(site.url(path))
    assert (path in site.requests) is is_allowed


def test_robots_txt_also_applies_to_the_target_of_a_redirect(site):
    site.pages["/robots.txt"] = Page("User-agent: *\nDisallow: /target", content_type="text/plain")
    site.html("/target", "Text.")
    site.pages["/page"] = Page(status=302, location="/target")
    assert read(site.url("/page")) == ""
    assert "/target" not in site.requests


def test_robots_txt_is_read_once_a_day(site, monkeypatch):
    site.html("/page", "Text.")
    for _time in range(2):
        assert read(site.url("/page")) == "Text."
    assert site.requests.count("/robots.txt") == 1
    cache.clear()
    monkeypatch.setattr(robots, "_KEPT_SECONDS", 0)
    for _time in range(2):
        read(site.url("/page"))
    assert site.requests.count("/robots.txt") == 3


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "ftp://example.org/", "//example.org/",
        "http://name:word@example.org/", "http://", "http://example.org:99999/", "https://[", "", "http://a/" + "x" * 2000,
    ],
)  # fmt: skip
def test_only_addresses_of_the_web_are_results(searxng, address):
    searxng.find(address, "https://example.org/")
    assert not is_web_address(address)
    assert [source.address for source in asyncio.run(find_pages("x"))] == ["https://example.org/"]


def test_the_first_five_results_are_taken_each_once(searxng):
    searxng.find(*(f"https://example.org/{number}" for number in (1, 1, 2, 3, 4, 5, 6)), date="2026-03-01T12:00:00")
    found = asyncio.run(find_pages("buoys & <b>ships</b>"))
    assert [source.address[-1] for source in found] == ["1", "2", "3", "4", "5"]
    assert (found[0].title, found[0].text) == ("Result 1", "Snippet of result 1.")
    assert found[0].published == "2026-03-01T12:00:00+00:00"
    assert searxng.queries == ["buoys & <b>ships</b>"]


def test_results_that_are_not_as_expected_are_left_out(searxng):
    searxng.results = [None, 3, {}, {"url": 5}, {"url": "https://example.org/", "title": None, "publishedDate": "soon"}]
    (found,) = asyncio.run(find_pages("x"))
    assert (found.title, found.text, found.published) == ("https://example.org/", "", "")


@pytest.mark.parametrize(
    ("status", "reason"), [(403, "search.formats"), (429, "limits its requests"), (500, "status 500"), (302, "302")]
)
def test_a_refusal_says_what_to_do(searxng, status, reason):
    searxng.status = status
    with pytest.raises(WebSearchError, match=reason):
        asyncio.run(find_pages("x"))


def test_an_answer_that_is_not_json_of_a_searxng_is_an_error(searxng, site, settings):
    for body in ("<html>", "[]", '{"results": 3}', "[" * 100_000):
        site.pages["/search"] = Page(body)
        conf = settings.CATO.web_search.model_copy(update={"searxng_url": site.url()})
        settings.CATO = settings.CATO.model_copy(update={"web_search": conf})
        with pytest.raises(WebSearchError, match="cannot be read"):
            asyncio.run(find_pages("x"))


def test_a_searxng_that_is_away_or_slow_is_an_error(searxng, settings, monkeypatch):
    monkeypatch.setattr("chat.web_search.searxng.TIMEOUT", 0.5)
    searxng.delay = 3
    with pytest.raises(WebSearchError, match="did not answer in time"):
        asyncio.run(find_pages("x"))
    conf = settings.CATO.web_search.model_copy(update={"searxng_url": "http://127.0.0.1:9"})
    settings.CATO = settings.CATO.model_copy(update={"web_search": conf})
    with pytest.raises(WebSearchError, match="cannot be reached"):
        asyncio.run(find_pages("x"))


def test_the_connection_to_searxng_leads_to_its_host_alone(searxng, inside):
    """Another host inside the network is not reached through the exception for SearXNG."""

    async def get(url: str) -> int:
        async with new_client("", timeout=5, internal_hosts=[searxng.host]) as client:
            return (await client.get(url)).status_code

    assert asyncio.run(get(searxng.url("/search?q=x&format=json"))) == httpx2.codes.OK
    with pytest.raises(ToolServerError):
        asyncio.run(get(inside.url("/secret")))
    assert inside.requests == []
