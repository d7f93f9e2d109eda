"""The language of a text is named only where it is certain, and where it differs from the question's."""

from __future__ import annotations

import pytest

from memory.lexical.languages import certain_language
from memory.spaces import access
from tests.factories import exchange


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The boiler was replaced with a heat pump.", "en"),
        ("Der Kessel wurde durch eine Wärmepumpe ersetzt.", "de"),
        ("La chaudière a été remplacée par une pompe à chaleur.", "fr"),
        ("La caldera fue sustituida por una bomba de calor.", "es"),
        ("ボイラーをヒートポンプに交換しました。", "ja"),
        ("보일러를 히트펌프로 교체했습니다.", "ko"),
        ("锅炉已更换为热泵。", "zh"),
        ("เปลี่ยนหม้อต้มเป็นปั๊มความร้อนแล้ว", "th"),
        ("Ο λέβητας αντικαταστάθηκε με αντλία θερμότητας.", "el"),
        ("הדוד הוחלף במשאבת חום.", "he"),
        ("Kocioł został zastąpiony pompą ciepła.", ""),
        ("Котёл заменили на тепловой насос.", ""),
        ("Bergmann GmbH, Kiel", ""),
        ("The pump of 東京 is in the cellar.", "en"),
        ("", ""),
    ],
)
def test_the_language_of_a_text(text, language):
    assert certain_language(text) == language


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("question", "explanation"),
    [
        ("What has the boiler been replaced with?", "Similar; in German"),
        ("Womit heizen wir, seit die alte Heizung weg ist?", "Similar to your question"),
        ("Czym zastąpiono stary kocioł?", "Similar to your question"),
    ],
)
def test_a_source_that_is_only_similar_names_its_language_where_it_differs(memory, person, question, explanation):
    exchange(person, "Der Kessel wurde durch eine Wärmepumpe ersetzt.")
    memory.index_pending()

    results = memory.recall([question], spaces=access.readable_space_ids(person.id)).results

    assert [hit.explanation for hit in results if not hit.is_below_gate] == [explanation]
