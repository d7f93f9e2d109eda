"""Links to a bundle, or to its parts if the assets were not collected (commands and tests)."""

from __future__ import annotations

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
    return format_html_join(
        "\n  ", '<link rel="stylesheet" href="{}">', ((address,) for address in addresses_of(bundle))
    )


@register.simple_tag
def scripts(bundle: str) -> SafeString:
    """Return the script elements of a bundle."""
    return format_html_join(
        "\n  ", '<script src="{}" defer></script>', ((address,) for address in addresses_of(bundle))
    )


@register.simple_tag
def script_addresses(bundle: str) -> str:
    """Return the addresses of a bundle's scripts, with spaces between them, for a script that loads them."""
    return " ".join(addresses_of(bundle))


def addresses_of(bundle: str) -> list[str]:
    """Return the addresses of the files to load for a bundle."""
    return [static(part) for part in ([bundle] if settings.IS_GATHERED else BUNDLES[bundle])]
