"""A password hash that takes no time; nothing but tests/settings.py names it."""

from django.contrib.auth.hashers import PBKDF2PasswordHasher


class FastHasher(PBKDF2PasswordHasher):
    """The default hasher with one iteration, so that it also verifies passwords that the product hashed."""

    iterations = 1
