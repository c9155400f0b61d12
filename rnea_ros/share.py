"""Where the package's URDFs, configurations and launch files are: in the source tree, or where colcon or pip put it."""

from __future__ import annotations

import site
import sys
from pathlib import Path

from rnea_ros.model.errors import ModelError

PACKAGE = "rnea_ros"


def share_file(*parts: str) -> Path:
    """Path of a shared file, as share_file("urdf", "panda.urdf"). Raises ModelError that says where it looked."""
    places = _places()
    for place in places:
        if (path := place.joinpath(*parts)).exists():
            return path
    raise ModelError(f"{'/'.join(parts)} is not in {', '.join(map(str, places))}; is rnea_ros installed completely?")


def description_source(xml: str, file: str) -> str:
    """What `load_urdf` is given for the parameters `robot_description` and `robot_description_file`.

    A bare file name that does not exist here is looked up among the package's URDFs. Raises ModelError where both are
    empty.
    """
    if xml:
        return xml
    if not file:
        raise ModelError("no robot description: set the parameter 'robot_description' or 'robot_description_file'")
    path = Path(file).expanduser()
    if path.name == file and not path.exists():
        return str(share_file("urdf", file))
    return str(path)


def _places() -> list[Path]:
    """The source tree if this file lies in one, else where ROS, pip, pip --user and pip --target put shared files."""
    beside = Path(__file__).resolve().parent.parent
    if (beside / "resource" / PACKAGE).exists():
        return [beside]
    prefixes = [Path(sys.prefix), Path(site.getuserbase()), beside]
    try:
        from ament_index_python.packages import get_package_prefix

        prefixes.insert(0, Path(get_package_prefix(PACKAGE)))
    except (ImportError, LookupError, OSError):  # no ROS, package not in its index, no workspace sourced
        pass
    return [prefix / "share" / PACKAGE for prefix in prefixes]
