"""Whether this process is alive."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET


@login_not_required
@require_GET
def alive(request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok", content_type="text/plain")
