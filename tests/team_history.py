"""Fifty messages of two colleagues over some weeks, in English and German: what is told, asked, chatted and ordered.

Each has a thread, its author, the text, the model's answer, and for what rests on something told before the key that the
passage with the answer contains. The scripted model cites exactly the passages that contain the key.
"""

from __future__ import annotations

from typing import NamedTuple


class Message(NamedTuple):
    """A message of the history; `key` is empty if nothing told before answers it."""

    thread: str
    author: str
    text: str
    answer: str
    key: str = ""


ALICE, BOB = "alice", "bob"

HISTORY = (
    Message("Keys", ALICE, "The spare key of the workshop hangs behind the clock in the hall.", "Noted."),
    Message("Keys", ALICE, "And the one for the archive is in the drawer under the till.", "Noted."),
    Message("Supplier", BOB, "Bergmann will deliver the gaskets in week 34, not in week 32.", "Noted."),
    Message("Supplier", BOB, "Write a friendly two-line email that asks for a delivery date.", "Dear Sir or Madam, …"),
    Message("Hello", ALICE, "Good morning!", "Good morning, how can I help?"),
    Message("Pump", BOB, "Die Pumpe in Halle 3 läuft seit gestern mit 1.450 Umdrehungen.", "Notiert."),
    Message("Pump", BOB, "Was kann man gegen Kavitation tun?", "Den Zulaufdruck erhöhen."),
    Message("Pump", ALICE, "Danke dir!", "Gern."),
    Message("Code", ALICE, "Write a Python function that reverses a string.", "def reverse(text): return text[::-1]"),
    Message("Code", ALICE, "Now add a docstring.", "def reverse(text): …"),
    Message("Budget", BOB, "We agreed on 28 retries for the uplink, with a pause of 40 seconds.", "Noted."),
    Message("Where", BOB, "Where is the spare key of the workshop?", "Behind the clock.", "behind the clock"),
    Message("Where", BOB, "Thanks, you are great", "You're welcome."),
    Message("Trip", ALICE, "Our flight to Lisbon leaves on Friday at six in the morning.", "Noted."),
    Message("Trip", ALICE, "What should I see in Lisbon in two days?", "Alfama, Belém and the castle."),
    Message("Lease", BOB, "Der Mietvertrag für das Büro in Hamburg läuft bis 2031.", "Notiert."),
    Message("Gaskets", ALICE, "When do the gaskets from Bergmann arrive?", "In week 34.", "week 34"),
    Message("Gaskets", ALICE, "Is that later than planned?", "Yes, it was week 32.", "week 34"),
    Message("Mail", BOB, "Translate 'the parts will be late' into German.", "Die Teile kommen später."),
    Message("Mail", BOB, "More formal, please", "Die Lieferung der Teile wird sich verzögern."),
    Message("Staff", ALICE, "Sarah takes over the sales team from January.", "Noted."),
    Message("Staff", ALICE, "haha ok", "Anything else?"),
    Message("Meeting", BOB, "The review with Nordlicht moves to Thursday, 14:00, room 4.", "Noted."),
    Message("Meeting", BOB, "Suggest an agenda for an hour with a customer.", "1. Welcome …"),
    Message("Uplink", ALICE, "How many retries did we agree on for the uplink?", "28.", "28 retries"),
    Message("Uplink", ALICE, "And the pause?", "40 seconds.", "40 seconds"),
    Message("Science", BOB, "Why is the sky blue?", "Rayleigh scattering."),
    Message("Science", BOB, "Explain it to a child", "Blue light bounces around more."),
    Message("Allergy", ALICE, "Tom is allergic to peanuts, please remember that for the catering.", "Noted."),
    Message("Catering", BOB, "What must the caterer avoid for Tom?", "Peanuts.", "peanuts"),
    Message("Printer", BOB, "The new printer jams whenever it gets thick paper.", "Noted."),
    Message("Printer", BOB, "Hm, strange", "It is."),
    Message("Hotel", ALICE, "Das Hotel in Lissabon heißt Avenida und ist bis Montag bezahlt.", "Notiert."),
    Message("Flight", BOB, "At what time does the flight to Lisbon leave?", "At six.", "six in the morning"),
    Message("Flight", BOB, "Wie heißt das Hotel dort?", "Avenida.", "Avenida"),
    Message("Numbers", ALICE, "What is 17 percent of 340?", "57.8"),
    Message("Numbers", ALICE, "And of 680?", "115.6"),
    Message("Poem", BOB, "Write a haiku about autumn.", "Red leaves fall …"),
    Message("Poem", BOB, "Lovely, one more about winter", "Snow on silent roofs …"),
    Message("Büro", ALICE, "Wie lange läuft unser Mietvertrag in Hamburg?", "Bis 2031.", "2031"),
    Message("Sales", BOB, "Who leads the sales team from January?", "Sarah.", "Sarah"),
    Message("Room", ALICE, "When and where is the review with Nordlicht?", "Thursday, 14:00, room 4.", "room 4"),
    Message("Room", ALICE, "Perfect, see you there", "See you."),
    Message("Speed", BOB, "How fast does the pump in hall 3 run?", "1,450 rpm.", "1.450"),
    Message(
        "Archive", ALICE, "Wo liegt der Schlüssel zum Archiv?", "In der Schublade unter der Kasse.", "under the till"
    ),
    Message("Paper", BOB, "What was wrong with the new printer?", "It jams with thick paper.", "thick paper"),
    Message("Regex", ALICE, "Give me a regular expression for German postal codes.", r"\b\d{5}\b"),
    Message("Regex", ALICE, "Does it match 01067?", "Yes."),
    Message("Weekend", BOB, "Have a nice weekend everyone", "You too!"),
    Message("Weekend", BOB, "Ciao", "Ciao!"),
)
