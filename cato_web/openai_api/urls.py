"""URLs below /v1."""

from django.urls import path

from cato_web.openai_api import views

urlpatterns = [
    path("chat/completions", views.chat_completions, name="v1_chat"),
    path("responses", views.create_response, name="v1_responses"),
    path("responses/<str:response_id>", views.one_response, name="v1_response"),
    path("embeddings", views.embeddings, name="v1_embeddings"),
    path("models", views.all_models, name="v1_models"),
    path("models/<path:name>", views.one_model, name="v1_model"),
    path("<path:rest>", views.unsupported, name="v1_nothing"),
]
