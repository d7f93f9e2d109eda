"""The commands `memory_eval` and `calibrate`, and their figures on the statistics page."""

from __future__ import annotations

import html
import re
import uuid
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from hypothesis import given
from hypothesis import strategies as st

from cato_web.stats import plots
from chat.llm import endpoint as model_endpoint
from memory import retrieval
from memory.index import generations
from memory.models import CachedEmbedding, Calibration, Evaluation, Exchange, RecallLogEntry
from memory.retrieval import levels
from memory.retrieval.tuning import calibration
from memory.retrieval.tuning.evaluation import WITHOUT_RAREST_WORDS, paraphrase_offline
from memory.spaces import access
from tests.factories import PersonFactory, exchange, signed_in
from tests.facts import FACTS
from tests.questions.no_recall import SMALL_TALK
from tests.questions.work import EXCHANGES, IN_OTHER_WORDS, NAMES_ONLY
from tests.topology import only_long

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice(db):
    return PersonFactory(name="Alice Owner")


@pytest.fixture
def statements(memory, alice):
    """Return Alice's embedded statements."""
    rows = [exchange(alice, fact, "Noted.") for fact, _ in FACTS]
    memory.index_pending()
    return rows


def run(command: str, capsys, *arguments: str) -> str:
    call_command(command, *arguments)
    return capsys.readouterr().out


def test_every_strategy_is_measured_and_stored_in_one_run(statements, capsys):
    output = run("memory_eval", capsys)

    rows = Evaluation.objects.all()
    assert [row.strategy for row in rows.order_by("pk")] == retrieval.strategy_names()
    assert len({row.run for row in rows}) == 1
    assert {(row.questions, row.k, row.rephrased_by) for row in rows} == {(len(FACTS), 5, WITHOUT_RAREST_WORDS)}
    assert all(0 <= row.empty <= 1 and row.median_ms > 0 for row in rows)
    assert rows.get(strategy="hybrid").recall > 0.5
    assert f"{len(FACTS)} exchanges, rephrased by {WITHOUT_RAREST_WORDS}" in output
    assert re.search(r"hybrid +\d+\.\d% +\d+\.\d% +\d+\.\d ms", output)


def test_a_chat_model_paraphrases_the_questions_if_there_is_one(statements, endpoint, capsys):
    endpoint.script("eval", answer="Where is the thing that opens the glass house?")
    model_endpoint.save(base_url=endpoint.openai_url, api_key="eval", model="gpt-small")

    output = run("memory_eval", capsys, "--sample", "3", "--strategy", "hybrid")

    assert "3 exchanges, rephrased by gpt-small" in output
    passages = [body["messages"][-1]["content"] for body in endpoint.requests("eval")]
    assert len(passages) == 3
    assert all(any(fact in passage for fact, _ in FACTS) for passage in passages)
    assert Evaluation.objects.get().rephrased_by == "gpt-small"


def test_the_generated_questions_are_not_stored(statements, endpoint, capsys):
    endpoint.script("eval", answer="Whereabouts of the unlocking implement?")
    model_endpoint.save(base_url=endpoint.openai_url, api_key="eval", model="gpt-small")
    before = (Exchange.objects.count(), CachedEmbedding.objects.count())

    run("memory_eval", capsys, "--sample", "2", "--strategy", "hybrid")

    assert (Exchange.objects.count(), CachedEmbedding.objects.count()) == before
    stored_text = str([row.__dict__ for model in (Exchange, Evaluation) for row in model.objects.all()])
    assert "implement" not in stored_text


def test_a_failing_chat_model_is_named_and_nothing_is_stored(statements, endpoint, capsys):
    endpoint.script("eval", mode="error-500")
    model_endpoint.save(base_url=endpoint.openai_url, api_key="eval", model="gpt-small")

    with pytest.raises(CommandError, match="HTTP 500"):
        call_command("memory_eval")
    assert not Evaluation.objects.exists()


def test_a_chat_model_that_returns_no_questions_stops_the_evaluation(statements, endpoint):
    endpoint.script("eval", answer=" ")
    model_endpoint.save(base_url=endpoint.openai_url, api_key="eval", model="gpt-small")

    with pytest.raises(CommandError, match="nothing to search for"):
        call_command("memory_eval", "--sample", "2")


def test_only_readable_exchanges_are_evaluated(memory, statements, capsys):
    bob = PersonFactory(name="Bob Team")
    exchange(bob, "The spare wheel is in the cellar.")
    memory.index_pending()

    assert "1 exchange, rephrased" in run("memory_eval", capsys, "--user", "bob team", "--strategy", "hybrid")
    with pytest.raises(CommandError, match="no account Nobody"):
        call_command("memory_eval", "--user", "Nobody")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--sample", "0"], "--sample takes 1 to 1,000, not 0"),
        (["--k", "0"], "first 1 to 100 results, not 0"),
        (["--strategy", "magic"], "no retrieval strategy magic"),
    ],
)
def test_an_impossible_evaluation_is_explained(statements, arguments, sentence):
    with pytest.raises(CommandError, match=sentence):
        call_command("memory_eval", *arguments)
    assert not Evaluation.objects.exists()


def test_an_empty_store_is_not_evaluated(memory):
    with pytest.raises(CommandError, match="nothing to search for yet"):
        call_command("memory_eval")


def test_questions_omit_the_rarest_words(statements):
    fact = statements[0].user_message
    question = paraphrase_offline(fact)

    assert 0 < len(question.split()) < len(fact.split())
    assert set(question.split()) <= set(fact.split())


@pytest.fixture
def conversations(memory, alice):
    """Return sixty embedded exchanges in twelve sessions."""
    sessions = defaultdict(uuid.uuid4)
    for row in EXCHANGES[:60]:
        exchange(alice, row.user, row.assistant, session_id=sessions[row.session], thread_id=sessions[row.session])
    while memory.index_pending():
        pass


def test_calibrate_fits_the_gate_and_reset_restores_the_default(conversations, capsys):
    active = generations.active_generation()
    shipped = levels.level_of(active.provider, active.model)

    dry_run = run("calibrate", capsys, "--dry-run")
    assert "calibrated on 60 exchanges" in dry_run
    assert "  previous" in dry_run
    assert "Nothing was changed." in dry_run
    assert not Calibration.objects.exists()

    output = run("calibrate", capsys)
    fitted = Calibration.objects.get()
    assert f"The threshold is now {fitted.threshold:.3f}" in output
    assert (fitted.provider, fitted.model, fitted.sample) == (active.provider, active.model, 60)
    assert levels.level_of(active.provider, active.model).similarity == fitted.threshold
    assert calibration.current_threshold().origin == "fitted"
    assert "default threshold is restored" in run("calibrate", capsys, "--reset")
    assert "in use already" in run("calibrate", capsys, "--reset")
    assert levels.level_of(active.provider, active.model) == shipped


def test_the_similarity_of_two_messages_on_one_subject_can_be_configured(memory, settings):
    active = generations.active_generation()
    shipped = levels.level_of(active.provider, active.model)
    assert shipped.same_subject == 0.87

    store = settings.CATO.vector_store.model_copy(update={"subject_similarity": 0.91})
    settings.CATO = settings.CATO.model_copy(update={"vector_store": store})

    assert levels.level_of(active.provider, active.model) == replace(shipped, same_subject=0.91)


@only_long
def test_a_calibrated_gate_passes_paraphrases_and_rejects_small_talk(memory, alice, conversations, capsys):
    run("calibrate", capsys)
    stored = {row.key for row in EXCHANGES[:60]}
    questions = [question for question, key in (*IN_OTHER_WORDS, *NAMES_ONLY) if key in stored]
    readable = access.readable_space_ids(alice.id)

    def passing_share(messages) -> float:
        return sum(bool(memory.recall([message], spaces=readable).results) for message in messages) / len(messages)

    assert passing_share(questions) >= 0.65
    assert passing_share(SMALL_TALK) <= 0.1


def test_calibrate_can_be_limited_to_the_exchanges_of_a_person(memory, conversations, capsys):
    PersonFactory(name="Bob Team")
    with pytest.raises(CommandError, match="Calibration needs at least 30 indexed exchanges; there are 0"):
        call_command("calibrate", "--user", "Bob Team")
    assert "calibrated on 60 exchanges" in run("calibrate", capsys, "--user", "Alice Owner", "--dry-run")


def test_calibrate_requires_enough_exchanges(memory, alice):
    exchange(alice, "The greenhouse key hangs behind the clock.")
    memory.index_pending()

    with pytest.raises(CommandError, match="Calibration needs at least 30 indexed exchanges; there are 1"):
        call_command("calibrate")


def test_single_exchanges_have_no_follow_ups_for_calibration(memory, alice):
    for number in range(30):
        exchange(alice, f"Room {number} gets a key of its own.")
    memory.index_pending()

    with pytest.raises(CommandError, match="0 have neighbours"):
        call_command("calibrate")


evidence_values = st.lists(st.integers(0, 200).map(lambda hundredths: hundredths / 100), min_size=1, max_size=40)


@given(answered=evidence_values, unanswered=evidence_values)
def test_the_threshold_meets_both_targets_if_possible_and_otherwise_balances_them(answered, unanswered):
    chosen = calibration.choose_threshold(answered, unanswered)
    met = chosen.passed >= calibration.MIN_PASSED and chosen.rejected >= calibration.MIN_REJECTED

    for threshold in {*answered, *unanswered, 0.0, 3.0}:
        passed = sum(evidence >= threshold for evidence in answered) / len(answered)
        rejected = sum(evidence < threshold for evidence in unanswered) / len(unanswered)
        if passed >= calibration.MIN_PASSED and rejected >= calibration.MIN_REJECTED:
            assert met
        elif not met:
            assert passed + rejected <= chosen.passed + chosen.rejected + 1e-9


def stats_page(person) -> str:
    client = signed_in(person)
    answer = client.get("/stats")
    assert answer.status_code == 200
    return html.unescape(answer.content.decode())


def store_evaluation(recall: float, strategy: str, run: uuid.UUID, **fields) -> Evaluation:
    fields = {"questions": 50, "rephrased_by": "gpt-small", "k": 5, "empty": 0.1, "median_ms": 12.3} | fields
    return Evaluation.objects.create(run=run, strategy=strategy, recall=recall, **fields)


def test_the_stats_page_plots_the_last_twelve_runs_with_their_figures(alice, chroma):
    for number in range(14):
        run = uuid.uuid4()
        store_evaluation(0.5 + number / 100, "default", run)
        store_evaluation(0.7 + number / 100, "hybrid", run)
    store_evaluation(0.111, "hybrid", uuid.uuid4(), k=10)
    store_evaluation(0.9, "hybrid", uuid.uuid4())

    page = stats_page(alice)

    plot = re.search(r'<svg class="line-chart".*?</svg>', page, re.S)[0]
    assert 'role="img"' in plot
    assert re.search(r"<title id=\"evaluations-title\">Share found among the first 5, .*Newest run: hybrid 90.0%", plot)
    assert len(re.findall(r"<polyline", plot)) == 2
    assert plot.count("hybrid, ") == 12
    assert plot.count("default, ") == 11
    assert "style=" not in plot
    table = page[page.index("All figures") :]
    assert table.index("90.0%") < table.index("83.0%") < table.index("73.0%")
    assert "11.1%" not in page
    assert "asked for by gpt-small" in page


def test_the_stats_page_omits_the_evaluation_without_runs(alice, chroma):
    assert "Retrieval quality" not in stats_page(alice)


def test_the_stats_page_shows_the_gate_and_its_origin(alice, chroma, settings):
    assert "0.80 (default)" in stats_page(alice)

    active = generations.active_generation()
    Calibration.objects.create(provider=active.provider, model=active.model, threshold=0.61, sample=200)
    assert re.search(r"0\.61 \(calibrated on 200 exchanges on \d+ \w{3} 20\d\d\)", stats_page(alice))

    store = settings.CATO.vector_store
    settings.CATO = settings.CATO.model_copy(
        update={"vector_store": store.model_copy(update={"similarity_threshold": 0.3})}
    )
    assert "0.30 (configured)" in stats_page(alice)

    rising = store.model_copy(update={"dynamic_threshold": True})
    settings.CATO = settings.CATO.model_copy(update={"vector_store": rising})
    page = stats_page(alice)
    assert "Rising threshold" in page
    assert "as shipped" not in page


def test_the_stats_page_shows_how_often_exchanges_are_recalled(alice, chroma):
    recalled = exchange(alice, "The key hangs behind the clock.", turn_id=uuid.uuid4())
    answered_exchange = exchange(alice, "Where is the key?", turn_id=uuid.uuid4())
    RecallLogEntry.objects.create(
        turn_id=answered_exchange.turn_id, exchange=recalled, rank=1, score=1, strategy="hybrid", reason=""
    )

    page = stats_page(alice)

    assert re.search(r"Answers with context.*?50%.*?of the last 2; nothing was recalled for 1", page, re.S)
    assert "Answers with context" not in stats_page(PersonFactory())


@given(st.lists(st.lists(st.none() | st.floats(0, 1), min_size=12, max_size=12), min_size=1, max_size=9))
def test_a_plot_stays_in_its_box_and_its_labels_apart(values):
    series = [plots.Series(f"strategy {number}", shares) for number, shares in enumerate(values)]
    plot = plots.line_plot(series, columns=[f"{n} Nov" for n in range(12)], title="Shares")

    drawn = [point for line in plot.lines for point in line.points]
    assert all(plot.left <= point.x <= plot.right and 0 <= point.y <= plot.height for point in drawn)
    assert len(drawn) == sum(share is not None for one in values for share in one)
    heights = sorted(line.label.y for line in plot.lines)
    assert all(lower - upper >= 14.9 for upper, lower in pairwise(heights))
    assert all(0 <= height <= plot.height for height in heights)


def test_a_single_run_is_centred_and_strategies_look_different():
    names = ["default", "dynamic", "hybrid", "temporal", "diverse"]
    plot = plots.line_plot([plots.Series(name, [0.5]) for name in names], columns=["1 Nov"], title="Shares")

    assert {line.points[0].x for line in plot.lines} == {(plot.left + plot.right) / 2}
    assert len({line.mark for line in plot.lines}) == len(names)
    assert len({line.style for line in plot.lines}) == len(names)
