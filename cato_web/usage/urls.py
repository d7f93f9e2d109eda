"""URLs of usage."""

from django.urls import path

from cato_web.usage import views

urlpatterns = [
    path("settings/usage", views.own_usage, name="usage"),
    path("admin/usage", views.admin_usage, name="admin_usage"),
    path("admin/usage.csv", views.admin_usage_csv, name="admin_usage_csv"),
    path("admin/usage/limits", views.admin_limits, name="admin_limits"),
    path("admin/usage/limits/remove", views.remove_limit, name="remove_limit"),
    path("admin/usage/prices", views.set_price, name="set_price"),
    path("admin/usage/currency", views.set_currency, name="set_currency"),
]
