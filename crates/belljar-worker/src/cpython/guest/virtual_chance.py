"""Randomness in a durable run: every source draws from the run's seed."""

import os
import sys


def apply(seed: bytes) -> None:
    """Replaces the machine's randomness by the seed."""
    import random
    import secrets  # noqa: F401 - it must be there before numpy asks for it
    import uuid

    draw = _stream(seed)
    _patch_system(draw, random)
    _patch_random(draw, random)
    _patch_uuid(draw, uuid)
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        # The others of numpy draw from `secrets`.
        numpy_random.seed(list(memoryview(draw(64)).cast("I")))


def _stream(seed: bytes):
    from hashlib import shake_256

    drawn = 0

    def draw(size: int) -> bytes:
        """The next bytes of the seed."""
        nonlocal drawn
        drawn += 1
        return shake_256(seed + drawn.to_bytes(8, "little")).digest(size)

    return draw


def _patch_system(draw, random) -> None:
    def urandom(size, /) -> bytes:
        """Random bytes."""
        if size < 0:
            raise ValueError("negative argument not allowed")
        return draw(size)

    def getrandom(size, flags=0) -> bytes:
        """Random bytes."""
        return urandom(size)

    os.urandom = random._urandom = urandom
    if hasattr(os, "getrandom"):
        os.getrandom = getrandom


def _patch_random(draw, random) -> None:
    real = random.Random.seed

    def seed(self, a=None, version=2):
        if a is None:
            a = int.from_bytes(draw(32), "little")
        return real(self, a, version)

    seed.__doc__ = real.__doc__
    random.Random.seed = seed
    # The one behind `random.random()` and the rest; `random.seed` is a method of it.
    random.seed = random._inst.seed
    random.seed()
    tempfile = sys.modules.get("tempfile")
    if tempfile is not None:
        # It keeps one of its own for names.
        tempfile._name_sequence = None


def _patch_uuid(draw, uuid) -> None:
    # Without the system's generator Python makes UUIDs from clock and randomness, which are
    # patched.
    uuid._generate_time_safe = None
    uuid._UuidCreate = None
    uuid._last_timestamp = None
    # Bit 40 says that it is no real address.
    uuid._node = int.from_bytes(draw(6), "big") | (1 << 40)
