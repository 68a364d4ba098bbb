"""Runs a command with less than the system usually allows: restricted.py WHAT COMMAND ARGUMENTS...

WHAT is no-uring (the system call that makes an io_uring fails with EPERM, as in containers), locked-memory=BYTES (an
unprivileged user who may lock so much; needs root) or address-space=BYTES. Exits with 77 where it cannot be done here.
"""

import ctypes
import os
import resource
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
IO_URING_SETUP = 425  # the same on all architectures but alpha
NOBODY = 65534
CANNOT = 77


def forbid_uring():
    """A filter of four instructions: load the number, compare, refuse, allow."""
    refuse, allow = 0x00050000 | 1, 0x7FFF0000  # SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_ALLOW
    instructions = [(0x20, 0, 0, 0), (0x15, 0, 1, IO_URING_SETUP), (0x06, 0, 0, refuse), (0x06, 0, 0, allow)]
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
    forbid_uring()
elif what == "locked-memory":
    limit_locked_memory(int(amount))
else:
    limit_address_space(int(amount))
try:
    os.execv(sys.argv[2], sys.argv[2:])
except PermissionError:
    sys.exit(CANNOT)
