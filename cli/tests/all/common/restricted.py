"""Runs a command with less than the system usually allows: restricted.py WHAT COMMAND ARGUMENTS...

WHAT is no-uring (the system call that makes an io_uring fails with EPERM, as in containers), old-calls=ERRNO (that one and
preadv2 fail, as in emulators and strict sandboxes), locked-memory=BYTES (an unprivileged user who may lock so much; needs
root) or address-space=BYTES. Exits with 77 where it cannot be done here.
"""

import ctypes
import errno
import os
import platform
import resource
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
IO_URING_SETUP = 425  # the same on all architectures but alpha
PREADV2 = {"x86_64": 327, "aarch64": 286}
NOBODY = 65534
CANNOT = 77


def forbid(calls, error):
    """A filter: load the number, compare it with each, which jumps to the refusal at the end, allow, refuse."""
    refuse, allow = 0x00050000 | error, 0x7FFF0000  # SECCOMP_RET_ERRNO, SECCOMP_RET_ALLOW
    compare = [(0x15, len(calls) - place, 0, call) for place, call in enumerate(calls)]
    instructions = [(0x20, 0, 0, 0), *compare, (0x06, 0, 0, allow), (0x06, 0, 0, refuse)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in instructions))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(instructions), ctypes.addressof(code)))
    prctl = ctypes.CDLL(None).prctl
    if prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0):
        sys.exit(CANNOT)


def limit_locked_memory(length):
    if os.geteuid() != 0:
        sys.exit(CANNOT)
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (length, length))
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def limit_address_space(length):
    resource.setrlimit(resource.RLIMIT_AS, (length, length))


what, _, amount = sys.argv[1].partition("=")
if what == "no-uring":
    forbid([IO_URING_SETUP], errno.EPERM)
elif what == "old-calls":
    if platform.machine() not in PREADV2:
        sys.exit(CANNOT)
    forbid([IO_URING_SETUP, PREADV2[platform.machine()]], getattr(errno, amount))
elif what == "locked-memory":
    limit_locked_memory(int(amount))
else:
    limit_address_space(int(amount))
try:
    os.execv(sys.argv[2], sys.argv[2:])
except PermissionError:
    sys.exit(CANNOT)
