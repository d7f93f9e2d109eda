"""The product's settings with a fast password hasher."""

from cato_web.settings import *  # noqa: F403

PASSWORD_HASHERS = ["tests.hashers.FastHasher"]
