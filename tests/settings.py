"""The product's settings, with passwords that are hashed at once. The product itself never reads this module."""

from cato_web.settings import *  # noqa: F403

PASSWORD_HASHERS = ["tests.hashers.FastHasher"]
