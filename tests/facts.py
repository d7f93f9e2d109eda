"""Twenty things somebody told, twenty questions for them in other words, and twenty that have nothing to do with them.

No question shares a content word with the fact it asks for; a test of this module holds that.
"""

from __future__ import annotations

FACTS: tuple[tuple[str, str], ...] = (
    ("My daughter Mia started kindergarten in September.", "When did the little girl begin preschool?"),
    ("The boiler in the basement was replaced with a heat pump.", "How is our house kept warm nowadays?"),
    ("I am allergic to peanuts, even traces of them.", "Which food could make me seriously ill?"),
    ("We signed the office lease in Hamburg until 2031.", "How long may our company stay in that rented building?"),
    ("Tom broke his wrist while skiing last winter.", "What injury did he suffer on the slopes?"),
    ("The production database is backed up every night at two.", "What is the schedule for saving copies of our live data?"),
    ("Our dog Bruno is scared of thunder and hides under the bed.", "How does the pet react to storms?"),
    ("I paid 340 euros for the car repair on Monday.", "What did fixing the vehicle cost me?"),
    ("The customer Nordlicht cancelled their subscription because of slow support.", "Why did that client leave us?"),
    ("My grandmother was born in Trieste in 1931.", "Where does my nana come from?"),
    ("The bakery on Mill Road closes at noon on Saturdays.", "Until what hour can I buy bread at the weekend?"),
    ("We agreed to write all internal documentation in English.", "Which language do our own manuals have to be in?"),
    ("I finally learned to swim at the age of forty.", "What sport in the water did I pick up late in life?"),
    ("The new printer jams whenever it gets thick paper.", "What trouble does the office machine have with heavy sheets?"),
    ("Sarah will take over the sales team from January.", "Who becomes the next head of the people selling our products?"),
    ("My flight to Lisbon leaves on Friday at six in the morning.", "At what time do I depart for Portugal?"),
    ("The garden shed roof leaks near the window.", "Where does rain get into the hut behind our home?"),
    ("I take vitamin D every day since the doctor's advice.", "Which supplement was I told by the physician to swallow?"),
    ("Our rent was raised by ninety euros in spring.", "How much more do we pay the landlord now?"),
    ("The wifi password at the cabin is written inside the kitchen cupboard.", "How do I get online in the holiday hut?"),
)

UNRELATED: tuple[str, ...] = (
    "Explain how photosynthesis works.",
    "Write a haiku about autumn leaves.",
    "What is the capital of Mongolia?",
    "Convert 45 degrees Celsius to Fahrenheit.",
    "Give me a regular expression for postal codes.",
    "Who painted the Sistine Chapel?",
    "How do I center a div in CSS?",
    "Summarise the plot of Moby Dick.",
    "What are prime numbers?",
    "Translate good morning into Japanese.",
    "Why is the sky blue?",
    "List three advantages of functional programming.",
    "How far away is the moon?",
    "What does the French Revolution have to do with the metric system?",
    "Sort a list of tuples by the second element in Python.",
    "Tell me a joke about statisticians.",
    "What is the chemical formula of table salt?",
    "Explain the offside rule in football.",
    "Thanks, that is all for today!",
    "How do black holes form?",
)

_STOP = set(
    "a about all am an and are as at be because by can could did do does even every for from get gets has have he her "
    "his how i if in inside into is it its last make may me more much my near next no nowadays of on our own since so "
    "take than that the their them they this those to told under until up us was we were what when whenever where "
    "which while who whom why will with you your get becomes become come comes new now long written write leave".split()
)


def content_words(text: str) -> set[str]:
    """The words of `text` that carry meaning, cut to their first five letters."""
    words = (word.strip(".,?!").lower().removesuffix("'s") for word in text.split())
    return {word[:5] for word in words if word and word not in _STOP}
