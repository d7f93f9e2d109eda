"""Seventy exchanges in English, part three: network, machines, product, remote work."""

from __future__ import annotations

from tests.questions.exchange import LabelledExchange

EXCHANGES: tuple[LabelledExchange, ...] = (
    LabelledExchange(
        "guest-wifi",
        "network",
        "2026-05-06T13:00",
        "Guest wifi is now its own VLAN, number 30, 20 Mbit, no access to the file share. The code on the board in "
        "reception changes on the first of every month, Ottoline does it.",
        "Well separated. Have the code generated rather than thought up, print it as a QR code for the board, and "
        "let the meeting room screens stay on the staff network or nobody can present.",
    ),
    LabelledExchange(
        "vpn-switch",
        "network",
        "2026-05-06T13:20",
        "We leave OpenVPN for WireGuard. The gateway is puffin, each laptop has its own key, and lost devices are "
        "removed by Tobias within the hour. Old tunnel goes off on 30 June.",
        "WireGuard will also feel faster on the train. Keep a list of key, person and device beside the gateway, "
        "and warn twice before the thirtieth; there is always one laptop that only comes in summer.",
    ),
    LabelledExchange(
        "cert-expiry",
        "network",
        "2026-05-06T13:45",
        "The certificate of the customer portal ran out on Sunday since the renewal mail went to Jonas, who left in "
        "March. Now certbot renews it and an alert goes to the whole on-call list.",
        "Mail to one person is how nearly all certificates die. Check which other accounts still point to Jonas: "
        "domains, payment providers, app stores. An outside probe for days left costs nothing.",
    ),
    LabelledExchange(
        "ups-battery",
        "network",
        "2026-05-06T14:10",
        "Power cut yesterday, the UPS lasted four minutes instead of twenty. Batteries are from 2019. New ones, two "
        "RBC7 packs, cost 310 and Eamonn fits them on Saturday.",
        "Seven years is old age for such batteries. After fitting, run the self test and a real one with the plug "
        "pulled, and let the servers shut down by themselves at forty percent.",
    ),
    LabelledExchange(
        "door-cameras",
        "network",
        "2026-05-06T14:30",
        "The works council agreed to the camera at the loading bay on three conditions: no sound, pictures deleted "
        "after 72 hours, and only Mehmet and the police may look.",
        "Three clean conditions. Put a sign at the bay before the camera is switched on, record every access, and "
        "note the deletion after 72 hours in the register of processing.",
    ),
    LabelledExchange(
        "bandsaw-blade",
        "machines",
        "2026-05-15T07:40",
        "The bandsaw wanders to the left in thick walnut. Alasdair swapped the blade for a three-tooth one of 16 "
        "millimetres and moved the guide closer, now it cuts straight.",
        "Fewer teeth clear the dust faster in thick stock, so the blade stays cool and straight. Note tooth count "
        "and width on the machine, and replace the blade as soon as it begins to drift again.",
    ),
    LabelledExchange(
        "kiln-curve",
        "machines",
        "2026-05-15T08:05",
        "Stoneware cracked in the big kiln again. New curve: 80 degrees an hour up to 600, hold for thirty minutes, "
        "then 150 up to 1,240. Clementine logs every firing in the green book.",
        "The slow start lets the last water out; that is where most cracks begin. If pieces still crack, check "
        "whether the cracks are sharp-edged: then it was the cooling, and the kiln was opened too early.",
    ),
    LabelledExchange(
        "dust-extractor",
        "machines",
        "2026-05-15T08:30",
        "The inspector measured dust at the sanding table: 3.1 milligrams, allowed are 2. We have until 15 August "
        "to fix it. A second extractor would be 5,400, a new hood only 700.",
        "Try the hood first: drawing dust off at the table beats more power further away. Have it measured in July, "
        "so that there is time for the big solution if 2 milligrams is not reached.",
    ),
    LabelledExchange(
        "printer-nozzle",
        "machines",
        "2026-05-15T08:55",
        "The 3D printer makes strings between the parts with PETG. Settings that work: 235 degrees, retraction 1.2, "
        "and dry the roll for six hours at 65. Wolfgang found them after two weekends.",
        "Wet PETG is the usual culprit, so the drying likely did the most. Save those settings as a profile with "
        "the brand of the roll in its name, as the next brand may want others.",
    ),
    LabelledExchange(
        "forklift-service",
        "machines",
        "2026-05-15T09:20",
        "The forklift passed its yearly check, but the left fork shows wear of eight percent; at ten it has to go. "
        "Next check in May 2027, the sticker is under the seat. Inspector was a Mr Pritchard.",
        "With eight of ten percent used up, order the forks now, both of them since they are matched as a pair. "
        "Until then keep to light pallets and look at the heel of the left one monthly.",
    ),
    LabelledExchange(
        "drop-widgets",
        "product",
        "2026-06-09T09:10",
        "We drop the dashboard widgets in version 6. Only four percent of accounts use them, and they cause a third "
        "of the bugs. Saskia writes to the forty biggest users herself.",
        "Those two figures make the case on their own. In the letters, offer an export and a date, and ask what the "
        "widgets were for: a few will name a need you can meet otherwise.",
    ),
    LabelledExchange(
        "pricing-tiers",
        "product",
        "2026-06-09T09:35",
        "From September there are two plans instead of four: Studio for 29 a month and Workshop for 79. Old "
        "customers keep their price for eighteen months. Idris fought for a free one, we said no.",
        "Two plans are far easier to explain. Announce it to old customers first, with the eighteen months in the "
        "first sentence. For what Idris wanted: a long trial may do much of the same.",
    ),
    LabelledExchange(
        "dark-theme",
        "product",
        "2026-06-09T10:00",
        "The dark theme waits until autumn. Contrast of the charts fails the test in eleven places, and Noor, who "
        "draws them, is on parental leave until 1 October.",
        "Better late than unreadable. List the eleven places now with screenshots, so that Noor has them on her "
        "first day back, and hide the switch until then.",
    ),
    LabelledExchange(
        "api-limits",
        "product",
        "2026-06-09T10:25",
        "One customer, Quillfeather Media, sent 90,000 requests in an hour and slowed everyone. New limit for the "
        "API: 600 a minute per key, then 429 with a Retry-After header.",
        "Ten a second per key is generous. Announce it with a month of warning where you only log, and tell "
        "Quillfeather about the bulk endpoint, which would need ninety calls instead.",
    ),
    LabelledExchange(
        "translation-vendor",
        "product",
        "2026-06-09T10:50",
        'Polish and Czech come from Lingvara now, 0.11 a word. The first batch had "table" translated as '
        "furniture in the settings, so every batch gets a glossary and is read by Zdenka before release.",
        "The classic fate of short strings. Give Lingvara screenshots with each string, keep the glossary in the "
        "repository, and let Zdenka mark repeated mistakes so that it grows.",
    ),
    LabelledExchange(
        "standup-time",
        "remote-team",
        "2026-06-30T09:00",
        "Stand-up moves to 9:45 on Mondays and Thursdays only, written on the other days. Ravindra has nursery "
        "runs, and in Halifax it was five in the morning.",
        "Two spoken and three written is a good mix. Agree on an hour by which the written ones are in, say noon, "
        "and keep the same three questions so that they stay short.",
    ),
    LabelledExchange(
        "laptop-policy",
        "remote-team",
        "2026-06-30T09:20",
        "Everybody may choose between a ThinkPad X1 and a Framework 13, up to 1,900, every four years. Old ones can "
        "be bought for 150 after Leopold has wiped them.",
        "Fair and simple. Note who received what and when, so that the four years are not a matter of memory. "
        "Leopold should keep proof of each wipe for the auditors.",
    ),
    LabelledExchange(
        "offsite-venue",
        "remote-team",
        "2026-06-30T09:45",
        "For the autumn retreat we compared two houses: Glenfarg Lodge with 22 beds for 2,900, and the mill in Hay "
        "with 18 beds and a sauna for 2,350. We took the mill; four can sleep at the inn.",
        "The saved 550 more than pays for four at the inn. Ask who would rather have quiet, and book the inn before "
        "the walking season fills it.",
    ),
    LabelledExchange(
        "password-manager",
        "remote-team",
        "2026-06-30T10:10",
        "After the phishing mail on the 24th, two people had typed in their password. We reset everything, bought "
        "YubiKeys for all nineteen, and shared logins live only in Bitwarden. Thandiwe teaches it on Friday.",
        "Two of nineteen is normal, which is why keys help: they refuse the wrong site. Order two for each person, "
        "one stays at home, and let Thandiwe show how a lost one is reported.",
    ),
    LabelledExchange(
        "meeting-free",
        "remote-team",
        "2026-06-30T10:35",
        "No meetings on Wednesdays until the end of the year, as a trial. Customers are the exception. In the "
        "survey, sixteen of nineteen were for it; Barnaby worries about the Spanish partners.",
        "Put a blocking entry into all calendars, so that it defends itself. For what worries Barnaby: offer the "
        "partners fixed hours on Tuesday. Ask again in the survey in October.",
    ),
)
