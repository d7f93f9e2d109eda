"""Run the command line: `python -m cato_web.cli`."""

import sys

from cato_web.cli.main import main

sys.exit(main())
