"""The addresses of conversations."""

from django.urls import path

from chat.views import finding, images, importing, model_settings, moving, organising, places, scopes, threads, turns

urlpatterns = [
    path("", threads.new_thread, name="new_thread"),
    path("t/<uuid:thread_id>", threads.thread, name="thread"),
    path("t/<uuid:thread_id>/say", threads.say, name="say"),
    path("t/<uuid:thread_id>/remember", threads.remember, name="remember"),
    path("images", images.images, name="images"),
    path("images/<uuid:image_id>", images.image, name="image"),
    path("find", finding.find, name="find"),
    path("import", importing.import_page, name="import"),
    path("import/<uuid:import_id>/row", importing.row, name="import_row"),
    path("import/<uuid:import_id>/cancel", importing.cancel, name="cancel_import"),
    path("import/<uuid:import_id>/retry", importing.retry, name="retry_import"),
    path("threads", organising.threads, name="threads"),
    path("t/<uuid:thread_id>/rename", organising.rename, name="rename"),
    path("t/<uuid:thread_id>/mark", organising.mark, name="mark"),
    path("t/<uuid:thread_id>/continue", organising.continue_thread, name="continue"),
    path("t/<uuid:thread_id>/export/<slug:kind>", organising.export, name="export"),
    path("t/<uuid:thread_id>/delete", organising.delete, name="delete_thread"),
    path("t/<uuid:thread_id>/take-back", organising.take_back, name="take_back"),
    path("t/<uuid:thread_id>/take-out", organising.take_out, name="take_out"),
    path("t/<uuid:thread_id>/move", moving.move, name="move"),
    path("t/<uuid:thread_id>/scope", scopes.scope, name="scope"),
    path("t/<uuid:thread_id>/turns/<uuid:turn_id>/stop", turns.stop, name="stop"),
    path("t/<uuid:thread_id>/turns/<uuid:turn_id>/withdraw", turns.withdraw, name="withdraw_turn"),
    path("t/<uuid:thread_id>/turns/<uuid:turn_id>/fork", turns.fork, name="fork"),
    path("t/<uuid:thread_id>/turns/<uuid:turn_id>/retry", turns.retry, name="retry"),
    path("t/<uuid:thread_id>/turns/<uuid:turn_id>/resume", turns.resume, name="resume"),
    path("t/<uuid:thread_id>/turns/<uuid:turn_id>/edit", turns.edit, name="edit"),
    path("t/<uuid:thread_id>/turns/<uuid:turn_id>/again", turns.answer_again, name="answer_again"),
    path("t/<uuid:thread_id>/turns/<uuid:turn_id>/choose", turns.choose, name="choose"),
    path("t/<uuid:thread_id>/turns/<uuid:turn_id>/remember", turns.remember_again, name="remember_again"),
    path("turns/<uuid:turn_id>/recalled", turns.recalled, name="recalled"),
    path("turns/<uuid:turn_id>/cited/<int:number>", turns.cited, name="cited"),
    path("m/<uuid:exchange_id>", places.exchange, name="exchange"),
    path("m/<uuid:exchange_id>/forget", places.forget, name="forget"),
    path("settings/model", model_settings.model_settings, name="model_settings"),
    path("settings/model/try", model_settings.try_model, name="try_model"),
]
