"""A measurement in a process of its own, with a limit of time and the memory that it takes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from measure import Job
from usage import NO_MEMORY, memory_of

# How often memory is looked at while something is measured.
_LOOK_EVERY_S = 0.2
# After so many times the limit of an epoch, a measurement is taken for stuck, and ended.
_STUCK_AFTER = 20


def measured(program: Path, job: Job) -> dict[str, Any]:
    """What the process of a job has written, and the most memory that was seen meanwhile; a failure is a result too."""
    command = [sys.executable, str(program), json.dumps(asdict(job))]
    largest, until = NO_MEMORY, time.monotonic() + _STUCK_AFTER * job.longest_s
    with tempfile.TemporaryFile() as errors:
        # A group of its own, so that its workers end with it.
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True)
        while True:
            try:
                child.wait(_LOOK_EVERY_S)
                break
            except subprocess.TimeoutExpired:
                largest |= memory_of(child.pid)
            except KeyboardInterrupt:
                _end(child)
                raise
            if time.monotonic() > until:
                _end(child)
                return {"failed": f"stuck: ended after {_STUCK_AFTER * job.longest_s:.0f} s"}
        errors.seek(0)
        text = errors.read().decode(errors="replace").strip()
    if child.returncode != 0:
        why = f"killed by signal {-child.returncode}" if child.returncode < 0 else (text.splitlines() or ["no message"])[-1]
        return {"failed": why, "stderr": text[-2000:]}
    found = json.loads(Path(job.result).read_text())
    for name, number in asdict(largest).items():
        if name in found:
            found[name] = max(found[name], number)
    return found


def _end(child: subprocess.Popen[bytes]) -> None:
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
