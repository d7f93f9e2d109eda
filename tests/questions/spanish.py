"""Fifteen exchanges in Spanish: a bicycle workshop, a family, a farm that saves water."""

from __future__ import annotations

from tests.questions.exchange import LabelledExchange

EXCHANGES: tuple[LabelledExchange, ...] = (
    LabelledExchange(
        "es-proveedor-ruedas",
        "taller-bicis",
        "2026-03-05T09:00",
        "Las ruedas de Talleres Echeverría llegan torcidas, cuatro de diez en febrero. Nos pasamos a Montalbán, que "
        "cobra 6 euros más por rueda pero las centra a mano.",
        "Cuatro de diez es demasiado. Con 6 euros más os ahorráis media hora de trabajo por rueda. Guarda las "
        "torcidas con foto y factura para pedir el abono antes de cerrar la cuenta.",
    ),
    LabelledExchange(
        "es-alquiler-bicis",
        "taller-bicis",
        "2026-03-05T09:20",
        "Este verano alquilamos veinte bicis a turistas: 15 euros el día, 25 las eléctricas, fianza de 100. Las "
        "gestiona Maite desde el quiosco de la playa, de diez a ocho.",
        "Buena idea. Apunta el número de cuadro en cada contrato y haz una foto al salir y al volver. Para las "
        "eléctricas, Maite necesita dos enchufes en el quiosco y baterías de repuesto.",
    ),
    LabelledExchange(
        "es-robo",
        "taller-bicis",
        "2026-03-05T09:45",
        "Anoche entraron por la ventana del baño y se llevaron tres cuadros de carbono y la caja con 140 euros. La "
        "denuncia tiene el número 5528. Vamos a poner rejas el lunes, las hace Fermín.",
        "Lo siento mucho. Manda al seguro la denuncia, las facturas de los cuadros y el presupuesto de las rejas en "
        "el mismo correo, antes de siete días. Avisa también en los portales de segunda mano.",
    ),
    LabelledExchange(
        "es-horario",
        "taller-bicis",
        "2026-03-05T10:05",
        "Desde abril cerramos los sábados por la tarde y abrimos los jueves hasta las nueve. Lo pidieron los "
        "clientes que trabajan en la fábrica, casi treinta firmas en el mostrador.",
        "Treinta firmas convencen. Cambia el horario también en el mapa de internet y en el contestador, que es "
        "donde miran los clientes nuevos, y compara la caja de ambos días en junio.",
    ),
    LabelledExchange(
        "es-aprendiz",
        "taller-bicis",
        "2026-03-05T10:30",
        "Ibrahim termina las prácticas el 29 de mayo y lo contratamos a media jornada, 760 euros al mes. Quiere "
        "aprender suspensiones, así que va dos días al curso de Zaragoza en otoño.",
        "Buena decisión, ya conoce el taller. Firmad antes de que acaben las prácticas para que no haya un hueco en "
        "la seguridad social, y pedid ya plaza en el curso de otoño.",
    ),
    LabelledExchange(
        "es-boda",
        "familia-es",
        "2026-04-09T21:00",
        "La boda de mi hermana Rocío es el 19 de septiembre en la finca Los Almendros. Somos 120, el menú sale a 78 "
        "euros y yo tengo que leer un poema de Machado.",
        "¡Qué bonito! Elige un poema corto, de un minuto, e imprímelo en letra grande. Ensáyalo en voz alta en la "
        "finca la tarde anterior, porque al aire libre la voz se pierde.",
    ),
    LabelledExchange(
        "es-abuelo",
        "familia-es",
        "2026-04-09T21:20",
        "Al abuelo Evaristo le cambiaron la pastilla de la tensión: ahora toma losartán 50 por la mañana y nada por "
        "la noche, porque se mareaba al levantarse. Revisión el 7 de mayo.",
        "Es un cambio habitual. Apuntad la tensión tres días por semana, sentado y luego de pie, y llevad la hoja a "
        "la revisión. Que se levante despacio y beba bastante agua.",
    ),
    LabelledExchange(
        "es-vacaciones-camino",
        "familia-es",
        "2026-04-09T21:45",
        "En vez de playa este año hacemos el Camino desde Sarria, seis etapas, del 12 al 18 de julio. Las mochilas "
        "las lleva una empresa por 5 euros la etapa, y a los niños les prometimos un helado diario.",
        "Seis etapas desde Sarria son perfectas con niños. Reservad ya las camas de Portomarín, que es donde se "
        "llena todo, y estrenad las botas un mes antes para evitar ampollas.",
    ),
    LabelledExchange(
        "es-goteras",
        "familia-es",
        "2026-04-09T22:05",
        "La gotera del salón viene de la terraza de la vecina del quinto, doña Encarnación. Su seguro paga la "
        "pintura, 540 euros, cuando el albañil selle las baldosas.",
        "Que sellen primero y pinten después, con dos semanas entre medias para que seque. Pide al seguro el número "
        "de expediente y guarda fotos de la gotera antes de tapar nada.",
    ),
    LabelledExchange(
        "es-colegio",
        "familia-es",
        "2026-04-09T22:25",
        "Hemos elegido para Candela el instituto Rosalía de Castro y no el otro, porque tiene bachillerato de artes "
        "y va andando. La matrícula se entrega del 1 al 5 de julio, con dos fotos.",
        "Ir andando vale mucho a esa edad. Preparad ya el certificado de notas, que tarda unos días, y entregad la "
        "matrícula el primer día, pues las plazas de artes son pocas.",
    ),
    LabelledExchange(
        "es-sensores",
        "proyecto-riego",
        "2026-05-20T08:30",
        "Los sensores de humedad del invernadero tres marcan siempre 40 por ciento. Nuria vio que el cable llevaba "
        "agua dentro; pedimos doce con conector IP68, a 19 euros cada uno.",
        "Un valor fijo casi siempre es agua en el cable. Con los nuevos, deja el conector hacia abajo y un bucle "
        "para que gotee, y programa un aviso si el valor no cambia en un día.",
    ),
    LabelledExchange(
        "es-pozo",
        "proyecto-riego",
        "2026-05-20T08:55",
        "La comunidad de regantes nos limita el pozo a 4.200 metros cúbicos por temporada. Ya llevamos 1.900, así "
        "que los pimientos se riegan de noche y el césped de la oficina se deja secar.",
        "Vais al 45 por ciento del pozo con media temporada por delante, así que es justo. Mide cada lunes lo "
        "gastado y pon una cubierta de paja en los pimientos, ahorra una quinta parte.",
    ),
    LabelledExchange(
        "es-cooperativa",
        "proyecto-riego",
        "2026-05-20T09:15",
        "La cooperativa Valdeolmos nos compra todo el tomate pera a 0,62 el kilo si entregamos antes de las siete. "
        "Gonzalo quería vender en el mercado, pero se pierde un día entero.",
        "Un precio fijo y sin perder el día suena razonable. Negocia qué pasa con el género que llega tarde por "
        "avería, y reserva una parte pequeña para el mercado si Gonzalo quiere probar.",
    ),
    LabelledExchange(
        "es-tractor",
        "proyecto-riego",
        "2026-05-20T09:40",
        "El tractor Kubota pierde aceite por el retén delantero. El mecánico, Leocadio, no puede hasta el 3 de "
        "junio; mientras tanto usamos el del primo, que gasta el doble.",
        "Mientras sea poco, rellena y vigila el nivel a diario, y pon un cartón debajo para ver cuánto cae. Pide "
        "que cambie los dos retenes, porque la mano de obra es la misma.",
    ),
    LabelledExchange(
        "es-certificado",
        "proyecto-riego",
        "2026-05-20T10:00",
        "La certificación ecológica nos cuesta 690 al año y la auditora, Begoña Salcedo, viene el 16 de octubre. El "
        "año pasado nos faltaba el registro de semillas, este año lo lleva mi padre.",
        "El registro de semillas es lo que más se mira. Que tu padre guarde también las etiquetas de los sacos, por "
        "fecha, y haced un repaso entero dos semanas antes de la visita.",
    ),
)
