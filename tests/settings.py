"""The product's settings with a fast password hasher, and without reading all assets for each client of a test."""

from cato_web.settings import *  # noqa: F403
from cato_web.settings import IS_GATHERED

PASSWORD_HASHERS = ["tests.hashers.FastHasher"]
# Each `django.test.Client` has middleware of its own, which would list all assets at its first request.
SERVESTATIC_AUTOREFRESH = not IS_GATHERED
