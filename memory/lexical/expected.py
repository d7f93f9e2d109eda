"""Answer types and informativeness of a text.

A question for a time, number or reason is answered by a text that has one, and an informative text is likelier to
contain an answer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Set
from dataclasses import dataclass

from memory.lexical.analyser import stem
from memory.lexical.stop_words import STOP_WORDS

# Informativeness does not grow beyond this number of distinct terms.
_MUCH = 60


@dataclass(frozen=True, slots=True)
class Kind:
    """An answer type: terms that ask for it, and terms that give it; with `is_number`, so does any number.

    Terms are in four languages, without those that mean something else in another of them.
    """

    asked: re.Pattern[str]
    said: frozenset[str]
    is_number: bool = False


def _kind(asked: str, *, is_number: bool = False, **said: str) -> Kind:
    terms = frozenset(stem(word, language) for language, words in said.items() for word in words.split())
    return Kind(re.compile(rf"\b(?:{asked})\b", re.IGNORECASE), terms, is_number)


_KINDS = (
    _kind(
        "when|(?:what|which) (?:date|day|month|year|time)|wann|welche[rsmn]? (?:tag|datum|monat|jahr)|quand"
        "|quel(?:le)? (?:jour|date|mois|année|heure)|cuándo|qué (?:día|fecha|mes|año|hora)",
        english="yesterday today tonight tomorrow ago last next week weekend month year day morning afternoon evening night"
        " spring summer autumn fall winter recently soon since just monday tuesday wednesday thursday friday saturday sunday"
        " january february march april may june july august september october november december",
        german="gestern heute morgen letzte nächste woche wochenende monat jahr tag abend nacht frühling sommer herbst winter"
        " bald seit gerade montag dienstag mittwoch donnerstag freitag samstag sonntag januar februar märz april mai juni"
        " juli august september oktober november dezember",
        french="aujourd demain dernier dernière prochain prochaine semaine mois année jour matin soir nuit"
        " printemps été automne hiver bientôt depuis lundi mardi mercredi jeudi vendredi samedi dimanche janvier février mars"
        " avril mai juin juillet août septembre octobre novembre décembre",
        spanish="ayer hoy mañana pasado pasada próximo próxima semana año día tarde noche primavera verano otoño invierno"
        " pronto desde lunes martes miércoles jueves viernes sábado domingo enero febrero marzo abril mayo junio julio agosto"
        " septiembre octubre noviembre diciembre",
    ),
    _kind(
        "how (?:many|much|long|often|old|far|tall|big|large|high|fast)|what (?:number|price|percentage|age)"
        "|wie (?:viele?|lange|oft|alt|weit|hoch|groß|teuer|schnell)|combien|quel âge|cuánt[oa]s?|qué edad",
        is_number=True,
        english="two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty dozen hundred thousand"
        " once twice couple few several",
        german="zwei drei vier fünf sechs sieben acht neun zehn elf zwölf zwanzig dreißig dutzend hundert tausend einmal"
        " zweimal paar mehrere",
        french="deux trois quatre cinq six sept huit neuf dix onze douze vingt trente douzaine cent mille plusieurs",
        spanish="dos tres cuatro cinco seis siete ocho nueve diez once doce veinte treinta docena cien mil varios varias",
    ),
    _kind(
        "why|how come|what (?:made|motivated|inspired|caused)|warum|wieso|weshalb|pourquoi|por qué",
        english="because since cause reason inspire motivate want decide",
        german="weil denn deshalb darum grund wegen damit",
        french="parce raison cause afin puisque",
        spanish="porque razón causa debido puesto",
    ),
)
_SMALL = frozenset(stem(word, language) for language, words in STOP_WORDS.items() for word in words)


def kind_asked(question: str) -> Kind | None:
    """Return the answer type that the question asks for, or None."""
    return next((kind for kind in _KINDS if kind.asked.search(question)), None)


def says(kind: Kind, terms: Set[str]) -> bool:
    """Return whether a text with these distinct terms has an answer of that type."""
    return not kind.said.isdisjoint(terms) or (kind.is_number and any(term[:1].isdigit() for term in terms))


def amount(terms: Set[str]) -> float:
    """Return the informativeness from 0 to 1 of a text with these distinct terms, by the logarithm of their number."""
    different = len(terms) - len(terms & _SMALL)
    return math.log1p(min(different, _MUCH)) / math.log1p(_MUCH)
