"""Twenty exchanges in French: an association, a leather workshop, a household, a web agency."""

from __future__ import annotations

from tests.questions.exchange import LabelledExchange

EXCHANGES: tuple[LabelledExchange, ...] = (
    LabelledExchange(
        "fr-vide-grenier",
        "association",
        "2026-02-10T19:00",
        "Le vide-grenier aura lieu le 24 mai sur le parking du collège. Soixante emplacements à 12 euros, la mairie "
        "prête les tables, et Solange s'occupe des inscriptions.",
        "C'est noté. Pensez à demander l'arrêté pour fermer le parking au moins deux mois avant, et à numéroter les "
        "emplacements à la craie la veille. Solange aura besoin d'une copie de chaque pièce d'identité.",
    ),
    LabelledExchange(
        "fr-subvention",
        "association",
        "2026-02-10T19:20",
        "La région nous refuse la subvention de 3.500 euros parce que le dossier est arrivé deux jours trop tard. "
        "Monsieur Delacroix conseille de la redemander en septembre avec les comptes certifiés.",
        "Dommage pour deux jours. Préparez le dossier dès juin, déposez-le en ligne pour avoir une preuve de la "
        "date, et joignez les comptes certifiés comme le conseille votre contact.",
    ),
    LabelledExchange(
        "fr-local",
        "association",
        "2026-02-10T19:45",
        "Le local de la rue des Tanneurs prend l'eau par la fenêtre du fond. Le propriétaire envoie le couvreur "
        "Marchetti jeudi, et d'ici là on a mis les costumes de théâtre chez Yvette.",
        "Photographiez les dégâts avant la visite de jeudi et prévenez l'assurance dans les cinq jours. Si les "
        "costumes sont humides, il faut les aérer tout de suite, sinon ils sentiront le moisi.",
    ),
    LabelledExchange(
        "fr-benevoles",
        "association",
        "2026-02-10T20:05",
        "On manque de bras le samedi pour l'aide aux devoirs. Trois étudiants de Villetaneuse viennent à partir de "
        "mars, on leur rembourse le train, 9,40 euros par trajet.",
        "Bonne nouvelle. Faites une petite convention avec chacun, même pour trois étudiants, et gardez les billets "
        "de train pour le remboursement. Prévoyez un ancien avec eux les deux premières fois.",
    ),
    LabelledExchange(
        "fr-assemblee",
        "association",
        "2026-02-10T20:30",
        "À l'assemblée générale, Bérengère a été élue présidente par 41 voix contre 12. Le loto est supprimé, il "
        "rapportait moins que la location de la salle, et on le remplace par une soirée crêpes.",
        "Félicitations à la nouvelle présidente. Déclarez le changement à la préfecture dans les trois mois, avec "
        "le procès-verbal signé. Pour la soirée crêpes, calculez aussi la location de la salle.",
    ),
    LabelledExchange(
        "fr-fournisseur-cuir",
        "atelier-cuir",
        "2026-03-17T09:00",
        "La tannerie Roussillac livre le cuir avec quinze jours de retard depuis janvier. On commande la moitié "
        "chez Ortega à Millau, un peu plus cher, 38 euros le mètre carré, mais livré en quatre jours.",
        "Deux sources valent mieux qu'une. Vérifiez que les teintes des deux se ressemblent avant de les mélanger "
        "sur un même sac, et dites franchement à la tannerie pourquoi la commande baisse.",
    ),
    LabelledExchange(
        "fr-machine-coudre",
        "atelier-cuir",
        "2026-03-17T09:25",
        "La Juki 1541 saute des points sur le cuir épais. Mamadou a changé l'aiguille pour une 140 triangulaire et "
        "baissé la tension du pied, ça marche depuis lundi.",
        "La pointe triangulaire coupe le cuir au lieu de le repousser, d'où la différence. Notez le réglage sur une "
        "étiquette collée à la machine, et changez d'aiguille toutes les huit heures de couture.",
    ),
    LabelledExchange(
        "fr-boutique-lyon",
        "atelier-cuir",
        "2026-03-17T09:50",
        "La boutique Les Canuts à Lyon prend douze sacs en dépôt-vente, commission de 35 pour cent, on fait le "
        "point tous les trois mois. Contact : Apolline.",
        "Une commission de 35 pour cent est correcte pour du dépôt-vente. Demandez qui paie en cas de vol dans la "
        "boutique, et faites signer une liste des douze sacs avec leurs prix.",
    ),
    LabelledExchange(
        "fr-apprentie",
        "atelier-cuir",
        "2026-03-17T10:15",
        "Notre apprentie Océane passe son CAP le 3 juin. Elle aura une semaine libre avant pour réviser, payée, et "
        "Hubert la fait travailler les coutures à la main le mercredi.",
        "Une semaine payée est un beau geste. Procurez-lui les sujets des trois dernières années, et laissez-la "
        "faire une pièce entière en temps limité avec Hubert avant le jour de l'examen.",
    ),
    LabelledExchange(
        "fr-salon",
        "atelier-cuir",
        "2026-03-17T10:40",
        "On ne retourne pas au salon de Nantes : 2.100 euros de stand pour neuf ventes. À la place, trois marchés "
        "de Noël, Colmar, Annecy et Troyes, choisis par Ghislaine.",
        "Le calcul est vite fait, plus de 230 euros par vente. Pour les marchés, les dossiers se déposent souvent "
        "avant l'été ; Ghislaine devrait vérifier les dates d'Annecy en premier.",
    ),
    LabelledExchange(
        "fr-chaudiere",
        "maison",
        "2026-04-22T18:00",
        "La chaudière s'arrête avec le code F28 quand il fait froid dehors. Le chauffagiste, Kerguelen, a trouvé le "
        "tuyau de condensats gelé et l'a isolé pour 130 euros.",
        "C'est typique d'un tuyau qui passe par l'extérieur. L'isolation suffit en général ; s'il gèle encore, un "
        "cordon chauffant règle la question. Gardez la facture, elle vaut preuve d'entretien.",
    ),
    LabelledExchange(
        "fr-cantine",
        "maison",
        "2026-04-22T18:20",
        "Le petit Léandre ne mange plus à la cantine le jeudi, il va chez sa marraine Capucine qui habite à côté de "
        "l'école. On a prévenu la directrice pour toute l'année.",
        "C'est clair. Donnez à l'école une autorisation écrite avec le nom de la marraine, sinon on ne le laissera "
        "pas sortir, et demandez si les repas du jeudi sont déduits.",
    ),
    LabelledExchange(
        "fr-vacances-bretagne",
        "maison",
        "2026-04-22T18:45",
        "En août on loue une maison à Plouhinec, du 8 au 22, 1.650 euros, chien accepté. Le bateau, c'est la "
        "famille Le Goff qui le prête contre deux jours de peinture.",
        "Joli échange. Demandez à la famille si l'assurance du bateau couvre d'autres personnes à la barre, et pour "
        "le chien, certaines plages l'interdisent en été avant dix-neuf heures.",
    ),
    LabelledExchange(
        "fr-voiture",
        "maison",
        "2026-04-22T19:05",
        "On garde la Kangoo encore deux ans. Le garage Bonnefoy demande 870 euros pour l'embrayage, une d'occasion "
        "pareille en coûterait 9.000. Rendez-vous mardi 28 avril.",
        "À ce prix, l'embrayage vaut la peine si le reste est sain. Demandez à voir la pièce remplacée, et faites "
        "contrôler la courroie en même temps, puisque la main-d'œuvre se recoupe.",
    ),
    LabelledExchange(
        "fr-potager",
        "maison",
        "2026-04-22T19:30",
        "Les limaces ont mangé toutes les salades de mamie Paulette. On a posé des planches le soir, ramassé 86 "
        "limaces en trois nuits, et replanté des batavias sous un filet.",
        "Les planches marchent mieux que la bière. Continuez une semaine encore, arrosez le matin plutôt que le "
        "soir, et laissez un coin sauvage pour les hérissons, qui font le reste.",
    ),
    LabelledExchange(
        "fr-refonte",
        "equipe-web",
        "2026-06-02T09:30",
        "La refonte du site de la mutuelle Armorique est repoussée au 15 octobre. Leur juriste doit relire 140 "
        "pages. On ne facture rien de plus, mais Quentin passe sur un autre projet d'ici là.",
        "Écrivez que le délai vient de la relecture, sans reproche, et fixez une date limite pour leurs retours. "
        "Quentin peut laisser une note d'une page pour reprendre vite en octobre.",
    ),
    LabelledExchange(
        "fr-hebergement",
        "equipe-web",
        "2026-06-02T09:50",
        "On quitte l'hébergeur Gandalia pour Scaleway fin juillet : trois pannes en mai, dont une de six heures un "
        "dimanche. Maëlle fait la bascule des DNS à quatre heures du matin.",
        "Baissez la durée de vie des DNS à cinq minutes deux jours avant, et gardez l'ancien serveur une semaine. "
        "Prévenez les clients du créneau, même si Maëlle agit de nuit.",
    ),
    LabelledExchange(
        "fr-accessibilite",
        "equipe-web",
        "2026-06-02T10:15",
        "L'audit d'accessibilité donne 61 pour cent. Le pire, ce sont les formulaires sans étiquettes et les PDF du "
        "catalogue. Thibault corrige les formulaires avant le 20 juin, les PDF attendront la rentrée.",
        "Commencer par les formulaires est juste, ce sont eux qui bloquent les gens. Publiez la déclaration avec le "
        "score et les dates, c'est obligatoire et cela montre que vous avancez.",
    ),
    LabelledExchange(
        "fr-teletravail",
        "equipe-web",
        "2026-06-02T10:40",
        "Nouvelle règle : tout le monde au bureau le mardi, le reste libre. Joséphine vient de Rennes et se fait "
        "payer une nuit d'hôtel par semaine, 85 euros au plus.",
        "Une seule journée commune rend les réunions plus denses : mettez-les toutes le mardi. Pour l'hôtel, un "
        "accord annuel avec une adresse près de la gare coûterait sans doute moins de 85 euros.",
    ),
    LabelledExchange(
        "fr-facture-impayee",
        "equipe-web",
        "2026-06-02T11:00",
        "Le restaurant Tamarillo n'a toujours pas payé les 1.780 euros de mars. Relance recommandée envoyée hier ; "
        "sans réponse sous huit jours on coupe leur page de réservation.",
        "Vérifiez d'abord que votre contrat permet de couper la page, sinon le restaurant pourrait se retourner "
        "contre vous. Proposez trois versements : un payeur gêné accepte souvent.",
    ),
)
