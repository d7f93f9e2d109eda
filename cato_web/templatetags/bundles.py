"""Links to a bundle, or to its parts if the assets were not collected (commands and tests)."""

from __future__ import annotations

from collections.abc import Sequence

from django import template
from django.conf import settings
from django.templatetags.static import static
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from cato_web.assets import BUNDLES

register = template.Library()


@register.simple_tag
def styles(bundle: str) -> SafeString:
    """Return the link elements of a bundle."""
    return format_html_join("\n  ", '<link rel="stylesheet" href="{}">', ((static(part),) for part in _parts(bundle)))


@register.simple_tag
def scripts(bundle: str) -> SafeString:
    """Return the script elements of a bundle."""
    return format_html_join("\n  ", '<script src="{}" defer></script>', ((static(part),) for part in _parts(bundle)))


def _parts(bundle: str) -> Sequence[str]:
    return [bundle] if settings.IS_GATHERED else BUNDLES[bundle]
