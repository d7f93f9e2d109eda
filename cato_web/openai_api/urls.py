"""URLs below /v1, with and without a slash at the end, which some clients append."""

from django.urls import path, re_path, register_converter
from django.urls.converters import PathConverter, StringConverter

from cato_web.openai_api import views


class IdConverter(StringConverter):
    """Matches an ID and a slash after it, which does not count."""

    regex = "[^/]+/?"

    def to_python(self, value: str) -> str:
        """Return the ID."""
        return value.removesuffix("/")


class NameConverter(PathConverter):
    """Matches the name of a model, which can have slashes, and one after it, which does not count."""

    def to_python(self, value: str) -> str:
        """Return the name."""
        return value.removesuffix("/")


register_converter(IdConverter, "v1_id")
register_converter(NameConverter, "v1_name")

urlpatterns = [
    re_path("^chat/completions/?$", views.chat_completions, name="v1_chat"),
    re_path("^responses/?$", views.create_response, name="v1_responses"),
    path("responses/<v1_id:response_id>", views.one_response, name="v1_response"),
    re_path("^embeddings/?$", views.embeddings, name="v1_embeddings"),
    re_path("^models/?$", views.all_models, name="v1_models"),
    path("models/<v1_name:name>", views.one_model, name="v1_model"),
    path("<path:rest>", views.unsupported, name="v1_nothing"),
]
