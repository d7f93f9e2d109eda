"""Questions in conversations: forty depend on previous messages, and forty change the topic."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FollowUp:
    """An elliptic question after two messages on its topic, the complete question, and the expected exchange."""

    before: tuple[str, str]
    asks: str
    in_full: str
    key: str


@dataclass(frozen=True)
class Change:
    """A complete question after two messages on another topic, and the expected exchange."""

    before: tuple[str, str]
    asks: str
    key: str


FOLLOW_UPS: tuple[FollowUp, ...] = (
    FollowUp(
        ("Do you remember what I told you about the NAS?", "It was the one making noises in the server cupboard."),
        "and which replacement did I order?",
        "Which replacement disk did I order for the clicking NAS in the server cupboard?",
        "nas-disk",
    ),
    FollowUp(
        (
            "We tested getting the accounts back from backup in January, right?",
            "I think the drill itself took less than an hour.",
        ),
        "who did that with me?",
        "Who did the restore drill of the bookkeeping folder with me in January?",
        "restore-drill",
    ),
    FollowUp(
        ("Which timber merchant did I call about oak boards in January?", "How much was it for the two cubic metres?"),
        "why did they want the money first?",
        "Why did Brannigan Timber want payment up front for the oak boards?",
        "oak-supplier",
    ),
    FollowUp(
        ("Where do our cartons come from now?", "Are the new ones double wall?"),
        "from how many do they print for free?",
        "From how many cartons does Pentland print our logo for free?",
        "box-maker",
    ),
    FollowUp(
        ("We had a bad release at the beginning of February.", "It was 4.7.2, the one with the slow migration."),
        "how long did it last?",
        "How long was the orders table locked by the migration of 4.7.2?",
        "release-rollback",
    ),
    FollowUp(
        ("After the outage we wanted to tell customers sooner.", "So we got a status page."),
        "who writes there, and how fast?",
        "Who posts on the status page during an outage, and within how many minutes?",
        "status-page",
    ),
    FollowUp(
        ("Whom did we talk to about production planning in February?", "And what did we offer her?"),
        "and when does she start?",
        "When does Petra Novak start as production planner?",
        "hire-petra",
    ),
    FollowUp(
        ("What was the plan for the first week of new people?", "So Monday is keys and the safety tour?"),
        "and the day after?",
        "What do new people do on Tuesday of their first week?",
        "onboarding-week",
    ),
    FollowUp(
        ("We are off to an island at Easter.", "I told you about the place in Madeira we booked."),
        "until when can we still get out of it?",
        "Until which date is cancelling the booking in Madeira free?",
        "madeira-trip",
    ),
    FollowUp(
        ("We talked about closing the office over Christmas.", "From the twenty-third on, I believe."),
        "how many days does that cost each of us?",
        "How many days of allowance does the Christmas closure cost each of us?",
        "xmas-closure",
    ),
    FollowUp(
        ("Which colours did we paint the hall in?", "And the lighter one is above the rail?"),
        "is there any left, and where?",
        "Where is the paint left over from the hall?",
        "paint-colours",
    ),
    FollowUp(
        ("I told you where the spare keys are.", "One set is in the lockbox."),
        "and the other one?",
        "Who has the other set of spare keys besides the lockbox by the compost?",
        "spare-keys",
    ),
    FollowUp(
        ("The dentist wants to make me a splint.", "The insurance only pays part of it."),
        "how much is left for me?",
        "How much of the splint's 280 do I pay myself after the insurance?",
        "dentist-night",
    ),
    FollowUp(
        ("The landlord of the studio wants something new from us.", "Index-linked rent, it was."),
        "what do we do if they refuse the cap?",
        "What do we do about the studio if the landlord refuses the cap on the index-linked rent?",
        "rent-studio",
    ),
    FollowUp(
        ("We changed the way people connect from home.", "It is WireGuard instead of OpenVPN."),
        "until when does the old one still work?",
        "On which date is the old OpenVPN tunnel switched off?",
        "vpn-switch",
    ),
    FollowUp(
        ("We changed the curve of the big kiln.", "Because stoneware kept cracking."),
        "and how hot does it get at the end?",
        "Up to how many degrees does the new stoneware curve of the big kiln go?",
        "kiln-curve",
    ),
    FollowUp(
        ("The forklift had its yearly check.", "It passed, though something was worn."),
        "which side was it?",
        "Which fork of the forklift shows wear, the left or the right?",
        "forklift-service",
    ),
    FollowUp(
        ("What do we remove from the product in version 6?", "The dashboard widgets, right?"),
        "why did we drop them?",
        "Why do we drop the dashboard widgets in version 6?",
        "drop-widgets",
    ),
    FollowUp(
        ("Who translates into Polish and Czech for us now?", "What went wrong in the first batch from Lingvara?"),
        "tell me more about the price",
        "What does Lingvara charge for translating into Polish and Czech?",
        "translation-vendor",
    ),
    FollowUp(
        ("Which two houses did we compare for the retreat?", "How many beds does Glenfarg Lodge have?"),
        "what about the second one?",
        "How many beds does the mill in Hay have for the autumn retreat?",
        "offsite-venue",
    ),
    FollowUp(
        ("Wohin zieht unser Büro um?", "In welchen Stock der Lindenstraße?"),
        "und wann war das noch mal?",
        "Wann ziehen wir mit dem Büro in die Lindenstraße um?",
        "de-umzug-termin",
    ),
    FollowUp(
        ("Wir planen eine Einweihung im neuen Büro.", "Um das Essen kümmert sich das Lokal Jasmin."),
        "und was kostet das pro Person?",
        "Was kostet das Essen vom Lokal Jasmin bei der Einweihung pro Person?",
        "de-umzug-einweihung",
    ),
    FollowUp(
        ("Unsere Mühle ist teurer geworden.", "Beim Dinkelmehl haben sie den Preis erhöht."),
        "warum gehen wir nicht zu der anderen?",
        "Warum wechseln wir beim Dinkelmehl nicht zur Bio-Mühle in Fulda?",
        "de-mehl",
    ),
    FollowUp(
        ("Ab März fangen wir samstags früher an.", "Es ist wegen der Brötchen für das Krankenhaus."),
        "was bekommt man dafür?",
        "Was bekommt, wer ab März samstags um zwei Uhr anfängt?",
        "de-samstag-schicht",
    ),
    FollowUp(
        ("Jannis fährt im Juni mit der Klasse weg.", "Es geht auf eine Insel, nach Norderney."),
        "und das Handy?",
        "Darf Jannis das Handy auf die Klassenfahrt nach Norderney mitnehmen?",
        "de-klassenfahrt",
    ),
    FollowUp(
        ("Wo wandern wir im August in Tirol?", "In welcher Hütte gab es kein Zimmer mehr?"),
        "und wer war noch mal dabei?",
        "Wer wandert im August mit uns in Tirol?",
        "de-urlaub-tirol",
    ),
    FollowUp(
        ("Lotte hat ein neues Fahrrad.", "Wir haben es gebraucht gekauft."),
        "was war daran noch nicht in Ordnung?",
        "Was war an Lottes gebrauchtem Fahrrad noch nicht in Ordnung?",
        "de-fahrrad-kind",
    ),
    FollowUp(
        ("Anfang Juli feiern wir das Sommerfest.", "Die Feuerwehr hilft uns dabei."),
        "und wenn das Wetter schlecht ist?",
        "Wohin gehen wir mit dem Sommerfest, wenn es regnet?",
        "de-sommerfest",
    ),
    FollowUp(
        ("Wie ging die Kassenprüfung im Verein aus?", "War Irmgard eine der Prüfer?"),
        "und der zweite?",
        "Wer war neben Irmgard der zweite Prüfer der Kassenprüfung?",
        "de-kasse",
    ),
    FollowUp(
        ("À l'assemblée générale on a décidé plusieurs choses.", "On a supprimé le loto, entre autres."),
        "et pourquoi ?",
        "Pourquoi a-t-on supprimé le loto à l'assemblée générale ?",
        "fr-assemblee",
    ),
    FollowUp(
        ("On a changé une partie de nos commandes de cuir.", "La moitié vient de Millau maintenant."),
        "et c'est combien le mètre ?",
        "Combien coûte le mètre carré de cuir chez Ortega à Millau ?",
        "fr-fournisseur-cuir",
    ),
    FollowUp(
        ("On a arrêté de faire le salon de Nantes.", "Le stand coûtait trop cher pour ce qu'on y vendait."),
        "et on va où à la place ?",
        "Dans quels marchés allons-nous à la place du salon de Nantes ?",
        "fr-salon",
    ),
    FollowUp(
        ("Léandre ne mange plus à la cantine tous les jours.", "Une fois par semaine il va chez sa marraine."),
        "c'est quel jour, déjà ?",
        "Quel jour Léandre va-t-il manger chez sa marraine au lieu de la cantine ?",
        "fr-cantine",
    ),
    FollowUp(
        ("Le site de la mutuelle prend du retard.", "C'est repoussé à octobre."),
        "à cause de quoi ?",
        "Pourquoi la refonte du site de la mutuelle Armorique est-elle repoussée ?",
        "fr-refonte",
    ),
    FollowUp(
        ("Quel hébergeur quitte-t-on cet été ?", "C'est à cause des pannes ?"),
        "il y en avait eu combien ?",
        "Combien de pannes y avait-il eu en mai chez l'hébergeur Gandalia ?",
        "fr-hebergement",
    ),
    FollowUp(
        ("Hemos cambiado de proveedor de ruedas.", "Las del anterior llegaban torcidas."),
        "¿y cuánto más cobra el nuevo?",
        "¿Cuánto más cobra Montalbán por cada rueda?",
        "es-proveedor-ruedas",
    ),
    FollowUp(
        ("¿Desde dónde hacemos el Camino este año?", "¿Cuántas etapas son con los niños?"),
        "¿y quién nos lleva el equipaje?",
        "¿Quién lleva las mochilas en el Camino desde Sarria?",
        "es-vacaciones-camino",
    ),
    FollowUp(
        ("Ya hemos elegido instituto para Candela.", "Es el Rosalía de Castro."),
        "¿por qué no el otro?",
        "¿Por qué elegimos el Rosalía de Castro para Candela y no el otro instituto?",
        "es-colegio",
    ),
    FollowUp(
        ("Nos han limitado el agua del pozo.", "Son unos miles de metros cúbicos por temporada."),
        "¿cuánto llevamos gastado?",
        "¿Cuántos metros cúbicos del pozo llevamos gastados esta temporada?",
        "es-pozo",
    ),
    FollowUp(
        ("¿Qué le pasa al tractor?", "¿Hasta cuándo no puede venir el mecánico?"),
        "¿y qué usamos mientras?",
        "¿Qué tractor usamos mientras el Kubota pierde aceite?",
        "es-tractor",
    ),
)

CHANGES: tuple[Change, ...] = (
    Change(
        ("What was the plan for the duff disk in the NAS?", "And how big is the one we ordered?"),
        "Which guest house did we book on Madeira?",
        "madeira-trip",
    ),
    Change(
        ("How often does restic push to the storage box?", "Who holds the halves of the passphrase?"),
        "What does Brannigan Timber charge for two cubic metres of oak?",
        "oak-supplier",
    ),
    Change(
        ("What did Lucas say about the Dettmer hinges?", "So Blum costs more per hinge?"),
        "Who won the science fair, and with which project?",
        "science-fair",
    ),
    Change(
        ("Which finish was it for the nursery furniture?", "How many coats of the hardwax oil?"),
        "When are deploys allowed, and who has to be online?",
        "deploy-window",
    ),
    Change(
        ("How many cartons must we order from Pentland?", "Is the logo printed for free?"),
        "What did the vet say Pickle may eat now?",
        "cat-diet",
    ),
    Change(
        ("What did ParcelSwift break this time?", "How much did we ask for the table legs?"),
        "Who has our spare keys?",
        "spare-keys",
    ),
    Change(
        ("Why did we roll back 4.7.2?", "Which table was locked?"),
        "What did the repair man find in the pump of the washing machine?",
        "washing-machine",
    ),
    Change(
        ("Who owns OPS-4417?", "And what does Marek want from now on?"),
        "How much do apprentices get a month in their first year?",
        "apprentice-pay",
    ),
    Change(
        ("Which test was flaky after midnight?", "How did Yusuf fix it?"),
        "Where do we put the money for the next upholsterer advert?",
        "job-advert",
    ),
    Change(
        ("Who posts on the status page?", "What does Instatus cost?"),
        "What conditions did the works council set for the loading bay camera?",
        "door-cameras",
    ),
    Change(
        ("How many hours does Petra Novak work?", "And how many days from home?"),
        "Which curve do we use for stoneware in the big kiln?",
        "kiln-curve",
    ),
    Change(
        ("Why did we turn down Casper?", "Was his portfolio any good?"),
        "By which date must I bring back my varifocals to have them remade free?",
        "varifocals",
    ),
    Change(
        ("What do new people do on Wednesday in their first week?", "And on Friday?"),
        "Why did we cancel the insurance for pipes and drains?",
        "boiler-cover",
    ),
    Change(
        ("Who is away in the first fortnight of July?", "And at the end of the month?"),
        "Which laptops may everybody choose from?",
        "laptop-policy",
    ),
    Change(
        ("When is the office closed over Christmas?", "Who has the emergency phone?"),
        "How many requests a minute does the API allow per key?",
        "api-limits",
    ),
    Change(
        ("Which date is the class trip of 5B?", "How much does each child pay?"),
        "Which settings work for PETG on the 3D printer?",
        "printer-nozzle",
    ),
    Change(
        ("What colour is the hall below the rail?", "And above it?"),
        "Which exercises did the physio give me for the knee?",
        "physio-knee",
    ),
    Change(
        ("How much does the splint cost?", "What does the insurance pay?"),
        "How big is the county grant for the solar panels?",
        "grant-solar",
    ),
    Change(
        ("Where do we move the staff pension?", "How much lower are the fees there?"),
        "What went wrong in the demo at St Brendan's?",
        "demo-hospital",
    ),
    Change(
        ("What do Blackthorn Dairies pay from now on?", "Who is their named contact?"),
        "Why does the dark theme wait until autumn?",
        "dark-theme",
    ),
    Change(
        ("How much discount may sales give without asking?", "What about charities?"),
        "How long did the UPS last in the power cut?",
        "ups-battery",
    ),
    Change(
        ("Why did the certificate of the portal run out?", "Who gets the alert now?"),
        "How many people voted for no meetings on Wednesdays?",
        "meeting-free",
    ),
    Change(
        ("Wann ziehen wir in die Lindenstraße?", "Und was kostet die Spedition?"),
        "Wie viel Geld ist laut Kassenprüfung auf dem Konto?",
        "de-kasse",
    ),
    Change(
        ("Wann kommt die Glasfaser ins neue Büro?", "Wie viel Volumen hat der LTE-Router?"),
        "Was kostet Jannis' Klassenfahrt nach Norderney?",
        "de-klassenfahrt",
    ),
    Change(
        ("Was will der alte Vermieter von der Kaution behalten?", "Was sagt Dr. Wessling dazu?"),
        "Auf wie viel Grad stand der Gärschrank, als der Sauerteig zu sauer war?",
        "de-sauerteig",
    ),
    Change(
        ("Was kostet das Dinkelmehl bei Hagedorn?", "Warum bleiben wir bei der Mühle?"),
        "Wann hört Trainer Zoran auf?",
        "de-trainer",
    ),
    Change(
        ("Welche Dichtung braucht der Etagenofen?", "Was kostet sie?"),
        "Wohin zieht unsere Telefonanlage im August?",
        "de-telefon",
    ),
    Change(
        ("Welchen Pflegegrad hat Oma Hedwig?", "Wann kommt der Pflegedienst?"),
        "Was fehlt laut ERP-Fehler auf dem Lieferschein?",
        "de-erp-fehler",
    ),
    Change(
        ("In welcher Hütte haben wir nur das Lager bekommen?", "Kommt Onkel Reinhold mit?"),
        "Welche Farbe haben die neuen Trikots?",
        "de-trikots",
    ),
    Change(
        ("Wer bringt die LTO-Bänder zur Sparkasse?", "Was passiert mit dem ältesten Band?"),
        "Welches Fahrrad hat Lotte bekommen?",
        "de-fahrrad-kind",
    ),
    Change(
        ("Quand a lieu le vide-grenier ?", "Qui s'occupe des inscriptions ?"),
        "Quelle aiguille Mamadou a-t-il mise sur la Juki ?",
        "fr-machine-coudre",
    ),
    Change(
        ("Pourquoi la région refuse-t-elle la subvention ?", "Quand faut-il la redemander ?"),
        "Combien coûte l'embrayage de la Kangoo ?",
        "fr-voiture",
    ),
    Change(
        ("D'où vient le cuir maintenant ?", "Et combien de jours pour la livraison ?"),
        "Où va Léandre le jeudi midi ?",
        "fr-cantine",
    ),
    Change(
        ("Que signifie le code F28 de la chaudière ?", "Qui l'a réparée ?"),
        "Quel score a donné l'audit d'accessibilité ?",
        "fr-accessibilite",
    ),
    Change(
        ("Quand change-t-on d'hébergeur ?", "Qui fait la bascule des DNS ?"),
        "Combien de limaces a-t-on ramassées chez mamie Paulette ?",
        "fr-potager",
    ),
    Change(
        ("¿Quién lleva el alquiler de bicis en la playa?", "¿Cuánto cuesta una eléctrica al día?"),
        "¿Qué pastilla de la tensión toma ahora el abuelo Evaristo?",
        "es-abuelo",
    ),
    Change(
        ("¿Qué se llevaron en el robo del taller?", "¿Cuándo ponen las rejas?"),
        "¿Dónde es la boda de Rocío?",
        "es-boda",
    ),
    Change(
        ("¿Desde cuándo trabaja Ibrahim a media jornada?", "¿Y qué curso va a hacer?"),
        "¿A cuánto nos paga la cooperativa el kilo de tomate?",
        "es-cooperativa",
    ),
    Change(
        ("¿Quién paga la pintura de la gotera?", "¿Cuánto es?"), "¿Por dónde pierde aceite el Kubota?", "es-tractor"
    ),
    Change(
        ("¿Qué les pasaba a los sensores del invernadero?", "¿Cuántos pedimos?"),
        "¿Cuándo se entrega la matrícula de Candela?",
        "es-colegio",
    ),
)
