"""``python -m ferrank.cli``."""

import sys

from ferrank.cli.main import main

sys.exit(main())
