"""URLs of accounts."""

from django.urls import path

from cato_web.accounts.views import (
    accounts,
    administration,
    audit,
    auth,
    delete_account,
    groups,
    openid,
    spaces,
    tokens,
)

urlpatterns = [
    path("setup/<str:token>", auth.set_up, name="set_up"),
    path("join/<str:token>", auth.join, name="join"),
    path("reset/<str:token>", auth.reset, name="password_reset"),
    path("sign-in", auth.sign_in, name="sign_in"),
    path("sign-in/openid", openid.start, name="openid"),
    path("sign-in/openid/back", openid.callback, name="openid_callback"),
    path("sign-out", auth.sign_out, name="sign_out"),
    path("settings", accounts.settings_page, name="settings"),
    path("settings/password", accounts.password, name="password"),
    path("settings/notify", accounts.set_notifications, name="set_notifications"),
    path("settings/sign-ins", accounts.revoke_login_session, name="end_login_session"),
    path("settings/export", accounts.export_my_data, name="export_account"),
    path("settings/tokens", tokens.create, name="create_token"),
    path("settings/tokens/withdraw", tokens.revoke, name="revoke_token"),
    path("settings/leave", delete_account.delete_account, name="delete_account"),
    path("receipt/<str:token>", delete_account.deletion_receipt, name="account_deleted"),
    path("admin/people", administration.people, name="admin_people"),
    path("admin/people/<uuid:person_id>/active", administration.set_active, name="set_user_active"),
    path("admin/people/<uuid:person_id>/reset", administration.reset_link, name="create_reset_link"),
    path("admin/people/<uuid:person_id>/export", administration.export, name="export_person"),
    path("admin/people/<uuid:person_id>/role", administration.set_role, name="set_role"),
    path("admin/audit", audit.audit, name="admin_audit"),
    path("admin/groups", groups.admin_groups, name="admin_groups"),
    path("admin/groups/<uuid:group_id>", groups.change_group, name="change_group"),
    path("admin/links/<int:link_id>/revoke", administration.revoke_link, name="revoke_link"),
    path("spaces/<uuid:space_id>", spaces.space, name="space"),
    path("spaces/<uuid:space_id>/members", spaces.change_members, name="change_members"),
    path("spaces/<uuid:space_id>/leave", spaces.leave_group, name="leave_group"),
]
