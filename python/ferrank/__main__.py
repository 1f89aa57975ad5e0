"""``python -m ferrank``."""

import sys

from ferrank.cli.main import main

sys.exit(main())
