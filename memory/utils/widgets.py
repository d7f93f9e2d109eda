"""Widgets of forms on several pages: a day, and a menu with many options."""

from __future__ import annotations

from typing import Any

from django import forms
from django.forms.utils import flatatt
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

DATE_INPUT = forms.DateInput(attrs={"type": "date"})
_SELECTED = mark_safe(" selected")  # no input


class LongSelect(forms.Select):
    """A menu of hundreds of options, for each of which Django's own would render a template."""

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        """Return the element."""
        options = format_html_join(
            "",
            '<option value="{}"{}>{}</option>',
            ((key, _SELECTED if str(key) == str(value or "") else "", label) for key, label in self.choices),
        )
        return format_html(
            "<select{}>{}</select>", flatatt(self.build_attrs({**self.attrs, "name": name}, attrs)), options
        )
