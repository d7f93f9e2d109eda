"""Style sheets and scripts that are sent as one: a first visit waits for a few files, not for forty."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.files.base import ContentFile
from servestatic.storage import CompressedManifestStaticFilesStorage

# Each with what it is made of, in this order; the first sheet also says in which order the layers count.
BUNDLES = {
    "css/cato.css": (
        "css/tokens.css",
        "css/base.css",
        "css/layout.css",
        "css/sidebar.css",
        "css/controls.css",
        "css/marks.css",
        "css/turn.css",
        "css/answer.css",
        "css/recalled.css",
        "css/composer.css",
        "css/floats.css",
        "css/forms.css",
        "css/settings.css",
        "css/search.css",
        "css/stats.css",
        "css/tables.css",
        "css/admin.css",
        "css/documents.css",
        "css/document.css",
        "css/find.css",
        "css/print.css",
    ),
    "js/page.js": (
        "js/time.js",
        "js/drawer.js",
        "js/keys.js",
        "js/list.js",
        "js/menus.js",
        "js/dialogs.js",
        "js/copy.js",
        "js/forms.js",
        "js/signed_out.js",
    ),
    "js/conversation.js": (
        "js/scroll.js",
        "js/commands.js",
        "js/drafts.js",
        "js/composer.js",
        "js/offline.js",
        "js/thread.js",
        "js/permissions.js",
        "js/upload.js",
        "js/recalled.js",
        "js/thinking.js",
    ),
}


class Bundling(CompressedManifestStaticFilesStorage):  # type: ignore[misc]
    """Makes the bundles of what was gathered, and treats them as it treats any file."""

    def post_process(self, paths: dict[str, Any], *args: Any, **options: Any) -> Iterator[Any]:
        for bundle, parts in BUNDLES.items():
            text = "".join(self.open(part).read().decode() for part in parts)
            self.delete(bundle)
            self.save(bundle, ContentFile(text.encode()))
            paths[bundle] = (self, bundle)
        yield from super().post_process(paths, *args, **options)
