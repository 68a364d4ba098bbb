"""The command ``grainstore``, which is part of the package."""

from __future__ import annotations

import signal
import sys

from grainstore import _core


def main() -> int:
    # A reader of our output that goes away ends the command quietly, as it ends any other.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _core._run_command(sys.argv)


if __name__ == "__main__":
    sys.exit(main())
