"""URLs below /v1, with and without a slash at the end, which some clients append."""

from django.urls import path, re_path

from cato_web.openai_api import views

urlpatterns = [
    re_path("^chat/completions/?$", views.chat_completions, name="v1_chat"),
    re_path("^responses/?$", views.create_response, name="v1_responses"),
    re_path("^responses/(?P<response_id>[^/]+)/?$", views.one_response, name="v1_response"),
    re_path("^embeddings/?$", views.embeddings, name="v1_embeddings"),
    re_path("^models/?$", views.all_models, name="v1_models"),
    # The name of a model can have slashes.
    re_path("^models/(?P<name>.+?)/?$", views.one_model, name="v1_model"),
    path("<path:rest>", views.unsupported, name="v1_nothing"),
]
