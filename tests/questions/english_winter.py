"""Seventy exchanges in English, part one: backups, suppliers, a release, hiring, holidays."""

from __future__ import annotations

from tests.questions.exchange import LabelledExchange

EXCHANGES: tuple[LabelledExchange, ...] = (
    LabelledExchange(
        "nas-disk",
        "ops-backups",
        "2026-01-12T09:14",
        "The NAS in the server cupboard, kestrel-02, has been clicking since Friday. SMART says disk 3 has 214 "
        "reallocated sectors. I ordered a 12 TB Toshiba, it should come on Thursday.",
        "That many reallocated sectors means the disk is on its way out. Until the Toshiba arrives, avoid heavy "
        "jobs on the array. When it comes: mark disk 3 as failed, swap it hot, start the rebuild and leave it alone "
        "overnight.",
    ),
    LabelledExchange(
        "restic-offsite",
        "ops-backups",
        "2026-01-12T09:31",
        "Restic now pushes snapshots of the file share to a storage box in Falkenstein every four hours. The "
        "passphrase is split: one half in Priya's safe, the other in the company vault.",
        "Good setup. Splitting the passphrase means no single person can read the snapshots, but also that losing "
        "either half loses everything. Write down who holds which half and look once a year whether both are still "
        "there.",
    ),
    LabelledExchange(
        "restore-drill",
        "ops-backups",
        "2026-01-12T16:02",
        "Did the restore drill with Owen this afternoon. The whole bookkeeping folder from December came back in 41 "
        "minutes, but the permissions were lost, so only root could open anything.",
        "Forty-one minutes is fine for that amount. For the permissions: run the restore as root and keep owner "
        "names rather than numeric ids, because the ids on the spare machine differ. Repeat the drill once that is "
        "changed.",
    ),
    LabelledExchange(
        "laptop-copies",
        "ops-backups",
        "2026-01-12T16:20",
        "Nobody in design has a second copy of their MacBook. I bought three Samsung T7 drives; Time Machine is to "
        "run every Wednesday at lunch when they plug them in.",
        "Simple and good enough. Turn on encryption in Time Machine, label each T7 with its owner, and put a "
        "recurring reminder in the design calendar for Wednesday noon, or the habit will fade by March.",
    ),
    LabelledExchange(
        "shop-dumps",
        "ops-backups",
        "2026-01-12T16:41",
        "Postgres dumps of the web shop are 9 GB each and fill up /var on heron. We agreed on seven daily ones and "
        "four weekly ones, the rest gets deleted.",
        "A small systemd timer can do the rotation: name the dumps by date, promote Sunday's to weekly, then remove "
        "daily files older than seven days and weekly ones older than twenty-eight. Watch free space on /var with "
        "an alert at 80 percent.",
    ),
    LabelledExchange(
        "oak-supplier",
        "suppliers",
        "2026-01-20T10:05",
        "Called Brannigan Timber about the oak boards. They want 4,150 pounds for two cubic metres, kiln dried to "
        "nine percent, delivery in three weeks, and payment up front since we paid late in autumn.",
        "Noted. Payment up front on 4,150 pounds is a fair reaction to one late invoice, but you could offer half "
        "now and half on delivery. Ask them also to measure moisture on arrival: nine percent is right for "
        "tabletops.",
    ),
    LabelledExchange(
        "hinge-supplier",
        "suppliers",
        "2026-01-20T10:18",
        "The soft-close hinges from Dettmer squeak after about a month. Lucas tested twenty, seven were bad. We are "
        "going back to Blum although each one costs 1.20 more.",
        "Seven of twenty is far beyond bad luck. Going back to Blum is sensible; the extra 1.20 each is less than "
        "one visit to a customer's kitchen. Send Dettmer the test results and ask for a refund.",
    ),
    LabelledExchange(
        "oil-finish",
        "suppliers",
        "2026-01-20T10:40",
        "For the nursery order we need a finish that is safe when toddlers chew on it. Ingrid suggests hardwax oil "
        "by Osmo, number 3062, two thin coats, a day between.",
        "Hardwax oil 3062 carries the toy safety mark EN 71-3 once cured. Two thin coats with a day between is "
        "right; let the pieces harden for two weeks before they go to the nursery.",
    ),
    LabelledExchange(
        "box-maker",
        "suppliers",
        "2026-01-20T11:02",
        "Our cartons now come from Pentland Packaging in Fife instead of the wholesaler. Minimum 500 pieces, 0.83 "
        "each, double wall, and they print the logo free from a thousand.",
        "At 0.83 double wall is a good price. If storage allows, a thousand at once gets the logo free. Ask for a "
        "flat sample first and drop one with a stool inside from a metre.",
    ),
    LabelledExchange(
        "courier-damage",
        "suppliers",
        "2026-01-20T11:25",
        "Third broken table leg this month with ParcelSwift. I told their account manager, Noreen, that we leave by "
        "the end of February unless they pay for all three, 690 in total.",
        "A clear line. Send Noreen photos, order numbers and the 690 in one message, with the end of February as "
        "date, so that it can be forwarded inside ParcelSwift without loss.",
    ),
    LabelledExchange(
        "release-rollback",
        "release-47",
        "2026-02-03T08:50",
        "We rolled back 4.7.2 at seven this morning. The migration locked the orders table for eleven minutes and "
        "checkout timed out for everybody in Ireland and the UK.",
        "Eleven minutes of lock suggests the column was added with a default that rewrote the table. Add it "
        "nullable, fill it in batches, then set the constraint. Plan the second try outside morning hours.",
    ),
    LabelledExchange(
        "ops-ticket",
        "release-47",
        "2026-02-03T09:12",
        "Filed OPS-4417 for it. Marek owns it, he wants a dry run of every migration against a copy of production "
        "before we merge, not after.",
        "That is the right lesson to take from it. A dry run in the pipeline needs an anonymised copy, so plan who "
        "refreshes it and how often. Link the timings to the pull request so that reviewers see them.",
    ),
    LabelledExchange(
        "flaky-test",
        "release-47",
        "2026-02-03T11:30",
        "The flaky test was test_invoice_rounding. It failed only when the build ran after midnight UTC, because it "
        "mixed local dates with UTC. Yusuf fixed it by freezing the clock.",
        "A classic. Freezing the clock cures the test; have a look whether the invoice code itself also mixes local "
        "dates with UTC, since then customers would see it on the last night of each month.",
    ),
    LabelledExchange(
        "deploy-window",
        "release-47",
        "2026-02-03T14:05",
        "New rule from today: deploys only Monday to Thursday between ten and three, and never without a second "
        "person online. Amara keeps the list of exceptions.",
        "Clear and short, easy to follow. Put it into the pipeline as a check rather than in a wiki, with an "
        "override that asks for the name of the second person and tells Amara.",
    ),
    LabelledExchange(
        "status-page",
        "release-47",
        "2026-02-03T14:22",
        "Customers complained that they heard of the outage from Twitter. We take a status page at Instatus, 20 "
        "dollars a month, and support posts there within fifteen minutes.",
        "Fifteen minutes is ambitious but good. Prepare three texts in advance (investigating, identified, "
        "resolved), give support the right to post without asking, and link the page in every footer.",
    ),
    LabelledExchange(
        "hire-petra",
        "hiring",
        "2026-02-17T10:00",
        "Second talk with Petra Novak today. We offer her 32 hours, start on the first of May, two days from home, "
        "and she gets the title of production planner.",
        "Sounds settled. Send the offer in writing within two days while it is fresh: 32 hours, production planner, "
        "first of May, which two days from home, and how long the trial period is.",
    ),
    LabelledExchange(
        "reject-designer",
        "hiring",
        "2026-02-17T10:35",
        "We turned down the designer with the beautiful portfolio, Casper, since he could not name one thing he "
        "would do differently in any of his projects.",
        "A hard call with a strong portfolio, but being able to look back critically is most of design work. Tell "
        "Casper kindly and honestly; a vague refusal helps nobody.",
    ),
    LabelledExchange(
        "job-advert",
        "hiring",
        "2026-02-17T11:10",
        "The advert for the upholsterer ran six weeks on Indeed with two replies. One afternoon on the noticeboard "
        "of the college in Galway brought nine. We put the money there next time.",
        "Local beats broad for craft jobs. Ask the college whether you may visit the final year class in person; "
        "teachers often know who would fit, and a half-hour visit costs nothing.",
    ),
    LabelledExchange(
        "apprentice-pay",
        "hiring",
        "2026-02-17T11:44",
        "Apprentices get 1,080 a month in the first year from August, plus the bus pass. Before it was 960 and no "
        "pass. Fiona signed it off.",
        "A rise of 120 plus the bus pass is noticeable for an apprentice. Tell those in their second and third year "
        "as well what it means for them, or they will hear only half of it.",
    ),
    LabelledExchange(
        "onboarding-week",
        "hiring",
        "2026-02-17T15:20",
        "New people kept asking where things are, so the first week now has a fixed plan. Can you keep it: Monday "
        "keys and safety tour, Tuesday shadow the saw, Wednesday ride with delivery, Thursday sit with customer "
        "service, Friday lunch with Howard.",
        "Kept. As a list for the wall:\n"
        "\n"
        "- **Monday**: keys, locker, safety tour, where the first aid boxes are\n"
        "- **Tuesday**: shadow somebody at the saw, no machine use yet\n"
        "- **Wednesday**: ride along with delivery, see how pieces reach the customers\n"
        "- **Thursday**: sit with customer service, listen in on calls, read ten complaints\n"
        "- **Friday**: lunch with Howard, questions in both directions, what surprised them\n"
        "\n"
        "Two additions worth a thought. Give each newcomer one person to ask who is not their boss, because small "
        "questions are easier there. And have them write down on Friday what was missing in the plan: whoever is "
        "new sees what the rest of us no longer do. Keep these notes in one place and change the plan every half "
        "year, so that it does not grow but improves. If somebody starts in the middle of a week, begin with the "
        "safety tour all the same and let the rest follow in order.",
    ),
    LabelledExchange(
        "madeira-trip",
        "holidays",
        "2026-03-02T20:10",
        "We booked Madeira for the Easter break: Quinta da Ribeira, 28 March to 6 April, 1,340 for the four of us "
        "without flights, free cancellation until the fourteenth.",
        "Lovely choice. Put the fourteenth into your calendar as the last day for free cancellation. On Madeira a "
        "car helps for the levada walks in the north; book one early, small automatics are gone first around Easter.",
    ),
    LabelledExchange(
        "summer-leave",
        "holidays",
        "2026-03-02T20:31",
        "In the shop only two of the five may be away at once in July and August. Deirdre has the first fortnight, "
        "Sanjay the last week of July, nobody else has asked yet.",
        "Then the first half of July has room for one more beside Deirdre, and so has the last week beside Sanjay. "
        "Set a day by which the others should ask, say the end of April.",
    ),
    LabelledExchange(
        "camping-halfterm",
        "holidays",
        "2026-03-02T20:48",
        "Half-term camping at Loch Morlich went badly: the tent pole snapped the first night, and Ella got earache. "
        "Next year we take one of the wooden pods, they are 65 a night.",
        "Poor Ella, and poor you. The pods go quickly for the school weeks, so book in October for next year. A "
        "snapped pole can be splinted with a repair sleeve; worth having one in the bag.",
    ),
    LabelledExchange(
        "xmas-closure",
        "holidays",
        "2026-03-02T21:05",
        "Decided in the office meeting: we close from 23 December to 4 January, three days come out of everybody's "
        "allowance, the rest is a gift. Emergency phone goes to Howell.",
        "Announce it now while people still have their allowance to plan with. For the emergency phone agree what "
        "counts as one, and give Howell a day back in January.",
    ),
    LabelledExchange(
        "passport-renewal",
        "holidays",
        "2026-03-02T21:15",
        "Finn's passport runs out on 19 May and renewing takes six weeks now. I have the photos, still missing is "
        "the consent form from his father.",
        "With six weeks of processing, the form should be in the post by the end of this month to be safe. "
        "Countries outside Europe often want six months of validity on top, so renewing early loses nothing.",
    ),
)
