"""Twenty-five exchanges in German: moving office, a bakery, a family, IT, a sports club."""

from __future__ import annotations

from tests.questions.exchange import LabelledExchange

EXCHANGES: tuple[LabelledExchange, ...] = (
    LabelledExchange(
        "de-umzug-termin",
        "umzug",
        "2026-01-28T14:00",
        "Wir ziehen mit dem Büro am 17. April in die Lindenstraße 4, dritter Stock. Die Spedition Kaltenbach macht "
        "es für 3.280 Euro, Kisten bringt sie zwei Wochen vorher.",
        "Notiert. Bis zum 17. April bleiben gut elf Wochen. Wichtig sind jetzt das Halteverbot vor dem Haus, das "
        "bei der Stadt zwei Wochen vorher beantragt werden muss, und der Aufzug: Fragt die Hausverwaltung, ob er "
        "für Lasten taugt.",
    ),
    LabelledExchange(
        "de-umzug-internet",
        "umzug",
        "2026-01-28T14:20",
        "Der Glasfaseranschluss im neuen Büro kommt erst am 30. Juni. Bis dahin behelfen wir uns mit einem "
        "LTE-Router von Annegret, 300 GB im Monat, Videokonferenzen nur ohne Bild.",
        "Mit 300 GB kommt ihr aus, wenn große Sicherungen nachts warten. Stellt den Router ans Fenster zur Straße "
        "und messt vorher, welcher Anbieter im Haus den besten Empfang hat.",
    ),
    LabelledExchange(
        "de-umzug-schreibtische",
        "umzug",
        "2026-01-28T14:45",
        "Von den zwölf alten Schreibtischen nehmen wir acht mit. Vier gehen an die Grundschule in Bad Nauheim, der "
        "Hausmeister dort, Herr Özdemir, holt sie am 9. April mit dem Anhänger ab.",
        "Schön, dass sie weiter genutzt werden. Lasst euch von der Grundschule eine Spendenquittung geben und "
        "schraubt die Beine vorher ab, dann passen alle vier auf einen Anhänger.",
    ),
    LabelledExchange(
        "de-umzug-kaution",
        "umzug",
        "2026-01-28T15:05",
        "Der alte Vermieter will 1.100 Euro von der Kaution behalten, weil der Teppich im Besprechungsraum Flecken "
        "hat. Unsere Anwältin Dr. Wessling sagt, nach neun Jahren ist ein Teppich nichts mehr wert.",
        "Da hat sie gute Karten: Nach etwa zehn Jahren gilt ein Teppichboden als abgewohnt. Macht Fotos vom "
        "Besprechungsraum, setzt schriftlich eine Frist von zwei Wochen und verweist auf das Alter.",
    ),
    LabelledExchange(
        "de-umzug-einweihung",
        "umzug",
        "2026-01-28T15:30",
        "Zur Einweihung am 8. Mai laden wir 60 Leute ein. Das Essen macht das syrische Lokal Jasmin, 24 Euro pro "
        "Kopf, alles ohne Schwein, die Hälfte vegetarisch.",
        "Rechnet mit zehn Absagen und meldet dem Lokal eine Woche vorher die genaue Zahl. Fragt auch nach Geschirr, "
        "und hängt Schilder mit den Zutaten auf, vor allem bei Nüssen und Sesam.",
    ),
    LabelledExchange(
        "de-mehl",
        "backstube",
        "2026-02-24T05:30",
        "Die Mühle Hagedorn hebt den Preis für Dinkelmehl auf 1,42 je Kilo. Wir bleiben trotzdem, weil die "
        "Bio-Mühle in Fulda nur alle drei Wochen fährt und wir keinen Platz zum Lagern haben.",
        "Verständlich: Lager kostet auch Geld. Vielleicht gibt euch Hagedorn einen festen Preis bis zur nächsten "
        "Ernte, wenn ihr die Menge zusagt. Fragt dann nach Säcken statt losem Mehl.",
    ),
    LabelledExchange(
        "de-sauerteig",
        "backstube",
        "2026-02-24T05:45",
        "Der Sauerteig war drei Tage lang zu sauer. Ludmilla hat gemerkt, dass der Gärschrank auf 31 statt 27 Grad "
        "stand, seit der Techniker da war. Jetzt klebt ein Zettel dran.",
        "Vier Grad mehr bringen viel Essigsäure. Ein Zettel ist gut, ein zweites Thermometer im Gärschrank ist "
        "besser, dann fällt es am ersten Morgen auf. Den Ansatz zweimal frisch füttern, danach ist er mild.",
    ),
    LabelledExchange(
        "de-ofen-wartung",
        "backstube",
        "2026-02-24T06:00",
        "Der Etagenofen verliert Dampf an der zweiten Tür. Die Dichtung hat die Nummer 88-310, kostet 95 Euro, und "
        "Monteur Brückner baut sie am Rosenmontag ein, wenn wir zu haben.",
        "Gut gelegt, der Rosenmontag kostet keinen Umsatz. Bestellt gleich eine zweite Dichtung als Vorrat, denn "
        "die anderen Türen sind gleich alt, und lasst Brückner auch die Scharniere nachstellen.",
    ),
    LabelledExchange(
        "de-samstag-schicht",
        "backstube",
        "2026-02-24T06:20",
        "Samstags fangen wir ab März um zwei statt um drei Uhr an, weil das Krankenhaus 400 Brötchen schon um sechs "
        "will. Wer das macht, kriegt 18 Euro Zuschlag und den Dienstag frei.",
        "Ein fairer Ausgleich. Achtet auf elf Stunden Ruhe zwischen Freitag und Samstag, also muss am Freitag um "
        "drei Schluss sein. Schreibt den Zuschlag in den Aushang, damit ihn jeder kennt.",
    ),
    LabelledExchange(
        "de-allergene",
        "backstube",
        "2026-02-24T06:40",
        "Bei der Kontrolle am Donnerstag fehlte die Liste der Allergene im Café. Frau Steinmetz vom Amt gibt uns 14 "
        "Tage. Mirko schreibt sie neu, mit Sesam beim Laugengebäck.",
        "Vierzehn der wichtigsten Stoffe müssen genannt werden, und zwar so, dass Gäste sie vor dem Bestellen "
        "sehen. Mirko kann mit den Rezepten anfangen; vergesst Spuren vom gemeinsamen Blech nicht.",
    ),
    LabelledExchange(
        "de-oma-pflege",
        "familie",
        "2026-03-25T19:00",
        "Oma Hedwig hat Pflegegrad 2 bekommen. Der Dienst kommt morgens um halb acht, abends schaue ich oder Tante "
        "Gisela nach ihr. Das Pflegegeld sind 347 Euro, der Rest geht direkt an den Dienst.",
        "Gut, dass es geklappt hat. Dazu stehen ihr monatlich ein Entlastungsbetrag und Hilfsmittel wie Handschuhe "
        "zu, ohne dass es vom Geld abgeht. Ein gemeinsamer Kalender mit Tante Gisela verhindert doppelte Abende.",
    ),
    LabelledExchange(
        "de-klassenfahrt",
        "familie",
        "2026-03-25T19:20",
        "Jannis fährt vom 15. bis 19. Juni mit der 6c nach Norderney. 289 Euro, Anzahlung 80 bis Ostern. Handys "
        "bleiben zu Hause, Taschengeld höchstens 40.",
        "Das wird bestimmt schön. Auf der Insel ist es im Juni abends kühl: Regenjacke und Mütze nicht vergessen. "
        "Die Anzahlung von 80 am besten gleich überweisen, mit Namen und Klasse.",
    ),
    LabelledExchange(
        "de-urlaub-tirol",
        "familie",
        "2026-03-25T19:45",
        "Im August wandern wir eine Woche in Tirol, von Hütte zu Hütte. Die Kaunergrathütte hat uns am 12. nur noch "
        "das Lager gegeben, die übrigen Nächte sind im Zimmer. Onkel Reinhold kommt mit.",
        "Für das Lager braucht ihr Hüttenschlafsäcke und Ohrstöpsel. Nehmt Bargeld mit, die wenigsten Hütten haben "
        "Empfang für Karten, und plant einen Tag Puffer für Gewitter ein.",
    ),
    LabelledExchange(
        "de-urlaub-absage",
        "familie",
        "2026-03-25T20:00",
        "Den Kurzurlaub auf Usedom im Mai haben wir abgesagt, weil Mama da an der Hüfte operiert wird. Das Hotel "
        "Seeschwalbe schreibt uns die 210 Euro Anzahlung für den Herbst gut.",
        "Gute Besserung für deine Mutter schon jetzt. Lasst euch die Gutschrift schriftlich geben, mit einem Datum, "
        "bis wann sie gilt, und fragt, ob sie auch für andere Zimmer zählt.",
    ),
    LabelledExchange(
        "de-fahrrad-kind",
        "familie",
        "2026-03-25T20:20",
        "Lottes neues Fahrrad ist ein Woom 4 in Grün, gebraucht für 260 von einer Familie in Marburg. Rahmennummer "
        "WM4-77120, die hintere Bremse zieht noch schlecht.",
        "Für 260 ist das ein guter Kauf, Woom hält den Wert. Lass den Kaufvertrag mit der Rahmennummer beim Ausweis "
        "liegen. Die Bremse ist meist nur am Zug lose, eine Umdrehung an der Schraube reicht.",
    ),
    LabelledExchange(
        "de-drucker",
        "it-betrieb",
        "2026-05-11T10:00",
        "Der Plotter im Keller druckt nur noch Streifen. Gerold hat den Druckkopf zweimal gereinigt, ohne Erfolg. "
        "Ein neuer kostet 430, ein gebrauchtes Gerät 900. Wir lassen Pläne bis auf weiteres beim Copyshop am Markt "
        "drucken.",
        "Für gelegentliche Pläne ist der Copyshop sicher billiger. Zählt drei Monate lang die Bögen: Unter etwa "
        "zwanzig im Monat lohnt sich weder ein neuer Druckkopf noch ein anderes Gerät.",
    ),
    LabelledExchange(
        "de-sicherung-band",
        "it-betrieb",
        "2026-05-11T10:25",
        "Die Monatssicherung geht jetzt auf LTO-8-Bänder, die liegen im Schließfach der Sparkasse. Frauke bringt "
        "sie immer am ersten Werktag hin und nimmt das älteste mit zurück.",
        "Ein guter Schutz, auch gegen Erpresser, denn ein Band im Fach löscht keiner aus der Ferne. Lest zweimal im "
        "Jahr eines zur Probe zurück und hebt ein zweites Laufwerk auf.",
    ),
    LabelledExchange(
        "de-telefon",
        "it-betrieb",
        "2026-05-11T10:50",
        "Die Telefonanlage zieht am 3. August in die Cloud zu Placetel. Die Faxnummer kündigen wir, nur die "
        "Notrufleitung im Aufzug bleibt analog. Ansprechpartner ist Herr Tiedemann.",
        "Klärt vorher, ob auch Alarmanlage und Frankiermaschine an der alten Leitung hängen, das fällt oft erst "
        "danach auf. Die Mitnahme der Nummern braucht etwa zehn Tage Vorlauf.",
    ),
    LabelledExchange(
        "de-erp-fehler",
        "it-betrieb",
        "2026-05-11T11:15",
        "Fehler im ERP: Bei Aufträgen mit mehr als 99 Positionen verschwindet die letzte Seite vom Lieferschein. "
        "Ticket SUP-20931 beim Hersteller, sie versprechen die Korrektur mit Version 12.4.",
        "Bis dahin könnt ihr solche Aufträge in zwei Lieferscheine teilen. Legt eine Auswertung an, die Aufträge "
        "über 99 Positionen meldet, sonst fehlt irgendwann Ware, ohne dass es einer merkt.",
    ),
    LabelledExchange(
        "de-homeoffice",
        "it-betrieb",
        "2026-05-11T11:40",
        "Ab Juli gilt: zwei Tage Homeoffice fest, einer nach Absprache. Der Betriebsrat hat durchgesetzt, dass "
        "jeder 250 Euro für einen Stuhl bekommt. Frau Dallmann führt die Liste.",
        "Klar geregelt. Haltet noch fest, was mit dem Stuhl beim Ausscheiden geschieht und ab wann die Probezeit "
        "zählt, dann erspart sich Frau Dallmann viele Fragen.",
    ),
    LabelledExchange(
        "de-sommerfest",
        "verein",
        "2026-06-16T20:00",
        "Das Sommerfest ist am 4. Juli auf dem Bolzplatz. Wiebke macht den Grill, die Feuerwehr stellt zwei "
        "Pavillons, und die Hüpfburg kostet 180 für den Tag. Regnet es, gehen wir in die Turnhalle.",
        "Denkt an die Schankerlaubnis bei der Gemeinde, spätestens zwei Wochen vorher. Für die Hüpfburg braucht ihr "
        "einen Erwachsenen als Aufsicht, am besten im Wechsel von einer Stunde.",
    ),
    LabelledExchange(
        "de-trainer",
        "verein",
        "2026-06-16T20:20",
        "Trainer Zoran hört zum Saisonende auf, seine Frau hat eine Stelle in Graz. Bis wir jemanden haben, teilen "
        "sich Malte und Ayse die D-Jugend, dienstags er, freitags sie.",
        "Schade um Zoran. Fragt beim Kreis nach, dort gibt es eine Liste von Trainern auf der Suche. Für Malte und "
        "Ayse wäre ein Zettel mit den Übungen hilfreich, damit sich nichts wiederholt.",
    ),
    LabelledExchange(
        "de-trikots",
        "verein",
        "2026-06-16T20:40",
        "Neue Trikots zahlt die Schreinerei Ullrich, 22 Stück in Weinrot, dafür steht ihr Name drei Jahre auf der "
        "Brust. Größe 152 reicht nicht, wir brauchen zwei mehr davon.",
        "Lasst euch die zwei fehlenden gleich mit bestellen, einzeln wird der Aufdruck teuer. Die Abmachung über "
        "drei Jahre gehört auf ein Blatt mit beiden Unterschriften.",
    ),
    LabelledExchange(
        "de-platzpflege",
        "verein",
        "2026-06-16T21:00",
        "Der Rasenmäher, der John Deere X350, springt nicht mehr an. Hartmut meint, es ist der Anlasser, 160 Euro, "
        "und er baut ihn selber ein. Bis dahin leiht uns die Gemeinde ihren, immer mittwochs.",
        "Vor dem Kauf lohnt ein Blick auf die Batterie und das Massekabel, die täuschen oft einen kaputten Anlasser "
        "vor. Und gebt der Gemeinde ihren immer sauber und vollgetankt zurück.",
    ),
    LabelledExchange(
        "de-kasse",
        "verein",
        "2026-06-16T21:20",
        "Kassenprüfung: 4.912 Euro auf dem Konto, 216 in bar, eine Quittung fehlt, die vom Getränkehändler "
        "Sprungmann. Prüfer waren Irmgard und der junge Behrens, Entlastung einstimmig.",
        "Ein gutes Ergebnis. Bittet den Händler um eine Zweitschrift der Quittung und legt sie zum Protokoll. Ab "
        "einem solchen Betrag auf dem Konto lohnt vielleicht ein Tagesgeld.",
    ),
)
