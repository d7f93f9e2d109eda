"""The web application: joins configuration, accounts, memory and chat."""

import os

from cato_web.unused_imports import leave_out

VERSION = "0.1.0"

# For numpy, before it is imported. OpenBLAS's other threads keep a core busy for a while after each product of matrices,
# which took half of the processor time of a message. Its products here are too small to be worth several threads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
leave_out()
