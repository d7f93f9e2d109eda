"""Run `serve` with the settings of the tests: `python -m tests.serve`."""

import sys

from cato_web.supervisor import main, plan

if __name__ == "__main__":
    plan.SETTINGS = "tests.settings"
    sys.exit(main.main())
