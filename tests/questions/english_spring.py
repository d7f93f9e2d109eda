"""Seventy exchanges in English, part two: school, house, health, money, customers."""

from __future__ import annotations

from tests.questions.exchange import LabelledExchange

EXCHANGES: tuple[LabelledExchange, ...] = (
    LabelledExchange(
        "museum-trip",
        "school-year",
        "2026-03-10T15:40",
        "The class trip of 5B to the maritime museum is on 21 April. Coach leaves at 7:45, each child pays 14, and "
        "Mrs Okafor has the list of who cannot pay; the school fund covers those.",
        "Then the letter to parents needs four things: 21 April, coach at 7:45, the 14 with a date to pay it by, "
        "and a discreet line that nobody stays behind for lack of money, with Mrs Okafor as contact.",
    ),
    LabelledExchange(
        "exam-rota",
        "school-year",
        "2026-03-10T16:02",
        "For the mock exams I split invigilation so nobody sits more than two sessions. Gethin swaps with me on the "
        "Thursday since he has the orchestra.",
        "Two sessions each is humane. Print the rota with the swap already in it, so that nobody reads the old one, "
        "and name a reserve for every morning, as somebody always falls ill.",
    ),
    LabelledExchange(
        "lunch-menu",
        "school-year",
        "2026-03-10T16:20",
        "The canteen will have one vegan day a week from the summer term, Tuesdays. The pupils' council wanted two, "
        "the caterer Hartley said one as a trial until July.",
        "A trial until July gives you numbers. Count leftovers on Tuesdays against other days and ask the pupils' "
        "council to collect opinions; with both in hand the second day is an easy talk with the caterer.",
    ),
    LabelledExchange(
        "science-fair",
        "school-year",
        "2026-03-10T16:45",
        "Science fair: Maryam won with her project on how fast different bread grows mould. The judges liked that "
        "she had fifty slices and a control group. Prize is a day at the university lab in Leeds.",
        "Congratulations to Maryam! Fifty slices with a control group is more rigour than many adults show. For the "
        "day in Leeds, the lab will likely ask for a signed form and closed shoes; check early.",
    ),
    LabelledExchange(
        "parents-evening",
        "school-year",
        "2026-03-10T17:05",
        "At parents' evening seven families said the homework app sends too many alerts. We turn off everything but "
        "the Sunday digest, and Mr Lindqvist tells the parents by letter.",
        "A Sunday digest keeps the use without the noise. In the letter, say also how those who liked single alerts "
        "can turn them on again, and from which date the change holds.",
    ),
    LabelledExchange(
        "washing-machine",
        "house",
        "2026-03-19T18:30",
        "The washing machine stopped with E18 again. The repair man, Dougal, pulled a hair clip out of the pump, "
        "took 75, and said the bearings will last another two years at most.",
        "E18 is nearly always a blocked pump. A laundry net for small things saves the next 75. With two years left "
        "on the bearings, start putting a little aside for a new machine.",
    ),
    LabelledExchange(
        "fence-neighbour",
        "house",
        "2026-03-19T18:52",
        "We share the cost of the garden fence with the Abernathys, half each, 620 in all. They want larch, we said "
        "fine if it stays unpainted.",
        "Unpainted larch turns silver within two years and needs no care, so both sides save work. Put the "
        "half-and-half split and who owns which side into a short note that you both sign.",
    ),
    LabelledExchange(
        "boiler-cover",
        "house",
        "2026-03-19T19:10",
        "I let the insurance for pipes and drains lapse on 1 March, it was 22 a month and in four years we never "
        "called them once. The building policy covers burst pipes anyway.",
        "Reasonable, so long as the building policy really includes tracing a leak and repairing the floor after "
        "it, not just the burst pipe. Look for the words trace and access in the policy.",
    ),
    LabelledExchange(
        "paint-colours",
        "house",
        "2026-03-19T19:33",
        "The hall gets Farrow and Ball Hague Blue below the rail and Slipper Satin above. Two and a half litres "
        "were enough for the lower part with two coats, I kept the rest in the attic.",
        "A handsome pair. Write the room and date on the lid of what is left, and store it where it doesn't freeze: "
        "an attic in January can ruin water-based paint in a single night.",
    ),
    LabelledExchange(
        "spare-keys",
        "house",
        "2026-03-19T19:50",
        "Spare keys: one set with Mrs Trelawney at number 8, one in the little lockbox by the compost, code 5093. "
        "The cleaner's set came back to us in February.",
        "Noted. Two sets out of the house are plenty. Change the code of the lockbox from time to time, since "
        "numbers wear the buttons, and tell Mrs Trelawney when you are away for longer.",
    ),
    LabelledExchange(
        "physio-knee",
        "health",
        "2026-04-02T08:05",
        "Physio says the knee pain comes from weak hips. Twelve weeks of side steps with the yellow band, three "
        "times a week, and no running on tarmac till July. Her name is Bronagh.",
        "Weak hips often show up as knee pain. Three short sessions a week are easy to fit in after brushing your "
        "teeth. For running, soft forest paths may be allowed sooner; ask her next time.",
    ),
    LabelledExchange(
        "cat-diet",
        "health",
        "2026-04-02T08:22",
        "The vet put Pickle on kidney food, 60 grams twice a day, no more tuna. She lost 400 grams since autumn and "
        "drinks a lot. Next blood test on 11 June.",
        "Poor Pickle. Change over to the kidney food across ten days, mixing a bit more in each time, or she may "
        "refuse it. Weigh her every Sunday and take the numbers to the blood test.",
    ),
    LabelledExchange(
        "varifocals",
        "health",
        "2026-04-02T08:40",
        "The varifocals make me dizzy on stairs. The optician, Mr Castellano, remakes them for free within ninety "
        "days, I just have to bring them in before the tenth of May.",
        "Dizziness on stairs that lasts beyond two weeks usually means the reading zone sits too high. Ask for the "
        "lenses to be measured while you stand, and don't let the tenth of May slip.",
    ),
    LabelledExchange(
        "dentist-night",
        "health",
        "2026-04-02T08:58",
        "The dentist found that I grind at night. A splint costs 280, the insurance pays 190 if I send form D7 "
        "before it is made, not afterwards.",
        "Then form D7 first, splint second, leaving you 90. Keep the letter of approval, and ask for the model of "
        "your teeth: a second splint made from it later is much cheaper.",
    ),
    LabelledExchange(
        "first-aid-course",
        "health",
        "2026-04-02T09:15",
        "Everybody who works at the kiln did the first aid course on 27 March, except Rosalind, who was ill. Burns "
        "took up half the day. Valid for two years.",
        "Good that burns had so much room, given the kiln. Book Rosalind on the next open date, and until then do "
        "not plan her alone on firing days. Put a reminder for early 2028.",
    ),
    LabelledExchange(
        "vat-late",
        "money",
        "2026-04-14T10:00",
        "The VAT return for the first quarter was nine days late because the bookkeeper thought I had sent it. "
        "Penalty 200. From now on Siobhan files it on the fifth, and I only approve.",
        "One owner is the cure for that. Give Siobhan a deputy for holidays, and ask once whether the 200 can be "
        "waived: a first late return is sometimes forgiven when you write a plain letter.",
    ),
    LabelledExchange(
        "grant-solar",
        "money",
        "2026-04-14T10:25",
        "The county grant for solar panels came through: 8,600 of the 21,500, if they are on the roof by the end of "
        "October. The installer is Meridian Roofworks.",
        "Great news. Work back from the end of October: scaffolding, panels, the meter and the sign-off by the grid "
        "each need weeks. Ask Meridian for a date in writing before you sign anything.",
    ),
    LabelledExchange(
        "rent-studio",
        "money",
        "2026-04-14T10:50",
        "Landlord of the studio wants index-linked rent from next year. Our lawyer, Mr Fitzalan, says only with a "
        "cap of three percent, otherwise we let the option lapse and look in Dundalk.",
        "A cap of three percent is a fair middle. Ask for it in both directions, and have the square metres "
        "measured before signing, since the index multiplies any mistake in them.",
    ),
    LabelledExchange(
        "pension-switch",
        "money",
        "2026-04-14T11:15",
        "We move the staff pension from Aldwych Mutual to Peoplesave in September. Fees go down from 0.9 to 0.4 "
        "percent; eleven of the fourteen people voted for it.",
        "Half a percent sounds small, yet over thirty years it is more than a tenth of the pot. Explain to the "
        "three who voted against it what happens to their old savings.",
    ),
    LabelledExchange(
        "petty-cash",
        "money",
        "2026-04-14T11:40",
        "The petty cash tin was short by 38.50 for the third month. No accusations, we simply abolish the tin: "
        "everybody with errands gets a prepaid card with a limit of 100.",
        "Elegant, as it ends the question without a culprit. Choose cards where receipts are photographed at once, "
        "and count the tin a last time with two people before it goes.",
    ),
    LabelledExchange(
        "contract-renewal",
        "customers",
        "2026-04-28T09:30",
        "Blackthorn Dairies renew for two years, but want the reports monthly and a named contact. I promised them "
        "Tamsin. They pay 940 a month, eight percent more than now.",
        "A good deal on both sides. Let Tamsin introduce herself this week, and agree what the reports hold before "
        "the first is due, or each month starts a new discussion.",
    ),
    LabelledExchange(
        "angry-review",
        "customers",
        "2026-04-28T09:55",
        "The one-star review was from a man whose wardrobe arrived without screws. Nobody answered his three mails "
        "as they sat in spam. Beatriz drove over with the screws and a cake.",
        "Driving over with a cake beats any apology. Ask him once, without pressing, whether he would update the "
        "review, and look why the mails were in spam: there may be others.",
    ),
    LabelledExchange(
        "demo-hospital",
        "customers",
        "2026-04-28T10:20",
        "The demo at St Brendan's hospital failed since their network blocks websockets. The head of IT, Dr Achebe, "
        "gives us a second chance on 19 May, on a guest line.",
        "Test from a phone hotspot and from the guest line a day before. Long polling as a plan B would spare you "
        "the same with other hospitals, as many block websockets.",
    ),
    LabelledExchange(
        "discount-rule",
        "customers",
        "2026-04-28T10:45",
        "Sales may give up to seven percent discount without asking. Between seven and fifteen it needs Gwendolyn, "
        "above that nobody, not even for charities; those get a longer trial instead.",
        "Clear steps. Publish the rule with an example for each, and record each discount with its reason; after "
        "half a year you see whether seven percent is the right line.",
    ),
    LabelledExchange(
        "churn-survey",
        "customers",
        "2026-04-28T11:10",
        "We phoned the thirty-one customers who left last year. Fourteen said too complicated, nine went bust, five "
        "too expensive, three would not talk. So Kwame makes the first hour simpler before any new feature.",
        "Fourteen of the twenty-two who could have stayed is a loud answer. Measure the first hour: how many new "
        "customers reach their first result, and where the others stop.\n"
        "\n"
        "That also gives Kwame a figure to improve:\n"
        "\n"
        "1. time until the first result\n"
        "2. share of people who get there on day one\n"
        "3. the screen on which most give up\n"
        "\n"
        "Phone again in a year with the same questions, so that the two rounds can be compared. The nine that went "
        "bust are worth a look as well: if they were all of one trade, then it says something about where sales "
        "should look for new customers.",
    ),
)
