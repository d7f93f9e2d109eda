"""Messages that ask nothing: thanks, greetings, agreement. They recall nothing, whatever was spoken of before."""

from __future__ import annotations

import re
import unicodedata

from memory.lexical.stop_words import STOP_WORDS

_ENGLISH = """
ah aha alright amazing appreciate appreciated awesome brilliant bye cheers clear congrats congratulations cool correct
done exactly excellent fantastic fine glad good goodbye got gotcha great haha happy hehe hello help helped helpful
helps hey hi hm hmm indeed interesting just kind later lol lot lots love lovely makes mate much neat nice nicely nope
noted oh ok okay oops perfect perfectly please quick really right see sense seriously solved sorry sounds splendid
super sure sweet thank thankful thanks thing think thx too true understood very wait welcome well wonderful work
worked works worries wow yay yeah yep yes yup
"""
_GERMAN = """
ach allerbeste bestens bitte dank danke danken dankeschön dir ebenso echt ernst euch fein freut funktioniert ganz
geholfen geklappt gelernt gelöst genau gern gerne glückwunsch grüß gut gute guten hallo herzlichen hilfe hilft ihnen
ja jawohl jo klappt klar klasse leider lieb liebe moin nee nein nett perfekt prima richtig sauber schade schön schönen
servus spitze stimmt toll tschüss verstanden verstehe viel vielen warte wiedersehen wunderbar wünsche
"""
_FRENCH = """
accord aide aidé beaucoup bien bientôt bof bon bonjour bonne bravo chouette clair compris coucou exactement fonctionne
félicitations gentil génial impeccable magnifique marche merci mieux mille nickel ouais oui pardon parfait parfaite
plaît reçu résolu salut sérieusement top voilà vraiment ça
"""
_SPANISH = """
adiós amable ayuda ayudado bienvenido buen buena buenas bueno buenos claro correcto encantado entendido estupendo
exacto excelente felicidades funciona funcionado genial gracias hola igualmente jaja jajaja listo luego maravilla mil
muchas muchísimas perfecta perfecto servido sirve solucionado vale venga útil
"""
# What a greeting may name, while "and tomorrow?" asks something.
_TIMES = """
afternoon day evening morning night today tomorrow weekend abend feierabend morgen nachmittag nacht tag wochenende
demain journée matin nuit soir soirée día días finde mañana noche noches tarde tardes
"""
# What is courteous only as a whole, and no part of a question ("who is to take care of it?"); any apostrophe is taken for a straight one.
_PHRASES = """
all right|all the best|good one|how are things|how(?:'s| is) it going|my bad|never mind|nice one
no problem|of course|same to you|see you soon|talk to you (?:later|soon|tomorrow)|what's up
alles gute|alles klar|bis bald|bis dann|bis gleich|bis später|gern geschehen|kein problem|keine ursache|mach'?s gut
na gut|schon gut|wie geht(?:'?s| es dir| es ihnen)|wie läuft'?s
bien sûr|bonne continuation|comment allez-vous|comment vas-tu|de rien|je comprends|pas de (?:problème|souci)
à bientôt|à demain|à plus|ça va
cómo (?:estás|te va)|de nada|en serio|hasta (?:luego|mañana|pronto)|no hay de qué|no te preocupes|por supuesto|qué tal
sin problema
"""
_COURTEOUS = frozenset(f"{_ENGLISH} {_GERMAN} {_FRENCH} {_SPANISH}".split())
_SMALL = frozenset(_TIMES.split()).union(*STOP_WORDS.values())
_WHOLE = re.compile(rf"\b(?:{_PHRASES.strip().replace(chr(10), '|')})\b")
_WORD = re.compile(r"[^\W\d_]+")


def is_small_talk(message: str) -> bool:
    """Whether the message is made of courteous and small words alone; one with a number or any other word is more."""
    if re.search(r"\d", message):
        return False
    text = unicodedata.normalize("NFKC", message).casefold().replace("’", "'")
    rest, phrases = _WHOLE.subn(" ", text)
    words = _WORD.findall(rest)
    is_courteous = phrases > 0 or any(word in _COURTEOUS for word in words)
    return is_courteous and all(word in _COURTEOUS or word in _SMALL for word in words)
