"""What the tests against other people's libraries share: running the command, and reading a dataset through it."""

import json
import os
import subprocess

GRAINSTORE = os.environ.get("GRAINSTORE", "grainstore")


def run(*args, check=True):
    """Runs the command; its output is bytes."""
    done = subprocess.run([GRAINSTORE, *map(str, args)], capture_output=True)
    if check and done.returncode != 0:
        raise AssertionError(f"{args}: status {done.returncode}: {done.stderr.decode(errors='replace')}")
    return done


def listed(path):
    """The rows of `ls --json`, in stored order, each with its key as bytes."""
    rows = [json.loads(line) for line in run("ls", "--json", path).stdout.splitlines()]
    for row in rows:
        row["key"] = row["key"].encode() if "key" in row else bytes.fromhex(row.get("key_hex", ""))
    return rows


def dataset(path):
    """As `listed`, and each row has its payload: for small datasets."""
    rows = listed(path)
    for row in rows:
        row["payload"] = run("get", path, "--ordinal", row["ordinal"]).stdout
    return rows
