"""``python -m ferrank``."""

import sys

from ferrank.cli import main

sys.exit(main())
