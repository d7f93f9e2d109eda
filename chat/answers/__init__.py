"""Answers, from a posted turn to its stored exchange.

`runner.run_answer` is the flow from top to bottom: `job` says what is answered and for whom, `recall` finds what memory
contributes and builds the prompt, `stream` holds the growing text, `progress` what of it pages have, and `persistence` saves
it and completes the turn.
"""
