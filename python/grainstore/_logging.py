"""The loggers ``grainstore`` and, below it, one for each part that reports something. Quiet until they are configured."""

from __future__ import annotations

import atexit
import logging

from grainstore import _core

LOGGER = logging.getLogger("grainstore")
LOGGER.addHandler(logging.NullHandler())

_LOGGERS = [LOGGER, *(LOGGER.getChild(part) for part in ("store", "reader", "writer", "converters", "export"))]
# By the numbers that the compiled module has for them.
_LEVELS = [logging.CRITICAL, logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG]
# Reports of the last moments; `logging` itself ends after this, as it was imported before.
atexit.register(_core._deliver_reports)


def level() -> int:
    """The number of the least important level that any logger takes; 0 for none."""
    for number in range(len(_LEVELS) - 1, 0, -1):
        if any(logger.isEnabledFor(_LEVELS[number]) for logger in _LOGGERS):
            return number
    return 0


def handle(reports: list[tuple[str, int, float, str]], lost: int) -> None:
    """Give reports to their loggers, with the time at which they were made."""
    for name, number, created, text in reports:
        logger = logging.getLogger(name)
        if logger.isEnabledFor(_LEVELS[number]):
            record = logger.makeRecord(name, _LEVELS[number], "(compiled)", 0, text, (), None)
            record.relativeCreated += (created - record.created) * 1000
            record.created = created
            record.msecs = created % 1 * 1000
            logger.handle(record)
    if lost:
        LOGGER.warning("%d reports were lost, as they came faster than they were delivered", lost)
