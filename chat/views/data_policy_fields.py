"""The fields of a form in which an administrator sets which spaces' text an endpoint may receive."""

from __future__ import annotations

from typing import Any, cast

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memory.api import DataPolicy, Space


class DataPolicyForm(forms.Form):
    """A policy and, if it lists them, the spaces."""

    policy = forms.ChoiceField(
        label=gettext_lazy("May receive text of"),
        choices=[
            (DataPolicy.ALL, gettext_lazy("All spaces")),
            (DataPolicy.LISTED, gettext_lazy("The spaces chosen below")),
            (DataPolicy.NONE, gettext_lazy("No space; it is not used")),
        ],
        widget=forms.RadioSelect,
    )
    allowed_in = forms.MultipleChoiceField(
        label=gettext_lazy("Spaces"), required=False, widget=forms.CheckboxSelectMultiple
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        shared = Space.objects.exclude(kind=Space.Kind.PERSONAL).order_by("kind", "name")
        cast(forms.ChoiceField, self.fields["allowed_in"]).choices = [
            (DataPolicy.PERSONAL, _("Personal threads")),
            *((str(space.id), space.display_name) for space in shared),
        ]
