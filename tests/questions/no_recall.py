"""Messages that should recall nothing: small talk, tasks, near misses, and small talk after a topic."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SmallTalkAfterTopic:
    """Small talk that follows two messages on a topic of the exchanges."""

    before: tuple[str, str]
    message: str


SMALL_TALK: tuple[str, ...] = (
    "hi",
    "Hello there!",
    "good morning",
    "Good evening, Cato",
    "hey, how are you?",
    "How's it going?",
    "are you there?",
    "thanks",
    "thank you so much!",
    "thanks, that worked",
    "Thanks, that was quick.",
    "ok",
    "ok great",
    "okay, sounds good",
    "perfect",
    "Great, that's exactly what I wanted.",
    "cool",
    "nice one",
    "lol",
    "haha, you made my day",
    "wow, really?",
    "oh no",
    "hm, I see",
    "yes please",
    "no, never mind",
    "sorry, wrong window",
    "bye, talk to you tomorrow",
    "Have a nice weekend!",
    "that makes sense now",
    "you're welcome",
    "👍",
    "Hallo",
    "Guten Morgen!",
    "Moin, wie geht's?",
    "danke",
    "Danke schön, das hat mir sehr geholfen.",
    "super, passt",
    "alles klar, dann mache ich das so",
    "ach so, verstehe",
    "echt jetzt?",
    "Schönen Feierabend!",
    "tschüss, bis morgen",
    "bonjour",
    "Salut, ça va ?",
    "merci",
    "merci beaucoup, c'est parfait",
    "d'accord, je comprends mieux",
    "ah bon ?",
    "super, bonne journée à toi",
    "trop drôle !",
    "à demain",
    "hola",
    "Buenos días, ¿qué tal?",
    "gracias",
    "muchas gracias, me ha servido mucho",
    "vale, perfecto",
    "¿en serio?",
    "jajaja qué bueno",
    "hasta luego",
    "no te preocupes, todo bien",
)

# Self-contained tasks that no exchange helps with.
TASKS: tuple[str, ...] = (
    "Write a poem of four lines about fog on a river.",
    "Give me a regex that matches an IPv4 address.",
    "What is the longest river of South America?",
    "Explain TCP slow start in two paragraphs.",
    'Translate "The early bird catches the worm" into Italian.',
    "How many feet are there in a mile?",
    "Write a Python function that reverses a linked list.",
    "Who wrote The Brothers Karamazov?",
    "What is the difference between a virus and a bacterium?",
    "Solve 3x + 7 = 22 for x.",
    "Summarise the rules of chess for a beginner.",
    "What causes the northern lights?",
    'Turn this into the passive voice: "The gardener planted a tree."',
    "Which planets of the solar system have rings?",
    "Convert 72 degrees Fahrenheit to Celsius.",
    'Give me five synonyms for "beautiful".',
    "How does a diesel engine differ from a petrol engine?",
    "Write a SQL query that finds duplicate rows by two columns.",
    "What year did the Berlin Wall fall?",
    "Explain recursion to a ten-year-old.",
    "What is the square root of 1764?",
    "Draft a limerick about a sailor who could not swim.",
    'How do you say "where is the station" in Portuguese?',
    "What is the difference between affect and effect?",
    "Name the noble gases in order.",
    "How do I undo the last commit in git without losing changes?",
    "What does the HTTP status 418 mean?",
    "Who was the first woman in space?",
    "Explain what a hash table is and when it is slow.",
    "Write a short fairy tale about a hedgehog and the moon.",
    "Schreibe ein Gedicht über den ersten Schnee.",
    "Was ist die Hauptstadt der Mongolei?",
    "Erkläre mir den Unterschied zwischen dass und das.",
    "Wie funktioniert ein Kühlschrank?",
    'Übersetze ins Englische: "Morgenstund hat Gold im Mund."',
    "Wer komponierte die Zauberflöte?",
    "Wie lautet die Formel für den Flächeninhalt eines Kreises?",
    "Nenne drei Nebenflüsse der Donau.",
    "Was bedeutet das Wort Serendipität?",
    "Schreib mir eine Bash-Schleife, die alle Dateien mit der Endung .log zählt.",
    "Welche Tiere halten Winterschlaf?",
    "Wie viele Bundesländer hat Österreich?",
    "Erzähl mir einen Witz über Mathematiker.",
    "Écris un haïku sur la mer.",
    "Quelle est la capitale de l'Australie ?",
    "Explique-moi la photosynthèse simplement.",
    'Conjugue le verbe "venir" au passé simple.',
    "Qui a peint Les Nymphéas ?",
    "Combien font 17 fois 23 ?",
    'Traduis en anglais : "Il pleut des cordes."',
    "Comment fonctionne une éclipse de lune ?",
    "Donne-moi trois mots qui riment avec soleil.",
    "Quelle est la différence entre la pile et la file en informatique ?",
    "Escribe un cuento breve sobre un gato astronauta.",
    "¿Cuál es la capital de Nueva Zelanda?",
    "¿Quién pintó el Guernica?",
    "¿Cómo se calcula el área de un triángulo?",
    'Traduce al inglés: "Más vale tarde que nunca."',
    "Explica qué es la inflación en pocas palabras.",
    "¿Cuántos huesos tiene el cuerpo humano adulto?",
)

# The exchanges mention the topic, but not what is asked.
NEAR_MISSES: tuple[str, ...] = (
    "What is the IP address of kestrel-02?",
    "Which firmware does kestrel-02 run?",
    "What did the storage box in Falkenstein cost us last year?",
    "What is Brannigan's phone number?",
    "Where do we buy the Osmo oil?",
    "Which colour are Pentland's cartons inside?",
    "How many rows does the orders table have?",
    "What is the password of the Instatus account?",
    "What salary do we pay Petra Novak?",
    "Which school did Casper go to?",
    "How many apprentices do we have in the third year?",
    "Which airline do we fly with to Madeira?",
    "Which pitch number did we have at Loch Morlich?",
    "What is the number of Finn's passport?",
    "Which bus company drives 5B to the museum?",
    "What mark did Maryam get in chemistry?",
    "Which brand is our washing machine?",
    "How long is the fence between us and the Abernathys?",
    "Who painted the hall?",
    "How old is Pickle?",
    "How many years have I had the knee pain?",
    "What is the address of the dentist?",
    "How many kilowatts do the solar panels deliver?",
    "How large is the studio in square metres?",
    "Who founded Blackthorn Dairies?",
    "What is the name of our contact at Peoplesave?",
    "Which brand of camera hangs at the loading bay?",
    "Which programming library does Noor draw the charts with?",
    "Wie hoch ist die Miete in der Lindenstraße?",
    "In welcher Stadt sitzt die Mühle Hagedorn?",
    "Wie alt wird Oma Hedwig dieses Jahr?",
    "Wie heißt die Lehrerin der 6c von Jannis?",
    "Wie viele Kinder spielen in der D-Jugend?",
    "Wie viel Speicher hat unser ERP-Server?",
    "Quel âge a Solange ?",
    "À quelle heure commence le vide-grenier ?",
    "De quelle couleur est la Kangoo ?",
    "¿Cómo se llama el novio de Rocío?",
    "¿En qué año se abrió el taller de bicis?",
    "¿Cuántos socios tiene la cooperativa Valdeolmos?",
)

AFTER_TOPIC: tuple[SmallTalkAfterTopic, ...] = (
    SmallTalkAfterTopic(
        ("Which disk did we order for kestrel-02?", "So I swap disk 3 while it runs?"), "thanks, that worked"
    ),
    SmallTalkAfterTopic(("How many daily dumps of the shop do we keep?", "And how many weekly ones?"), "ok great"),
    SmallTalkAfterTopic(("Who in design got a Samsung T7?", "When does Time Machine run?"), "perfect, thank you!"),
    SmallTalkAfterTopic(
        ("How much more does a Blum hinge cost?", "And how many of Dettmer's were bad?"), "wow, seven. No wonder"
    ),
    SmallTalkAfterTopic(("What did we tell Noreen about leaving?", "How much do they owe us?"), "haha good one"),
    SmallTalkAfterTopic(("What locked the orders table?", "How long was it?"), "ouch"),
    SmallTalkAfterTopic(("Which test failed after midnight?", "Was it the clock?"), "nice, that explains it"),
    SmallTalkAfterTopic(
        ("Until when is Madeira free to cancel?", "How much was it without flights?"), "lovely, thanks"
    ),
    SmallTalkAfterTopic(("Who is off in July?", "And can one more go?"), "cool, good to know"),
    SmallTalkAfterTopic(("Where did we camp at half-term?", "What do the pods cost a night?"), "you are the best"),
    SmallTalkAfterTopic(("When does Finn's passport run out?", "Which form is missing?"), "got it"),
    SmallTalkAfterTopic(
        ("What did Dougal charge for the washing machine?", "How long will the bearings last?"), "cheers!"
    ),
    SmallTalkAfterTopic(
        ("Which blue did we use in the hall?", "Is there any paint left?"), "brilliant, exactly what I needed"
    ),
    SmallTalkAfterTopic(
        ("How often must I do the exercises with the band?", "And when may I run again?"), "all right, will do"
    ),
    SmallTalkAfterTopic(
        ("Which form goes to the insurance for the splint?", "Before or after it is made?"), "phew, glad I asked"
    ),
    SmallTalkAfterTopic(("How much was the VAT penalty?", "Who files it now?"), "makes sense"),
    SmallTalkAfterTopic(("Which hospital wanted the demo?", "What blocked it?"), "great, that's all for now"),
    SmallTalkAfterTopic(("How many customers left last year?", "What did most of them say?"), "interesting, thank you"),
    SmallTalkAfterTopic(("What is the gateway of the VPN called?", "When does the old tunnel go off?"), "thx"),
    SmallTalkAfterTopic(("Which blade did Alasdair fit?", "And he moved the guide?"), "yes, that did it!"),
    SmallTalkAfterTopic(
        ("What is the dust limit at the sanding table?", "Until when do we have time?"),
        "okay, thanks a lot for your help",
    ),
    SmallTalkAfterTopic(("Wann ist das Sommerfest?", "Und wer macht den Grill?"), "super, danke dir!"),
    SmallTalkAfterTopic(("Welcher Mäher springt nicht an?", "Was kostet der Anlasser?"), "alles klar"),
    SmallTalkAfterTopic(
        ("Wie viel Pflegegeld bekommt Oma Hedwig?", "Wer schaut abends nach ihr?"), "vielen Dank, das hilft mir sehr"
    ),
    SmallTalkAfterTopic(("Warum haben wir Usedom abgesagt?", "Was ist mit der Anzahlung?"), "ach ja, stimmt!"),
    SmallTalkAfterTopic(("Welche Liste fehlte bei der Kontrolle im Café?", "Wie lange haben wir Zeit?"), "puh, na gut"),
    SmallTalkAfterTopic(("Was druckt der Plotter noch?", "Was kostet ein neuer Druckkopf?"), "haha, der war gut"),
    SmallTalkAfterTopic(("Wann kommt das LTO-Band ins Schließfach?", "Wer bringt es hin?"), "prima"),
    SmallTalkAfterTopic(("Wie viele Tage Homeoffice sind fest?", "Was gibt es für den Stuhl?"), "danke, hat geklappt"),
    SmallTalkAfterTopic(
        ("Combien de bénévoles viennent aider aux devoirs ?", "Et on leur rembourse le train ?"), "parfait, merci"
    ),
    SmallTalkAfterTopic(("Qui est la nouvelle présidente ?", "Avec combien de voix ?"), "ah super, merci beaucoup !"),
    SmallTalkAfterTopic(
        ("Quelle commission prend la boutique de Lyon ?", "Combien de sacs ont-ils pris ?"), "d'accord"
    ),
    SmallTalkAfterTopic(("Quand loue-t-on la maison à Plouhinec ?", "Le chien est accepté ?"), "génial !"),
    SmallTalkAfterTopic(
        ("Quel jour tout le monde est-il au bureau ?", "Et l'hôtel de Joséphine ?"), "ça marche, bonne soirée"
    ),
    SmallTalkAfterTopic(("Combien nous doit le Tamarillo ?", "La relance est partie quand ?"), "perfect, merci"),
    SmallTalkAfterTopic(("¿Cuánto cobra Montalbán de más?", "¿Las centra a mano?"), "vale, gracias"),
    SmallTalkAfterTopic(
        ("¿Cuántas etapas hacemos desde Sarria?", "¿Quién lleva las mochilas?"), "¡qué bien, muchas gracias!"
    ),
    SmallTalkAfterTopic(("¿De dónde viene la gotera del salón?", "¿Cuánto paga el seguro?"), "entendido"),
    SmallTalkAfterTopic(("¿Cuánta agua del pozo nos queda?", "¿Regamos el césped?"), "jajaja, muy buena"),
    SmallTalkAfterTopic(("¿Cuándo viene la auditora?", "¿Qué registro faltaba?"), "perfecto, ya está solucionado"),
)
