"""Compiled kernels on disk, in a folder that nobody else can write to: what is loaded from it is executed.

The folder is `$XDG_CACHE_HOME/rnea_ros` (`~/.cache/rnea_ros`), mode 0700. Files are written aside and renamed, and
carry a checksum, so that a reader sees a whole file or none. Whatever is wrong with the folder or a file costs one
warning and a compilation, never a failure.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

KEEP = 64  # files; the oldest go
PATIENCE = 60.0  # s to wait for another process that compiles
SUFFIX = ".kernel"

_warned: set[Path] = set()


class KernelCache:
    """Bytes by key in one private folder; without a usable folder it keeps nothing."""

    def __init__(self, folder: Path | None = None) -> None:
        """folder: another place than the user's cache. It is made if need be."""
        self._folder = _private_folder(folder or _user_folder())

    @property
    def folder(self) -> Path | None:
        return self._folder

    def load(self, key: str) -> bytes | None:
        """What was stored under the key, or None. A file that is damaged or not ours is removed, with a warning."""
        if self._folder is None:
            return None
        path = self._folder / (key + SUFFIX)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(descriptor, "rb") as file:
                found = os.fstat(file.fileno())
                if not stat.S_ISREG(found.st_mode):
                    raise OSError("is not a file")
                if found.st_uid != os.geteuid():
                    raise OSError("belongs to another user")
                content = file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            _warn(self._folder, f"{path} cannot be read ({error}); compiling anew")
            return None
        digest, payload = content[:32], content[32:]
        if hashlib.sha256(payload).digest() != digest:
            self.discard(key, "is damaged")
            return None
        return payload

    def store(self, key: str, payload: bytes) -> None:
        """Keep the payload under the key. Failing to is a warning."""
        if self._folder is None:
            return
        try:
            with tempfile.NamedTemporaryFile(dir=self._folder, prefix=".", delete=False) as file:
                try:
                    file.write(hashlib.sha256(payload).digest() + payload)
                    file.flush()
                    os.replace(file.name, self._folder / (key + SUFFIX))
                except OSError:
                    os.unlink(file.name)
                    raise
            files = sorted(self._folder.glob("*" + SUFFIX), key=lambda path: path.stat().st_mtime)
            for path in files[:-KEEP]:
                path.unlink(missing_ok=True)
        except OSError as error:
            _warn(self._folder, f"{self._folder} cannot be written ({error}); compiled code is not kept")

    def discard(self, key: str, reason: str) -> None:
        """Remove a file that turned out to be of no use."""
        if self._folder is not None:
            path = self._folder / (key + SUFFIX)
            _warn(self._folder, f"{path} {reason}; compiling anew")
            with contextlib.suppress(OSError):
                path.unlink()

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Held while compiling, so that other processes wait and then load. It is given up after a minute."""
        if self._folder is None:
            yield
            return
        import fcntl

        try:
            file = open(self._folder / "lock", "ab")  # noqa: SIM115 - closing it is what releases the lock
        except OSError as error:
            _warn(self._folder, f"{self._folder} cannot be written ({error}); compiled code is not kept")
            yield
            return
        with file:
            deadline = time.monotonic() + PATIENCE
            while time.monotonic() < deadline:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError:
                    time.sleep(0.02)
            yield


def _user_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(base) if os.path.isabs(base) else Path(os.path.expanduser("~")) / ".cache"
    return root / "rnea_ros"


def _private_folder(folder: Path) -> Path | None:
    """The folder, made or checked: a real directory of this user that no one else can write to. None where it is
    not."""
    if os.name != "posix":  # no owners and modes to check
        return None
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = os.lstat(folder)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise OSError("it is not a folder of this user")
        if stat.S_IMODE(found.st_mode) & 0o022:
            raise OSError("others can write to it")
        if stat.S_IMODE(found.st_mode) & 0o077:
            os.chmod(folder, 0o700)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise OSError("it is read-only")
    except OSError as error:
        _warn(folder, f"cache folder {folder} is not used: {error}; kernels are compiled in every process")
        return None
    return folder


def _warn(folder: Path, message: str) -> None:
    """Once per process and folder: what is wrong with one of its files seldom is with one alone."""
    if folder not in _warned:
        _warned.add(folder)
        warnings.warn(message, RuntimeWarning, stacklevel=3)
