"""URLs of the authorization server."""

from django.urls import path

from cato_web.oauth import views

urlpatterns = [
    path(".well-known/oauth-protected-resource", views.resource_metadata, name="oauth_resource"),
    path(".well-known/oauth-protected-resource/mcp", views.resource_metadata, name="oauth_resource_of_mcp"),
    path(".well-known/oauth-authorization-server", views.server_metadata, name="oauth_server"),
    path("oauth/register", views.register_client, name="oauth_register"),
    path("oauth/authorize", views.authorize, name="oauth_authorize"),
    path("oauth/token", views.token, name="oauth_token"),
    path("oauth/revoke", views.revoke, name="oauth_revoke"),
]
