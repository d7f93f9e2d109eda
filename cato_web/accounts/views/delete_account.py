"""Delete one's own account, and show the receipt to anybody with its link."""

from __future__ import annotations

from django.contrib.auth import logout
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods

from cato_web.accounts import deletion
from cato_web.accounts.forms.settings import DeleteAccountForm
from cato_web.accounts.models import User
from cato_web.accounts.views import AuthenticatedRequest
from cato_web.accounts.views.auth import TOO_MANY, check_code_rate


@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def delete_account(request: AuthenticatedRequest) -> HttpResponse:
    """Show what is deleted and what remains; after confirmation, delete the account."""
    form = DeleteAccountForm(request.user, request.POST or None)
    try:
        deletion.check_can_delete(request.user)
        if request.method == "POST" and not check_code_rate(request, request.user):
            context = _context(request.user, DeleteAccountForm(request.user)) | {"error": _(TOO_MANY)}
            return render(request, "people/delete_account.html", context, status=429)
        if request.method == "POST" and form.is_valid():
            token = deletion.delete_account(request.user)
            logout(request)
            return redirect("account_deleted", token)
    except deletion.AccountDeletionError as error:
        return render(request, "people/delete_account.html", {"section": "settings", "refusal": str(error)}, status=409)
    return render(
        request, "people/delete_account.html", _context(request.user, form), status=422 if form.errors else 200
    )


@login_not_required
@require_GET
def deletion_receipt(request: HttpRequest, token: str) -> HttpResponse:
    """Show what was removed with an account, and what is still in progress."""
    try:
        lines, is_finished = deletion.get_receipt(token)
    except deletion.ReceiptNotFoundError:
        return render(request, "404.html", {"error": _("This link does not lead to a receipt.")}, status=404)
    return render(request, "people/deletion_receipt.html", {"lines": lines, "is_finished": is_finished})


def _context(person: User, form: DeleteAccountForm) -> dict[str, object]:
    return {
        "section": "settings",
        "form": form,
        "contents": deletion.account_contents(person),
        "former": _(deletion.FORMER_MEMBER),
        "is_alone": not User.objects.filter(left_at=None).exclude(pk=person.pk).exists(),
        "error": "",
    }
