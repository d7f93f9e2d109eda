"""Sixty questions on three invented handbooks, each with the verbatim passages that answer it."""

from typing import NamedTuple


class Question(NamedTuple):
    document: str  # the file's name without .md
    asks: str  # the question as an employee would type it
    evidence: tuple[str, ...]  # verbatim excerpts which together are the complete answer


QUESTIONS = (
    Question(
        "expeditions",
        "Why can't the ketch lie in the small harbour behind the bar at Kvalrev?",
        (
            (
                "*Teist* draws 2.9 metres and *Lomvi* 2.1, which is why only *Lomvi* uses the inner basin at "
                "Kvalrev, where the sill has 2.6 metres over it at low water springs."
            ),
        ),
    ),
    Question(
        "expeditions",
        "How strong must it blow before I take in canvas, and when does the big sail go?",
        (
            (
                "Under way, the first reef goes in at 18 knots apparent, the second at 24, and the mainsail "
                "comes down altogether at 32."
            ),
        ),
    ),
    Question(
        "expeditions",
        "What do we charge passengers for ringing home, and do they get any messages for nothing?",
        (
            (
                "Guests may use the satellite telephone for private calls at 30 kroner a minute, settled at the "
                "end of the voyage, and may send one free text of 160 characters each day."
            ),
        ),
    ),
    Question(
        "expeditions",
        "List everything that obliges us to give up and make for cover.",
        (
            (
                "Turn back, or run for the nearest shelter, when\n\n"
                "- the barometer falls more than four hectopascals in three hours;\n"
                "- icing on the rigging is thicker than a finger;\n"
                "- visibility drops below half a mile within five miles of charted ice."
            ),
        ),
    ),
    Question(
        "expeditions",
        "How far off an ice front do the inflatables have to stay?",
        (
            (
                "The dinghies have a stricter rule: 300 metres always, since a wave that merely rocks the ship "
                "will fill an inflatable."
            ),
        ),
    ),
    Question(
        "expeditions",
        "A customer wants to pack a canister against animals and his big hunting blade. Allowed?",
        (
            (
                "Guests may not bring weapons of their own, and that includes pepper spray and hunting knives "
                "with a blade over twelve centimetres."
            ),
        ),
    ),
    Question(
        "expeditions",
        "Who gets a share of the gratuities?",
        (("Tips go into the tin and are shared equally by all crew of that voyage, cook and skipper included."),),
    ),
    Question(
        "expeditions",
        "Flames near the motor or at the cooker: how do I tackle each, and where do the passengers gather?",
        (
            (
                "Fire in the engine room is fought by closing, not by opening: shut the two vents, pull the "
                "yellow handle, and wait fifteen minutes before anyone lifts the hatch. A fire in the galley "
                "gets the blanket first and the foam second, never water. Guests muster in the cockpit, or on "
                "the foredeck if the smoke blows aft."
            ),
        ),
    ),
    Question(
        "expeditions",
        "One man is only chilled, one is past trembling, a third has pale stiff hands. How do I treat each?",
        (
            (
                "Someone who shivers is warmed by dry clothes, a hat and sweet tea. Someone who has stopped "
                "shivering and is still cold is another matter: lay the patient flat, move them as little as "
                "possible, warm the trunk and not the limbs, give nothing by mouth, and call for a helicopter. "
                "Fingers that have gone white and hard are not rubbed, and are thawed only when they can be kept "
                "from freezing again."
            ),
        ),
    ),
    Question(
        "expeditions",
        "I'm on the desk and a crew has gone quiet. At what point do I phone, and when do I call for a search?",
        (
            (
                "Each boat reports to the office at 0830 and 2030 by satellite text: position, intention, "
                "persons aboard, state of health. A single missed report worries nobody. When two in a row have "
                "failed, the duty officer rings the boat every half hour; if there is still silence six hours "
                "after the second missed report, the duty officer alerts the rescue coordination centre. On "
                "crossings the gap is shorter, and one missed report starts the ringing."
            ),
        ),
    ),
    Question(
        "expeditions",
        "Gale keeps us in port. How often do we look again, and what can customers claim as days go by?",
        (
            (
                "A departure that has been put off for weather is reviewed every six hours, and guests are told "
                "the next review time, not a hoped-for sailing time. If we are still alongside after forty-eight "
                "hours the office offers day walks and the harbour museum at our expense. After seventy-two "
                "hours guests may go home with half of the fare returned, which is settled by the office and not "
                "by the skipper on the quay."
            ),
        ),
    ),
    Question(
        "expeditions",
        "Something broke in a foreign port. How much can I pay without ringing anybody, and what of the bills?",
        (
            (
                "Each skipper carries a float of 6,000 kroner for harbour dues, fresh food and small repairs. "
                "Repairs up to 4,000 are at the skipper's discretion; up to 15,000 the mate must agree and both "
                "sign; anything dearer waits for the office, save when the boat cannot be moved safely without "
                "it. Receipts are photographed on the day and the originals handed in within a week of return."
            ),
        ),
    ),
    Question(
        "expeditions",
        "Who may hand out pills, who the strong stuff, and what if somebody is dying of a bee sting?",
        (
            (
                "The medicine chest has two levels. The green drawer (plasters, paracetamol, seasickness "
                "tablets, eye drops) is open to all crew, who write what they hand out in the small book. The "
                "red drawer, with antibiotics and the strong painkillers, is opened only by the skipper after "
                "speaking to the medical line, and each ampoule is counted in front of a witness. In case of a "
                "life-threatening allergic reaction nobody waits for the line: the adrenaline pen is on a hook "
                "outside the drawer for that very reason."
            ),
        ),
    ),
    Question(
        "expeditions",
        "One of the party has gone over the rail. Jobs for each hand, please, and how long have we got?",
        (
            (
                "Whoever sees it shouts, points and keeps pointing; that person does nothing else until "
                "relieved. The helm turns the boat head to wind, a second hand throws the horseshoe and the dan "
                "buoy, and a third presses the red button on the plotter. We use the quick stop under any sail "
                "and start the engine only when all lines have been seen to be inboard. In water of four degrees "
                "a person has about ten minutes of useful movement, so the lifting sling is rigged while the "
                "boat is still turning."
            ),
        ),
    ),
    Question(
        "expeditions",
        "What official papers do we need to put people on land, how early, and on which boat do they live?",
        (
            (
                "The season's cruise permit is applied for by the office no later than 15 February and names "
                "both boats, all skippers and the planned landing sites. Sites outside the list need a separate "
                "notice, at least ten working days ahead. Nature reserves are different again: Alkeberget and "
                "the Storøy lagoon require a dated entry slip for each visit, and no more than twenty-four of "
                "our guests may set foot in the lagoon in a season. The original permit travels on *Teist* and a "
                "certified copy on *Lomvi*."
            ),
        ),
    ),
    Question(
        "expeditions",
        "We're on a hike and a polar bear walks up. What does the group do, and when may I aim at the animal?",
        (
            (
                "A bear seen from land means that the group closes up, walks back to the dinghy without running, "
                "and leaves whatever it has put down."
            ),
            (
                "Use the signal pistol first, at about fifty metres, aiming at the ground between bear and "
                "people, not beyond the animal, for a bang behind it drives it towards us. A shot at the bear "
                "itself is the last resort and only below twenty-five metres when it keeps coming."
            ),
        ),
    ),
    Question(
        "expeditions",
        "Can a paying passenger sit up alone at night while we lie in a bay?",
        (
            (
                "An anchor watch is one person for one hour, and guests do take it alone, provided they have "
                "been shown the four transit marks and the depth alarm."
            ),
            (
                "In the bays marked red on the wall chart (Brennvik, Sálebukt and the whole east side of Storøy) "
                "the anchor watch is crew only, because of bears and because of the katabatic wind that comes "
                "down without warning after sunset. Two crew share the night there in turns of three hours."
            ),
        ),
    ),
    Question(
        "expeditions",
        "How many people in the rubber boat when there's surf, and does whoever is at the outboard stay with it?",
        (
            (
                "Each dinghy carries a driver and at most six passengers, or four when the swell on the beach is "
                "above half a metre. At more than one metre we do not land."
            ),
            (
                "The driver never leaves the dinghy on an exposed shore; in the sheltered bays it may be pulled "
                "up three lengths and tied to a rock or a buried anchor. On a falling tide of more than two "
                "metres somebody stays with the boat in any case."
            ),
        ),
    ),
    Question(
        "expeditions",
        "Customer has to pull out six weeks ahead. What does she get back, and could her sister come instead?",
        (
            (
                "Guests who cancel get the following back, counted from the day the written notice reaches us.\n\n"
                "| Notice given before sailing | Returned |\n"
                "|---|---|\n"
                "| more than 90 days | all but 2,000 kroner |\n"
                "| 90 to 60 days | the fare less the deposit |\n"
                "| 59 to 21 days | one third of the fare |\n"
                "| 20 days or fewer | nothing |"
            ),
            (
                "A berth may be passed on to another person for a fee of 800 kroner up to two weeks before "
                "departure, if the new guest's health form is accepted."
            ),
        ),
    ),
    Question(
        "expeditions",
        "What paperwork must a 74-year-old send us in advance, and what if he turns up without a rescue policy?",
        (
            (
                "Every guest fills in the health form at least thirty days before sailing, and those over "
                "seventy add a doctor's letter not older than three months."
            ),
            (
                "Insurance that covers rescue by helicopter up to two million kroner is a condition of the "
                "contract. The office checks the policy number, since the bill for the evacuation from Sálebukt "
                "came to 640,000 and the policy shown to us had lapsed. A guest who arrives without cover can "
                "buy it at the office on the quay until noon on the day of departure; after that the berth is "
                "forfeited without refund."
            ),
        ),
    ),
    Question(
        "workshop",
        "How do cellos get to their owners, and what's the charge?",
        (
            (
                "Cellos are not posted: our van takes them on its round on the second and fourth Saturday, at "
                "45p a mile with a minimum of £20."
            ),
        ),
    ),
    Question(
        "workshop",
        "Until what time can a trumpeter rehearse here, and a singer?",
        (
            (
                "Drums and brass play only between ten and six, because of the flats across the water; strings "
                "and voices may go on until half past nine."
            ),
        ),
    ),
    Question(
        "workshop",
        "Customer turns up with her own set bought online. Will we put it on, and for how much?",
        ("We fit strings bought elsewhere for £8 but give no promise about how long they will last.",),
    ),
    Question(
        "workshop",
        "I stuck a rib this morning; when can the cramps come off and who checks it?",
        (
            (
                "Anything glued stays clamped for twelve hours in summer and twenty in winter, and carries a red "
                "tag until someone other than the person who glued it has tapped along the joint."
            ),
        ),
    ),
    Question(
        "workshop",
        "Which equipment can I borrow over Saturday and Sunday and which must stay here?",
        (
            (
                "House tools may be taken home for a weekend when they are written in the book, except the "
                "bending iron, the peg shapers and the thickness gauge, which do not leave the building."
            ),
        ),
    ),
    Question(
        "workshop",
        "What's the deadline and form for a youngster who'd like to try out the trade with us?",
        ("Trial weeks are held in May; whoever wants one writes by hand before the end of February.",),
    ),
    Question(
        "workshop",
        "Someone nicked the rented flute. How soon must we and the constabulary hear of it?",
        ("Theft has to be reported to the police the same day and to us within two days.",),
    ),
    Question(
        "workshop",
        "Little holes and sawdust in a fiddle, a case that stinks, a horn from a sick man: procedure and price?",
        (
            (
                "We do not accept instruments with live woodworm indoors. They go straight into a sealed bag and "
                "into the chest freezer in the yard for three days at minus twenty, for which the owner is "
                "charged £18, and only then on to the bench. Anything that smells of mould is aired in the "
                "lean-to for a week first. Brass that is suspected of having been played by someone with a chest "
                "infection is disinfected before it is looked at, at no charge."
            ),
        ),
    ),
    Question(
        "workshop",
        "The job is getting dearer than the figure we gave and the customer won't pick up. What are we allowed to do?",
        (
            (
                "If the work turns out to cost more, we may exceed the estimate by a tenth without asking. "
                "Beyond that the bench stops and the owner is telephoned; should nobody answer within four "
                "working days, the instrument is put back together as far as is safe and the time spent so far "
                "is charged. A voicemail does not count as consent. Only the owner can agree, not the pupil, "
                "teacher or parent who happened to bring it in, unless the card says so."
            ),
        ),
    ),
    Question(
        "workshop",
        "Step by step, what happens to a renter who doesn't transfer the money?",
        (
            (
                "Hire is due on the first of the month by standing order. After eight days a reminder goes out, "
                "free; after twenty a second one with a fee of £6; after thirty-five a third, with £12 on top, "
                "and Maud Ferrier telephones. At fifty days the contract ends and we ask for the instrument. If "
                "it is not brought within two weeks of that request, the deposit is forfeited and the case goes "
                "to the small claims court."
            ),
        ),
    ),
    Question(
        "workshop",
        "Renter kept the violin a fortnight too long. Do we bill, and on top of the other penalty?",
        (
            (
                "Instruments that come back after the agreed date without notice are charged by the week: £5 for "
                "those under £500 in value, £12 for the rest. Nothing is charged if we could not have let the "
                "instrument to anyone else. This is separate from late payment, and the two are never added for "
                "the same week; the higher applies."
            ),
        ),
    ),
    Question(
        "workshop",
        "A cello valued at twenty thousand is coming in. Is it covered, up to what sum, and what about the car park?",
        (
            (
                "Our policy covers instruments in the building and in our van up to £9,000 each and £240,000 in "
                "all. An owner whose instrument is worth more must say so at intake and either insure it "
                "themselves or pay £3 a week for the rider, which raises the limit to £25,000. Above that we do "
                "not keep it overnight. Instruments left in an unattended vehicle are not covered, even for a "
                "quarter of an hour at a motorway café."
            ),
        ),
    ),
    Question(
        "workshop",
        "Who is allowed on the big power tools, and may I work on one by myself in the evening?",
        (
            (
                "The bandsaw and the lathe are used by members who have been signed off on the sheet beside the "
                "switch, and by second-year apprentices when such a member is in the room. First-years do not "
                "use them at all. No machine runs when one is alone in the building, with the sole exception of "
                "the buffing wheel at its lower speed."
            ),
        ),
    ),
    Question(
        "workshop",
        "The electricity has been off all afternoon and the moistening machine is dead. What do I do?",
        (
            (
                "If the humidifier fails, hang the wet felts on the line, close the shutters and ring Tobias "
                "Wenlock, who has the spare pump. Do not use kettles. If the power is off for more than three "
                "hours, instruments worth over £5,000 are moved to the strongroom at the library, whose key "
                "hangs behind the clock. The librarian must be warned by telephone first, any hour up to "
                "midnight."
            ),
        ),
    ),
    Question(
        "workshop",
        "When does post go out, what sum do we declare, what if it's smashed, and who pays the trip back?",
        (
            (
                "Parcels go out Monday to Wednesday, lest they spend a weekend in a depot. The sender's value on "
                "the label is the one from the white card. If a parcel arrives damaged, the receiver must keep "
                "all packing and tell us within three days; the carrier allows seven, but we need the rest to "
                "send in the claim. We pay for the return of a repair that has to be done again, and the owner "
                "pays in all other cases."
            ),
        ),
    ),
    Question(
        "workshop",
        "How dry and warm must we hold the rooms where things wait, and is there anything stricter for the lutes?",
        (
            "The store is kept between 45 and 55 per cent relative humidity and at 18 to 21 degrees.",
            (
                "Harpsichords and lutes are more delicate and have the inner room, at 50 per cent with a "
                "tolerance of two either way. Its door is not to be held open for more than a minute, and no one "
                "varnishes within ten metres of it."
            ),
        ),
    ),
    Question(
        "workshop",
        "What are the penalties for slow payers, and do the music classes at St Anne's pay the same?",
        (
            (
                "After eight days a reminder goes out, free; after twenty a second one with a fee of £6; after "
                "thirty-five a third, with £12 on top, and Maud Ferrier telephones."
            ),
            (
                "Schools have sixty days to pay, and instead of the fees above they are charged two per cent a "
                "month from the sixty-first."
            ),
        ),
    ),
    Question(
        "workshop",
        "She wants a cello for her boy: what's it a month, and could they keep it for good later and on what terms?",
        (
            "| Cello | £24 | £90 |",
            (
                "After twelve months paid without a gap the hirer may buy at the list price, and two thirds of "
                "the hire paid so far is taken off it. For instruments on the gold list (those worth over "
                "£3,000) the allowance is one third."
            ),
        ),
    ),
    Question(
        "workshop",
        "Rented viola dropped on the family's trip to Spain: are they covered, and how soon must we hear?",
        (
            (
                "Damage through dropping, heat in cars and baggage handling is not included. A hirer can add it "
                "for £2.50 a month, and then pays the first £40 instead. Taking a hired instrument abroad is "
                "allowed for up to six weeks if we have been told two weeks before, but neither cover applies "
                "outside Europe."
            ),
            (
                "Damage is reported within a week and before anybody tries to mend it: a crack that has been "
                "treated with household glue counts as a total loss of the claim."
            ),
        ),
    ),
    Question(
        "workshop",
        "What do we charge for putting a price on paper, and how much do we want up front before we start?",
        (
            (
                "Looking is free; an estimate in writing costs £15, taken off the bill if the work goes ahead. "
                "Estimates for insurance companies are another thing: they take half a day, cost £60, and are "
                "not deducted from anything."
            ),
            (
                "For repairs over £250 we ask a third of the amount beforehand. Schools and the town band are "
                "excused from this and pay on a monthly account. For a restoration (anything above £1,500) there "
                "is a written agreement with stages, and the owner pays at the end of each stage, so that "
                "neither side is ever more than £600 ahead of the other."
            ),
        ),
    ),
    Question(
        "clinic",
        "How close to the surgery must staff be while on duty at the weekend?",
        (("One vet and one nurse are on, the vet within twenty minutes of Tithe Lane and the nurse within thirty."),),
    ),
    Question(
        "clinic",
        "An ophthalmic dropper was started two weeks ago. Still good?",
        (
            (
                "Opened bottles for injection are dated and thrown away after twenty-eight days, eye drops after "
                "fourteen."
            ),
        ),
    ),
    Question(
        "clinic",
        "At what setting do I wash blankets from infectious patients?",
        ("The laundry runs at 60 degrees, or at 90 for bedding from isolation.",),
    ),
    Question(
        "clinic",
        "Can a client spread a big bill over the year, and who says yes?",
        (
            (
                "Instalments are allowed up to six months, at no interest, for owners who have been with us two "
                "years, and are agreed with Odile Branscombe and never by a vet."
            ),
        ),
    ),
    Question(
        "clinic",
        "One gauze pad seems to be missing before I stitch up. What now?",
        ("If the count does not agree the wound stays open until it does or an X-ray has been taken.",),
    ),
    Question(
        "clinic",
        "Which villages does the horsebox visit on which weekday?",
        (
            (
                "On Mondays it goes to Stell and Upper Dunning, on Wednesdays to Cawthwaite and the coast, on "
                "Fridays to Brackholt; in lambing time, from 10 March to 30 April, the Friday round is given "
                "over to farms."
            ),
        ),
    ),
    Question(
        "clinic",
        "The fridge showed ten degrees this morning. Which doses may we still use and which are lost?",
        (
            (
                "If the reading has been between 8 and 12 degrees for less than four hours, mark the boxes with "
                "a blue dot, use them first and carry on. If it has been longer, or warmer, or below zero for "
                "any time at all, put the batch in quarantine and ring the maker; frozen vaccine is always "
                "destroyed, whatever the maker says."
            ),
        ),
    ),
    Question(
        "clinic",
        "How long without food before an operation, for each sort of patient?",
        (
            (
                "Dogs and cats fast for six hours before a planned anaesthetic, with water until two hours "
                "before. Rabbits, guinea pigs and ferrets follow other rules: the first two are not starved at "
                "all, the last for three hours only. Puppies and kittens under sixteen weeks get a small meal "
                "four hours before. A cat fed by mistake goes to the end of the list instead of home."
            ),
        ),
    ),
    Question(
        "clinic",
        "Numbers in the safe don't match the book. Whom do I tell, by when, and where does shattered glass go?",
        (
            (
                "A difference of up to two per cent in a liquid is noted and signed off as loss in the syringe. "
                "Anything larger, or a single missing ampoule or tablet, is reported to Dr Pryce within the "
                "hour, and by him to the inspectorate within seven days if it has not been explained. Broken "
                "ampoules are kept in a labelled jar until the next count."
            ),
        ),
    ),
    Question(
        "clinic",
        "What extra does a client pay at 2 a.m. or on Sunday, who gets off lightly, and what of farmers?",
        (
            (
                "Owners pay an emergency fee on top of treatment: £140 from seven until eleven in the evening, "
                "£210 from eleven to seven, and £165 in the daytime at weekends and holidays. It is mentioned on "
                "the telephone before they set out. The fee is reduced by half for members of the pet health "
                "plan and waived for injured wildlife and for strays brought in by the public. Farm clients pay "
                "by the hour instead, at £95, counted from leaving the yard."
            ),
        ),
    ),
    Question(
        "clinic",
        "Client hasn't settled for weeks. What letters go, what do they add, and what if he objects to the sum?",
        (
            (
                "Reminders go out at seven days and at twenty-one, the second with a £10 fee. At sixty days the "
                "account is closed except for emergencies, and at ninety it is handed to the collection agency. "
                "A disputed bill is set aside until the manager has answered, which takes ten working days at "
                "most, and no reminder runs in the meantime. Rescue charities are never sent to collection."
            ),
        ),
    ),
    Question(
        "clinic",
        "The Wren won't start, or the hills are white. Who gets rung, and when are the people it missed seen?",
        (
            (
                "If the Wren breaks down, the crew rings the yard at Pellow's, then reception, which calls every "
                "owner on the list in order of urgency. Drugs and vaccines are taken out first and carried back "
                "by whoever has a cool box. In snow the vet decides by seven in the morning; the hill road to "
                "Brackholt is not attempted when the barrier at Sallow Gate is down. Missed stops are made up "
                "the following week, not the next day, unless someone needs a second dose of a course."
            ),
        ),
    ),
    Question(
        "clinic",
        "Who may authorise ending a life, what if nobody can be traced, and would we do it to a fit one?",
        (
            (
                "The form is signed by the registered owner, or by someone who holds the owner's written "
                "permission. In an emergency, with the animal suffering and no owner to be found, two vets "
                "decide; at night one vet may, after trying the number three times in thirty minutes. We decline "
                "to put down a healthy animal unless rehoming has been tried for a month or there is a court "
                "order."
            ),
        ),
    ),
    Question(
        "clinic",
        "How long do we hold on to old case notes and images, and what if someone wants them sent over?",
        (
            (
                "Files are kept for seven years after the last visit, X-rays for five, and the red register for "
                "two years from its last entry. An owner may have a copy within thirty days at no charge, and a "
                "new practice receives the history within two working days of asking, with the owner's consent. "
                "Copies leave by secure email or on paper, never on a memory stick."
            ),
        ),
    ),
    Question(
        "clinic",
        "I believe I've got foot-and-mouth on a dairy herd. May I go on to the next call?",
        (
            (
                "Suspected anthrax, foot-and-mouth or bluetongue is telephoned to the ministry from the farm, "
                "not from the car, and the vet stays there until released; the rest of the round is cancelled by "
                "reception. For any other notifiable disease a report by the end of the same day is enough, and "
                "the vet may leave after washing."
            ),
        ),
    ),
    Question(
        "clinic",
        "I qualified last summer. Do I get backing when I'm on call, and what am I paid for a night?",
        (
            (
                "Nobody takes two weeks in succession, and vets in their first year after qualifying have a "
                "second vet on the telephone for their first ten nights."
            ),
            ("Time on call is paid at £110 a weeknight and £180 a day at the weekend, plus £45 for each animal seen."),
        ),
    ),
    Question(
        "clinic",
        "Guinea pig off its food since yesterday, owner an hour away and dithering. Which colour, what do I say?",
        (
            (
                "Always red are:\n\n"
                "- a bloated, retching dog; a cat that breathes with its mouth open; a male cat straining "
                "without passing urine\n"
                "- seizures lasting longer than three minutes, or two within a day\n"
                "- anything swallowed that may be rat poison, antifreeze, lilies (cats) or xylitol (dogs)\n"
                "- rabbits and guinea pigs that have eaten nothing for twelve hours"
            ),
            (
                "A caller who cannot decide whether to come is told to come. If the caller is more than forty "
                "minutes away, the duty vet rings back within ten minutes to judge whether the Wren or a closer "
                "practice is the better choice."
            ),
        ),
    ),
    Question(
        "clinic",
        "How often do we check the strong drugs against the book, and is it the same in the horsebox?",
        (
            "The stock is counted every Friday by two people who did not count it the week before.",
            "Ketamine in the Wren's box is counted daily, at the start of the round and at the end of it.",
        ),
    ),
    Question(
        "clinic",
        "Old collie to be put to sleep in her own kitchen: how far do we drive, what's it cost, can the son sign?",
        (
            (
                "At home we come in a car without the practice's name, within a radius of fifteen miles, for £85 "
                "in addition; the Wren does not serve for home visits."
            ),
            ("The form is signed by the registered owner, or by someone who holds the owner's written permission."),
        ),
    ),
    Question(
        "clinic",
        "Blood drawn at six on Friday, might be septic. Does it go off, and how will the owner hear if it's grim?",
        (
            (
                "Those taken on Friday after four wait until Monday, except for blood cultures and anything that "
                "might be sepsis, for which a courier is called and the owner is charged £38."
            ),
            (
                "Owners hear normal results by text message and abnormal ones by voice; a result that is "
                "life-threatening is telephoned at any hour."
            ),
        ),
    ),
)
