"""A fast password hasher, used only by tests/settings.py."""

from django.contrib.auth.hashers import PBKDF2PasswordHasher


class FastHasher(PBKDF2PasswordHasher):
    """The default hasher with one iteration, so that it also verifies passwords that the product hashed."""

    iterations = 1
