"""Bundles of style sheets and scripts, so that a first visit loads a few files instead of forty."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.files.base import ContentFile
from servestatic.storage import CompressedManifestStaticFilesStorage

# The parts of each bundle in their order; the first style sheet defines the order of the cascade layers. Threads do not
# load css/pages.css.
BUNDLES = {
    "css/cato.css": (
        "css/tokens.css",
        "css/colors.css",
        "css/base.css",
        "css/utilities.css",
        "css/inputs.css",
        "css/app.css",
        "css/topbar.css",
        "css/presence.css",
        "css/sidebar.css",
        "css/brand.css",
        "css/button.css",
        "css/link.css",
        "css/icon.css",
        "css/menu.css",
        "css/memory-toggle.css",
        "css/memory-icon.css",
        "css/space-badge.css",
        "css/progress-bar.css",
        "css/avatar.css",
        "css/citation.css",
        "css/key-values.css",
        "css/thread.css",
        "css/turn.css",
        "css/answer.css",
        "css/memory-searches.css",
        "css/tools.css",
        "css/code-block.css",
        "css/recall.css",
        "css/recall-item.css",
        "css/source-card.css",
        "css/citation-preview.css",
        "css/switch.css",
        "css/instructions.css",
        "css/offer.css",
        "css/composer.css",
        "css/key-hints.css",
        "css/composer-list.css",
        "css/queue.css",
        "css/banner.css",
        "css/card.css",
        "css/receipt.css",
        "css/toast.css",
        "css/dialog.css",
        "css/form.css",
        "css/chip.css",
        "css/thread-list.css",
        "css/quick-search.css",
        "css/shortcut-list.css",
    ),
    "css/pages.css": (
        "css/page.css",
        "css/admin.css",
        "css/auth-page.css",
        "css/bulk-bar.css",
        "css/chart.css",
        "css/choices.css",
        "css/document-page.css",
        "css/documents-page.css",
        "css/error-page.css",
        "css/exchange.css",
        "css/filter-bar.css",
        "css/instructions-page.css",
        "css/knowledge-page.css",
        "css/mentions-page.css",
        "css/notes.css",
        "css/pagination.css",
        "css/projects.css",
        "css/saved-prompts.css",
        "css/search-field.css",
        "css/search-page.css",
        "css/settings.css",
        "css/stats.css",
        "css/table.css",
        "css/tabs.css",
        "css/task.css",
        "css/tool-list.css",
    ),
    "js/page.js": (
        "js/local-times.js",
        "js/sidebar.js",
        "js/shortcuts.js",
        "js/quick-search.js",
        "js/thread-list.js",
        "js/menus.js",
        "js/dialogs.js",
        "js/copy.js",
        "js/failed-requests.js",
        "js/share.js",
        "js/focus-first-error.js",
        "js/signed-out.js",
        "js/service-worker.js",
    ),
    "js/conversation.js": (
        "js/composer-height.js",
        "js/stick-to-bottom.js",
        "js/option-list.js",
        "js/slash-menu.js",
        "js/mention-loader.js",
        "js/model-picker.js",
        "js/saved-prompts.js",
        "js/drafts.js",
        "js/composer.js",
        "js/queue.js",
        "js/forgotten-fade.js",
        "js/key-hints-loader.js",
        "js/attachments.js",
        "js/attachment-removal.js",
        "js/attachment-waiting.js",
        "js/connection.js",
        "js/thread-sync.js",
        "js/turn-focus.js",
        "js/author-controls.js",
        "js/recall-panel.js",
        "js/cited-first.js",
        "js/own-sources.js",
        "js/citation-preview.js",
        "js/citation-new-tab.js",
        "js/source-card.js",
        "js/source-card-state.js",
        "js/source-card-place.js",
        "js/source-keys.js",
        "js/thinking-timer.js",
        "js/table-loader.js",
        "js/thread-activity.js",
        # What is open closes before Escape stops an answer.
        "js/composer-keys.js",
    ),
    # Loaded once somebody types an @.
    "js/mentions.js": ("js/mention-match.js", "js/mention-menu.js", "js/mention-removal.js"),
    "js/search.js": ("js/search-keys.js",),
    "js/knowledge.js": ("js/knowledge-keys.js", "js/knowledge-messages.js"),
    "js/uploads.js": ("js/drop-files.js",),
    "js/documents.js": ("js/chips.js", "js/upload.js"),
}


class BundledStaticFilesStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]
    """Creates the bundles from the collected files, and processes them like any file."""

    def post_process(self, paths: dict[str, Any], *args: Any, **options: Any) -> Iterator[Any]:
        """Write the bundles, then hash and compress all files."""
        for bundle, parts in BUNDLES.items():
            text = "".join(self.open(part).read().decode() for part in parts)
            self.delete(bundle)
            self.save(bundle, ContentFile(text.encode()))
            paths[bundle] = (self, bundle)
        yield from super().post_process(paths, *args, **options)
