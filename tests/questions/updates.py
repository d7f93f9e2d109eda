"""Pairs of messages of which the later one updates the earlier one, each with a question for both states.

Every second pair was used to choose the level from which two messages are about one subject; the others are reported.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_FIRST_DAY = datetime(2026, 1, 8, 9, 30, tzinfo=UTC)
# Days between the two messages of a pair, in turn.
_DISTANCES = (4, 19, 61, 118)


@dataclass(frozen=True)
class Update:
    """Two messages on one subject, and the questions for the present and for the former state."""

    language: str
    earlier: str
    later: str
    present: str
    former: str
    answer: str
    earlier_at: str
    later_at: str


_ANSWERS = {
    "en": "Noted.",
    "de": "Ist notiert.",
    "fr": "C'est noté.",
    "es": "Anotado.",
    "it": "Annotato.",
    "pt": "Anotado.",
    "nl": "Genoteerd.",
    "pl": "Zanotowane.",
    "ru": "Записал.",
    "zh": "记下了。",
    "ja": "記録しました。",
}
_ROWS: tuple[tuple[str, str, str, str, str], ...] = (
    (
        "en",
        "Our landlord's name is Mr Fenwick, he wants the rent by bank transfer on the 3rd.",
        "The house was sold: our landlord is now Mrs Adeyemi, rent goes to her on the 1st.",
        "Who is our landlord?",
        "Who was our landlord before the house was sold?",
    ),
    (
        "en",
        "The choir rehearses on Tuesdays at half past seven in the parish hall.",
        "From next week the choir rehearses on Thursdays at eight, still in the parish hall.",
        "When does the choir rehearse?",
        "On which day did the choir use to rehearse?",
    ),
    (
        "en",
        "Leo's shoe size is 34, I measured both feet.",
        "Leo has outgrown everything again, his shoe size is 36 now.",
        "What shoe size does Leo wear?",
        "What was Leo's shoe size previously?",
    ),
    (
        "en",
        "The door code of the bike cellar is 4471.",
        "They changed the code of the bike cellar, it is 9025.",
        "What's the code for the bike cellar?",
        "what was the old code of the bike cellar?",
    ),
    (
        "en",
        "We decided to write the importer in Go because of the single binary.",
        "After the benchmark we switched: the importer will be written in Rust.",
        "Which language do we use for the importer?",
        "Which language did we originally choose for the importer?",
    ),
    (
        "en",
        "Grandma takes one tablet of bisoprolol in the morning.",
        "The cardiologist changed it, Grandma takes half a tablet of bisoprolol in the morning and half at night.",
        "How much bisoprolol does Grandma take?",
        "How much bisoprolol did Grandma take before the cardiologist changed it?",
    ),
    (
        "en",
        "Delivery of the kitchen is planned for 14 May between eight and noon.",
        "The kitchen people called, delivery is postponed to 2 June in the afternoon.",
        "When will the kitchen be delivered?",
        "What was the first delivery date for the kitchen?",
    ),
    (
        "en",
        "Our quote for the Larkin website is 6,200 euros without maintenance.",
        "After the call with Larkin we lowered the website quote to 5,400 euros.",
        "How much did we quote for the Larkin website?",
        "What did our quote for the Larkin website amount to initially?",
    ),
    (
        "en",
        "The staging server runs Debian 11 with 8 GB of memory.",
        "I upgraded the staging server to Debian 12 and gave it 16 GB of memory.",
        "What does the staging server run?",
        "What did the staging server run before the upgrade?",
    ),
    (
        "en",
        "Our contact at the printer's is Sally Hume, extension 12.",
        "Sally Hume left the printer's, our contact there is Rob Tanner, extension 31.",
        "Who is our contact at the printer's?",
        "Who was our contact at the printer's before Rob?",
    ),
    (
        "de",
        "Der Müll wird bei uns immer montags abgeholt.",
        "Die Stadt hat umgestellt, der Müll wird jetzt mittwochs abgeholt.",
        "An welchem Tag wird der Müll abgeholt?",
        "An welchem Tag wurde der Müll früher abgeholt?",
    ),
    (
        "de",
        "Das Passwort vom Gäste-WLAN lautet Kranich-77.",
        "Ich habe das Passwort vom Gäste-WLAN geändert, es heißt jetzt Reiher-12.",
        "Wie lautet das Passwort vom Gäste-WLAN?",
        "Wie lautete das alte Passwort vom Gäste-WLAN?",
    ),
    (
        "de",
        "Unser Steuerberater ist Herr Brandl aus der Lindenstraße.",
        "Wir haben gewechselt, unsere Steuerberaterin ist Frau Yilmaz am Marktplatz.",
        "Wer macht unsere Steuern?",
        "Wer hat unsere Steuern vor dem Wechsel gemacht?",
    ),
    (
        "de",
        "Für den Carport nehmen wir Lärche, unbehandelt.",
        "Doch keine Lärche: den Carport bauen wir aus Douglasie, das spart 900 Euro.",
        "Aus welchem Holz bauen wir den Carport?",
        "Welches Holz war ursprünglich für den Carport geplant?",
    ),
    (
        "de",
        "Emma geht in die Löwengruppe, Erzieherin ist Frau Scholz.",
        "Emma ist seit den Ferien in der Igelgruppe bei Herrn Dogan.",
        "In welcher Gruppe ist Emma?",
        "In welcher Gruppe war Emma vorher?",
    ),
    (
        "de",
        "Die Vereinsbeiträge betragen 48 Euro im Jahr, Jugendliche zahlen 20.",
        "Die Versammlung hat beschlossen: die Vereinsbeiträge steigen auf 60 Euro, Jugendliche zahlen weiter 20.",
        "Wie hoch sind die Vereinsbeiträge?",
        "Wie hoch waren die Vereinsbeiträge vor der Erhöhung?",
    ),
    (
        "de",
        "Das Treffen mit der Agentur ist am 9. März um 10 Uhr in Köln.",
        "Das Treffen mit der Agentur ist verschoben auf den 23. März um 14 Uhr, per Video.",
        "Wann ist das Treffen mit der Agentur?",
        "Wann sollte das Treffen mit der Agentur zuerst stattfinden?",
    ),
    (
        "de",
        "Der Ersatzschlüssel liegt bei Familie Pohl im Erdgeschoss.",
        "Familie Pohl zieht aus, der Ersatzschlüssel liegt ab jetzt bei Frau Nowak im zweiten Stock.",
        "Bei wem liegt der Ersatzschlüssel?",
        "Bei wem lag der Ersatzschlüssel vorher?",
    ),
    (
        "fr",
        "Le médecin de Papi est le docteur Lemoine, rue des Tilleuls.",
        "Le docteur Lemoine part à la retraite, le médecin de Papi est désormais la docteure Haddad.",
        "Qui est le médecin de Papi ?",
        "Qui était le médecin de Papi avant la docteure Haddad ?",
    ),
    (
        "fr",
        "Le panier de légumes coûte 12 euros, à prendre le vendredi.",
        "Le panier de légumes passe à 14 euros et se prend maintenant le samedi.",
        "Combien coûte le panier de légumes ?",
        "Combien coûtait le panier de légumes avant ?",
    ),
    (
        "fr",
        "Pour la chambre nous avons choisi un vert sauge, deux pots chez Ripolin.",
        "Finalement la chambre sera bleu nuit, j'ai échangé les pots chez Ripolin.",
        "Quelle couleur avons-nous choisie pour la chambre ?",
        "Quelle couleur avions-nous choisie au départ pour la chambre ?",
    ),
    (
        "fr",
        "La réunion d'équipe a lieu le lundi à 9 h dans la salle Garonne.",
        "La réunion d'équipe est déplacée au mardi à 10 h, salle Dordogne.",
        "Quel jour a lieu la réunion d'équipe ?",
        "Quel jour avait lieu la réunion d'équipe auparavant ?",
    ),
    (
        "fr",
        "Le code du portail du jardin partagé est 2580.",
        "Nouveau code du portail du jardin partagé : 7413.",
        "Quel est le code du portail du jardin partagé ?",
        "Quel était l'ancien code du portail du jardin partagé ?",
    ),
    (
        "fr",
        "Nous livrons la version 2 de l'application le 15 avril.",
        "La livraison de la version 2 de l'application est repoussée au 20 mai.",
        "Quand livrons-nous la version 2 de l'application ?",
        "À quelle date devait-on livrer la version 2 de l'application à l'origine ?",
    ),
    (
        "es",
        "La clase de pilates es los lunes a las siete con Marta.",
        "La clase de pilates pasa a los miércoles a las ocho, ahora la da Inés.",
        "¿Qué día es la clase de pilates?",
        "¿Qué día era antes la clase de pilates?",
    ),
    (
        "es",
        "El proveedor de harina es Molinos del Duero, pedimos 200 kilos al mes.",
        "Hemos cambiado de proveedor de harina: ahora es Harinera La Vega, 180 kilos al mes.",
        "¿Quién nos suministra la harina?",
        "¿Quién nos suministraba la harina antes del cambio?",
    ),
    (
        "es",
        "La contraseña del proyector del aula es gaviota5.",
        "Han cambiado la contraseña del proyector del aula, es albatros9.",
        "¿Cuál es la contraseña del proyector?",
        "¿Cuál era la contraseña antigua del proyector?",
    ),
    (
        "es",
        "El alquiler del local es de 850 euros al mes.",
        "Nos suben el alquiler del local a 920 euros al mes desde julio.",
        "¿Cuánto pagamos de alquiler por el local?",
        "¿Cuánto pagábamos de alquiler por el local antes de la subida?",
    ),
    (
        "es",
        "Bruno juega de portero en el equipo alevín.",
        "El entrenador ha movido a Bruno, ahora juega de lateral izquierdo.",
        "¿De qué juega Bruno?",
        "¿En qué posición jugaba Bruno al principio?",
    ),
    (
        "es",
        "La boda de Irene será el 6 de junio en la finca Los Olmos.",
        "Irene cambia la fecha de la boda: será el 12 de septiembre, en la misma finca.",
        "¿Cuándo es la boda de Irene?",
        "¿Qué fecha tenía en un principio la boda de Irene?",
    ),
    (
        "zh",
        "公司的班车早上七点半从东门出发。",
        "班车时间调整了，现在早上八点从南门出发。",
        "公司班车几点出发？",
        "公司班车以前几点出发？",
    ),
    (
        "zh",
        "女儿的钢琴老师是周老师，每周六上课。",
        "女儿换了钢琴老师，现在是林老师，每周日上课。",
        "女儿的钢琴老师是谁？",
        "女儿原来的钢琴老师是谁？",
    ),
    (
        "zh",
        "仓库的门禁密码是3306。",
        "仓库的门禁密码改成8817了。",
        "仓库的门禁密码是多少？",
        "仓库门禁以前的密码是多少？",
    ),
    (
        "zh",
        "新产品的定价是299元。",
        "开会讨论后，新产品的定价改为259元。",
        "新产品定价多少？",
        "新产品最初的定价是多少？",
    ),
    (
        "zh",
        "爸爸每天吃一片降压药，饭前吃。",
        "医生调整了，爸爸的降压药改成每天半片，饭后吃。",
        "爸爸的降压药怎么吃？",
        "医生调整之前，爸爸的降压药怎么吃？",
    ),
    (
        "zh",
        "我们的项目用MySQL存数据。",
        "项目数据库已经迁移到PostgreSQL了。",
        "项目用什么数据库？",
        "迁移之前项目用的是什么数据库？",
    ),
    (
        "it",
        "Il corso di ceramica si tiene il giovedì sera da Paola.",
        "Il corso di ceramica è spostato al martedì sera, sempre da Paola.",
        "Quando si tiene il corso di ceramica?",
        "In che giorno si teneva prima il corso di ceramica?",
    ),
    (
        "it",
        "L'idraulico di fiducia è Sergio Conti, 340 555 0182.",
        "Sergio Conti ha chiuso, il nostro idraulico adesso è Davide Riva.",
        "Chi è il nostro idraulico?",
        "Chi era il nostro idraulico prima di Davide?",
    ),
    (
        "it",
        "Il bagno lo facciamo con piastrelle bianche lucide.",
        "Abbiamo cambiato idea: per il bagno prendiamo piastrelle verde salvia opache.",
        "Che piastrelle prendiamo per il bagno?",
        "Quali piastrelle avevamo scelto all'inizio per il bagno?",
    ),
    (
        "pt",
        "O treino de natação da Sofia é às segundas e quartas.",
        "O treino de natação da Sofia passou para as terças e quintas.",
        "Em que dias é o treino de natação da Sofia?",
        "Em que dias era antes o treino de natação da Sofia?",
    ),
    (
        "pt",
        "A senha do cofre da loja é 5519.",
        "Trocámos a senha do cofre da loja, agora é 2047.",
        "Qual é a senha do cofre da loja?",
        "Qual era a senha antiga do cofre da loja?",
    ),
    (
        "pt",
        "O nosso fornecedor de café é a Torrefação Aurora.",
        "Mudámos de fornecedor de café, agora é a Casa Monção.",
        "Quem é o nosso fornecedor de café?",
        "Quem era o nosso fornecedor de café antes da mudança?",
    ),
    (
        "nl",
        "De huur van de loods is 640 euro per maand.",
        "De huur van de loods gaat omhoog naar 710 euro per maand.",
        "Hoeveel huur betalen we voor de loods?",
        "Hoeveel huur betaalden we vroeger voor de loods?",
    ),
    (
        "nl",
        "De afspraak bij de orthodontist is op 11 april om 15 uur.",
        "De orthodontist heeft gebeld, de afspraak is verzet naar 25 april om 9 uur.",
        "Wanneer is de afspraak bij de orthodontist?",
        "Wanneer was de afspraak bij de orthodontist oorspronkelijk?",
    ),
    (
        "nl",
        "Onze hoofdsponsor is bakkerij Van Dam.",
        "Bakkerij Van Dam is gestopt, onze hoofdsponsor is nu garage Kuipers.",
        "Wie is onze hoofdsponsor?",
        "Wie was onze hoofdsponsor vóór garage Kuipers?",
    ),
    (
        "pl",
        "Wywóz szkła jest w pierwszy wtorek miesiąca.",
        "Zmienili harmonogram, wywóz szkła jest teraz w drugi piątek miesiąca.",
        "Kiedy jest wywóz szkła?",
        "Kiedy wcześniej był wywóz szkła?",
    ),
    (
        "pl",
        "Wychowawczynią Kuby jest pani Zielińska.",
        "Od lutego wychowawcą Kuby jest pan Wrona, pani Zielińska odeszła.",
        "Kto jest wychowawcą Kuby?",
        "Kto był wychowawcą Kuby przed panem Wroną?",
    ),
    (
        "ru",
        "Тренировка по дзюдо у Пети по вторникам в шесть.",
        "Тренировку по дзюдо у Пети перенесли на четверг, на семь.",
        "Когда у Пети тренировка по дзюдо?",
        "Когда раньше была тренировка по дзюдо у Пети?",
    ),
    (
        "ru",
        "Пароль от школьного дневника: снегирь21.",
        "Поменяла пароль от школьного дневника, теперь синица40.",
        "Какой пароль от школьного дневника?",
        "Какой был старый пароль от школьного дневника?",
    ),
    (
        "ru",
        "Бухгалтерию ведёт Ольга Сергеевна, звонить до пяти.",
        "Ольга Сергеевна ушла, бухгалтерию теперь ведёт Тимур.",
        "Кто ведёт бухгалтерию?",
        "Кто вёл бухгалтерию до Тимура?",
    ),
    (
        "ja",
        "社内勉強会は毎週月曜の18時からです。",
        "社内勉強会は毎週木曜の17時からに変わりました。",
        "社内勉強会はいつですか？",
        "社内勉強会は以前は何曜日でしたか？",
    ),
    (
        "ja",
        "倉庫の鍵は佐藤さんが管理しています。",
        "佐藤さんが異動したので、倉庫の鍵は今は中村さんが管理しています。",
        "倉庫の鍵は誰が管理していますか？",
        "中村さんの前は誰が倉庫の鍵を管理していましたか？",
    ),
    (
        "ja",
        "新サービスの月額料金は980円に決まりました。",
        "新サービスの月額料金を1280円に変更しました。",
        "新サービスの月額料金はいくらですか？",
        "新サービスの月額料金は当初いくらでしたか？",
    ),
)


def _build(number: int, row: tuple[str, str, str, str, str]) -> Update:
    earlier_at = _FIRST_DAY + timedelta(days=2 * number, hours=number % 7)
    later_at = earlier_at + timedelta(days=_DISTANCES[number % len(_DISTANCES)])
    return Update(*row, _ANSWERS[row[0]], f"{earlier_at:%Y-%m-%dT%H:%M}", f"{later_at:%Y-%m-%dT%H:%M}")


UPDATES = tuple(_build(number, row) for number, row in enumerate(_ROWS))
TUNING, HELD_OUT = UPDATES[::2], UPDATES[1::2]
