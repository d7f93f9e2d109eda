"""Run the supervisor: `python -m cato_web.supervisor`."""

import sys

from cato_web.supervisor.main import main

sys.exit(main())
