"""Which browser somebody uses, in words: as much as one needs to know one's own."""

from __future__ import annotations

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

# The first that a user agent contains; many of them claim to be those further down as well.
_BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS = (
    ("iPhone", gettext_noop("an iPhone")),
    ("iPad", gettext_noop("an iPad")),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("CrOS", "ChromeOS"),
    ("Mac OS X", gettext_noop("a Mac")),
    ("Linux", "Linux"),
)


def describe_user_agent(user_agent: str) -> str:
    """Such as "Firefox on Windows"; what is not known is not guessed."""
    browser = _first(_BROWSERS, user_agent)
    system = _first(_SYSTEMS, user_agent)
    if not browser:
        browser = _("Another program")
    return _("%(browser)s on %(system)s") % {"browser": browser, "system": _(system)} if system else browser


def _first(known: tuple[tuple[str, str], ...], user_agent: str) -> str:
    return next((words for mark, words in known if mark in user_agent), "")
