"""The list of projects, and the changes that managers make to a project."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from cato_web.accounts import groups, projects
from cato_web.accounts.views import AuthenticatedRequest
from cato_web.accounts.views.spaces import project_errors, render_space
from memory.api import MAX_DESCRIPTION_LENGTH, InvalidInputError


@require_http_methods(["GET", "POST"])
def project_list(request: AuthenticatedRequest) -> HttpResponse:
    """List the user's projects, archived ones last; a POST creates one and opens its page."""
    error: InvalidInputError | None = None
    if request.method == "POST":
        try:
            created = projects.create(
                request.POST.get("name", ""), request.POST.get("description", ""), by=request.user
            )
        except InvalidInputError as refused:
            error = refused
        else:
            messages.success(
                request, _("%(project)s is created. Add members and documents.") % {"project": created.name}
            )
            return redirect("space", created.pk)
    rows = projects.list_projects(request.user)
    context = {
        "section": "projects",
        "projects": [row for row in rows if not row.is_archived],
        "archived": [row for row in rows if row.is_archived],
        "max_description": MAX_DESCRIPTION_LENGTH,
        "name": request.POST.get("name", ""),
        "description": request.POST.get("description", ""),
        "errors": project_errors(error),
    }
    return render(request, "people/projects.html", context, status=422 if error else 200)


@require_POST
def change_project(request: AuthenticatedRequest, space_id: uuid.UUID) -> HttpResponse:
    """Save, archive, reopen or delete a project, depending on the field `change`."""
    project = projects.project_to_change(request.user, space_id)
    change = request.POST.get("change", "")
    try:
        if change == "delete":
            groups.delete_group(project, by=request.user)
            messages.success(request, _("Project %(project)s deleted.") % {"project": project.name})
            return redirect("projects")
        if change == "archive":
            projects.archive(project, by=request.user)
            done = _("Archived. It is still read, found and recalled, but nothing can be added.")
        elif change == "reopen":
            projects.reopen(project, by=request.user)
            done = _("Reopened.")
        else:
            projects.change(
                project,
                name=request.POST.get("name", ""),
                description=request.POST.get("description", ""),
                recall_mode=request.POST.get("recall_mode", ""),
                by=request.user,
            )
            done = _("Saved.")
    except InvalidInputError as error:
        if change not in ("archive", "reopen", "delete"):
            return render_space(request, project, error=error)
        messages.error(request, str(error))
    else:
        messages.success(request, done)
    return redirect("space", project.pk)
