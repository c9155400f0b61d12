"""Installs the package, and beside it what ROS finds through its index: see setup.cfg for everything else."""

from pathlib import Path

from setuptools import setup

PACKAGE = "rnea_ros"
SHARED = ("urdf", "config", "launch")


def shared_files() -> list[tuple[str, list[str]]]:
    """(folder below the prefix, files): the index marker, package.xml and the shared folders as they are."""
    share = f"share/{PACKAGE}"
    found = [("share/ament_index/resource_index/packages", [f"resource/{PACKAGE}"]), (share, ["package.xml"])]
    for folder in SHARED:
        files = sorted(str(path) for path in Path(folder).iterdir() if path.is_file())
        found.append((f"{share}/{folder}", files))
    return found


# python_requires stands here because colcon cannot read it back from setup.cfg.
setup(data_files=shared_files(), python_requires=">=3.10")
