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
    """As `listed`, and each row has its payload, all fields one after the other: for small datasets."""
    rows = listed(path)
    names = [field["name"] for field in json.loads(run("inspect", "--json", path).stdout)["fields"]]
    for row in rows:
        row["payload"] = b"".join(field_of(path, row["ordinal"], name) for name in names)
    return rows


def field_of(path, ordinal, name):
    """A field of a sample; empty if the sample lacks it."""
    done = run("get", path, "--ordinal", ordinal, "--field", name, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout
