"""The addresses of accounts."""

from django.urls import path

from cato_web.people.views import accounts, administration, entrance

urlpatterns = [
    path("setup/<str:token>", entrance.set_up, name="set_up"),
    path("join/<str:token>", entrance.join, name="join"),
    path("sign-in", entrance.sign_in, name="sign_in"),
    path("sign-out", entrance.sign_out, name="sign_out"),
    path("settings", accounts.settings_page, name="settings"),
    path("settings/password", accounts.password, name="password"),
    path("admin/people", administration.people, name="admin_people"),
    path("admin/people/<uuid:person_id>/active", administration.set_active, name="set_active"),
    path("admin/invitations/<int:invitation_id>/withdraw", administration.withdraw, name="withdraw"),
]
