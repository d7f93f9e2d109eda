"""Words for dates and periods in eleven languages, as data for `dates.py`."""

from __future__ import annotations

import re
from collections.abc import Iterable


def alternatives(words: Iterable[str]) -> str:
    """Return a regular expression that matches any of `words`, longest first."""
    return "|".join(sorted(words, key=len, reverse=True))


def key_of(word: str) -> str:
    """Return how the tables write a word that a pattern without regard to case has matched.

    Such a pattern takes "İ", "ı" and "ſ" for "i" and "s", which `lower` does not convert.
    """
    return word.replace("İ", "I").upper().lower()


# English, German, French, Spanish, Italian, Portuguese, Dutch, Polish and Russian, in the forms used in dates.
MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan januar janvier enero gennaio janeiro januari styczeń stycznia styczniu январь января январе",
            "february feb februar février fevrier febrero febbraio fevereiro februari luty lutego lutym "
            "февраль февраля феврале",
            "march mar märz maerz mars marzo março maart marzec marca marcu март марта марте",
            "april apr avril abril aprile kwiecień kwietnia kwietniu апрель апреля апреле",
            "may mai mayo maggio maio mei maj maja maju май мая мае",
            "june jun juni juin junio giugno junho czerwiec czerwca czerwcu июнь июня июне",
            "july jul juli juillet julio luglio julho lipiec lipca lipcu июль июля июле",
            "august aug août aout agosto augustus sierpień sierpnia sierpniu август августа августе",
            "september sept sep septembre septiembre settembre setembro wrzesień września wrześniu "
            "сентябрь сентября сентябре",
            "october oct oktober okt octobre octubre ottobre outubro październik października październiku "
            "октябрь октября октябре",
            "november nov novembre noviembre novembro listopad listopada listopadzie ноябрь ноября ноябре",
            "december dec dezember dez décembre decembre diciembre dicembre dezembro grudzień grudnia grudniu "
            "декабрь декабря декабре",
        ),
        start=1,
    )
    for name in names.split()
}
# Words that name a month only next to a number or to a word for "last", because they have other common meanings.
AMBIGUOUS = {"may", "march", "mar", "mars", "marca", "maja", "mei"}
COUNTS = {
    word: count
    for count, words in {
        1: "a an one ein einem einer eine un une uno una um uma een jeden jedną один одну",
        2: "two couple zwei deux dos due dois duas twee dwa dwie два две",
        3: "three few drei trois tres tre três drie trzy три",
        4: "four vier quatre cuatro quattro quatro cztery четыре",
        5: "five fünf cinq cinco cinque vijf pięć пять",
        6: "six sechs seis sei zes sześć шесть",
    }.items()
    for word in words.split()
}
DAYS = {
    word: days
    for days, words in {
        1: "day days tag tage tagen jour jours día días dia dias giorno giorni dag dagen dzień dni день дня дней",
        7: "week weeks woche wochen semaine semaines semana semanas settimana settimane weken tydzień tygodnie tygodni "
        "tygodniu неделя неделю недели недель неделе",
        30: "month months monat monats monate monaten mois mes meses mese mesi mês maand maanden miesiąc miesiące miesięcy "
        "miesiącu месяц месяца месяцев месяце",
        365: "year years jahr jahres jahre jahren an ans année années año años anno anni ano anos jaar jaren rok roku lata lat "
        "год года году лет",
    }.items()
    for word in words.split()
}
AGO_BEFORE = "vor|il y a|hace|há"
AGO_AFTER = "ago|fa|atrás|geleden|temu|назад"
LAST_BEFORE = (
    r"last|past|previous|letzte[nrms]?|vergangene[nrms]?|vorig(?:e[nrms]?)?|afgelopen|últim[oa]s?|scors[oa]|"
    r"zeszł\w+|ubiegł\w+|ostatni\w*|прошл\w+|последн\w+"
)
LAST_AFTER = "dernier|dernière|passée?|pasad[oa]|passad[oa]|scors[oa]|passat[oa]"
IN_THE_LAST = (
    r"last|past|letzte[nr]?|vergangene[nr]?|derni[eè]re?s|últim[oa]s|ultim[ie]|laatste|afgelopen|ostatni\w*|последни\w*"
)
THIS = r"this|diese[mnrs]?|cette|ce|est[ea]|quest[oa]|deze|ty[mg]\w*|эт\w+"
SINCE = r"since|seit|depuis|desde|da|dal|dalla|sinds|od|с|со"
WEEKDAYS = {
    word: day
    for day, words in enumerate(
        (
            "monday montag lundi lunes lunedì segunda-feira maandag poniedziałek poniedziałku понедельник понедельника",
            "tuesday dienstag mardi martes martedì terça-feira dinsdag wtorek wtorku вторник вторника",
            "wednesday mittwoch mercredi miércoles mercoledì quarta-feira woensdag środa środy среда среду среды",
            "thursday donnerstag jeudi jueves giovedì quinta-feira donderdag czwartek czwartku четверг четверга",
            "friday freitag vendredi viernes venerdì sexta-feira vrijdag piątek piątku пятница пятницу пятницы",
            "saturday samstag sonnabend samedi sábado sabato zaterdag sobota sobotę soboty суббота субботу субботы",
            "sunday sonntag dimanche domingo domenica zondag niedziela niedzielę niedzieli воскресенье воскресенья",
        )
    )
    for word in words.split()
}
TODAY = "today|heute|aujourd'hui|hoy|oggi|hoje|vandaag|dzisiaj|dziś|сегодня"
YESTERDAY = "yesterday|gestern|hier soir|ayer|ieri|ontem|gisteren|wczoraj|вчера"

# Chinese and Japanese, which have no spaces between words.
WIDE_NUMBERS = {
    number: value
    for value, numbers in enumerate(
        ("一", "二 两", "三", "四", "五", "六", "七", "八", "九", "十", "十一", "十二"), start=1
    )
    for number in numbers.split()
}
_WIDE_NUMBER = rf"\d{{1,2}}|{alternatives(WIDE_NUMBERS)}"
WIDE_DATE = re.compile(
    rf"(?:(?P<year>(?:19|20)\d\d)年)?(?P<month>{_WIDE_NUMBER})月(?:(?P<day>\d{{1,2}})[日号])?(?![前间間])"
)
WIDE_TODAY = re.compile("今天|今日|きょう")
WIDE_YESTERDAY = re.compile("昨天|昨日|きのう")
WIDE_DAYS = {
    word: days
    for days, words in {
        1: "天 日",
        7: "周 週 週間 星期 个星期 個星期 礼拜 个礼拜",
        30: "月 个月 個月 か月 ヶ月 カ月",
        365: "年",
    }.items()
    for word in words.split()
}
WIDE_AGO = re.compile(rf"(?P<count>{_WIDE_NUMBER})(?P<unit>{alternatives(WIDE_DAYS)})(?:之前|以前|前)")
WIDE_LAST = re.compile(rf"(?:[上先](?P<unit>{alternatives(set(WIDE_DAYS) - {'天', '日', '年'})})|[去昨](?P<unit2>年))")
WIDE_IN_THE_LAST = re.compile(
    rf"(?:最近|过去|過去|这|この)の?(?P<count>{_WIDE_NUMBER})(?P<unit>{alternatives(WIDE_DAYS)})"
)
WIDE_THIS = re.compile(rf"(?:[这這本今])(?P<unit>{alternatives(set(WIDE_DAYS) - {'天', '日'})})")
WIDE_SINCE = re.compile("以来|以來|以后|从|從|から|起")
WIDE_WEEKDAYS = {
    sign: day for day, signs in enumerate(("一月", "二火", "三水", "四木", "五金", "六土", "天日")) for sign in signs
}
WIDE_WEEKDAY = re.compile(r"(?:星期|周|週|礼拜)(?P<day>[一二三四五六天日])|(?P<day_ja>[月火水木金土日])曜日")


def read_count(text: str) -> int:
    """Return the number that is written in digits or as one of the words above."""
    word = key_of(text)
    return COUNTS.get(word) or WIDE_NUMBERS.get(word) or int(word)


def days_in(unit: str) -> int:
    """Return the number of days in a day, week, month or year."""
    word = key_of(unit)
    return DAYS.get(word) or WIDE_DAYS[word]
