"""The small words of four languages: questions are made of them and nothing is about them. English stands first."""

from __future__ import annotations

_ENGLISH = """
a about an and are aren as at be been but by can could couldn d did didn do does doesn don for from had hadn has hasn
have haven he her his how i if in into is isn it its ll m me my no not of on or our re s she should shouldn so t that
the their them then there these they this those to us ve was wasn we were weren what when where which while who whom
whose why will with won would wouldn you your
"""
_GERMAN = """
aber alle allem allen aller alles als also am an andere anderen auch auf aus bei beim bin bis bist bitte da dabei damit
dann das dass dein deine dem den denn der des dessen die dies diese diesem diesen dieser dieses doch dort du durch ein
eine einem einen einer eines er es etwas euch euer für gab gegen gewesen gibt habe haben hat hatte hatten hier hin hinter
ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in ins ist ja jede jeder jetzt kann kannst kein keine können könnte
man mein meine meinem meinen meiner mich mir mit muss nach nicht noch nun nur ob oder ohne sehr sein seine seinem seinen
seiner seit sich sie sind so soll sollte sondern sonst um und uns unser unsere unserem unseren unserer unter vom von vor
wann war waren warum was weil welche welchem welchen welcher welches wem wen wenn wer werde werden weshalb wessen wie
wieder wieso wieviel will wir wird wo woher wohin worden wurde wurden während über zu zum zur zwischen
"""
_FRENCH = """
a ai ait alors as au aussi autre autres aux avait avant avec avez avoir avons c ce cela ces cet cette ceux chez ci combien
comme comment d dans de depuis des donc dont du elle elles en encore entre es est et étaient était été être eu eux fait
faire fut ici il ils j je jusque l la laquelle le lequel les lesquels leur leurs lui là m ma mais me mes moi moins mon
même n ne ni nos notre nous on ont ou où par parce pas pendant peu peut plus pour pourquoi puis qu quand que quel quelle
quelles quels qui quoi s sa sans se sera ses si son sont sous sur t ta te tes toi ton tous tout toute toutes très tu un
une va vers vos votre vous y à
"""
_SPANISH = """
a al algo alguna algunas alguno algunos ante antes aquel aquella así aunque cada como con contra cual cuales cuando
cuándo cuánto cuántos cuál cuáles cómo de del desde donde dónde dos el él ella ellas ellos en entre era eran es esa esas
ese eso esos esta está estaba están estas este esto estos fue fueron ha había han hasta hay he la las le les lo los me
mi mis muy más mí ni no nos nosotros nuestra nuestro o os otra otras otro otros para pero poco por porque por qué que qué
quien quién quiénes se sea ser si sido sin sobre solo son su sus sí también tan te tenía tiene tienen todo todos tu tus
un una uno unos usted y ya yo
"""
STOP_WORDS: dict[str, frozenset[str]] = {
    "english": frozenset(_ENGLISH.split()),
    "german": frozenset(_GERMAN.split()),
    "french": frozenset(_FRENCH.split()),
    "spanish": frozenset(_SPANISH.split()),
}
