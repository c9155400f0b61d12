# The Python environment of demo, test and CI, in .venv beside this folder; sourced by bash.
#
#   use_environment EXTRAS    make or update .venv so that it has these extras of setup.cfg (comma-separated), and use it
#
# With a sourced ROS 2 the environment builds upon it; without one, ROS 2 comes from PyPI (extra `ros`). What exists and is
# up to date is used as it is. Environment variable PYTHON: the interpreter to begin with.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
VENV=$ROOT/.venv

say() { printf '%s\n' "$*" >&2; }

fail() {
    say "error: $1"
    shift
    for line in "$@"; do say "       $line"; done
    exit 1
}

# True where this interpreter is one that we and the ROS 2 wheels run on.
suits() { "$1" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 15))' 2>/dev/null; }

has_ros() { [ -n "${ROS_DISTRO:-}" ] && "$1" -c 'import rclpy' 2>/dev/null; }

choose_python() {
    local candidate
    if [ -n "${ROS_DISTRO:-}" ]; then
        for candidate in "${PYTHON:-python3}" /usr/bin/python3; do
            if has_ros "$candidate"; then
                suits "$candidate" || fail "ROS 2 $ROS_DISTRO runs on $("$candidate" --version), rnea_ros needs 3.10 or newer" \
                    "use ROS 2 Humble or newer, or a shell without ROS, where ROS 2 comes from PyPI"
                PYTHON=$candidate ROS_FROM="ROS 2 $ROS_DISTRO"
                return
            fi
        done
        fail "ROS_DISTRO is '$ROS_DISTRO', but ${PYTHON:-python3} cannot import rclpy" \
            "source that installation completely, or open a shell without ROS, where ROS 2 comes from PyPI"
    fi
    check_wheels
    ROS_FROM="ROS 2 from PyPI"
    for candidate in ${PYTHON:+"$PYTHON"} python3 python3.14 python3.13 python3.12 python3.11 python3.10; do
        if suits "$candidate"; then
            PYTHON=$candidate
            return
        fi
    done
    fail "no Python from 3.10 to 3.14 found (python3 is $(python3 --version 2>&1 | head -n 1))" \
        "install one, or say where it is: PYTHON=/path/to/python3.12 $0"
}

# The wheels are for x86-64 Linux with glibc 2.28 or newer.
check_wheels() {
    local machine libc
    machine="$(uname -s) $(uname -m)"
    [ "$machine" = "Linux x86_64" ] || fail "ROS 2 cannot be had from PyPI for $machine, only for Linux x86_64" \
        "install ROS 2 (Humble or newer), source its setup.bash, and try again"
    libc=$(getconf GNU_LIBC_VERSION 2>/dev/null | awk '{print $2}')
    if [ -z "$libc" ] || [ "$(printf '%s\n2.28\n' "$libc" | sort -V | head -n 1)" != 2.28 ]; then
        fail "ROS 2 from PyPI needs glibc 2.28 or newer, this system has ${libc:-another C library}" \
            "install ROS 2 (Humble or newer), source its setup.bash, and try again"
    fi
}

# What .venv was made from; a change makes it anew.
foundation() { printf '%s %s\n' "$ROS_FROM" "$("$PYTHON" -c 'import sys; print(sys.base_prefix, *sys.version_info[:3])')"; }

# What was installed into it; a change installs again.
recipe() { cat "$ROOT/setup.cfg" "$ROOT/setup.py" "$ROOT/pyproject.toml" "$ROOT/scripts/environment.sh" | sha256sum | cut -c1-64; }

create() {
    if [ -e "$VENV" ]; then
        [ -f "$VENV/pyvenv.cfg" ] || fail "$VENV is in the way: it is no Python environment" "move it elsewhere"
        rm -rf "$VENV"
    fi
    say "Making $VENV with $("$PYTHON" --version) and $ROS_FROM"
    local site=()
    [ "$ROS_FROM" = "ROS 2 from PyPI" ] || site=(--system-site-packages)
    "$PYTHON" -m venv "${site[@]}" "$VENV" >&2 || {
        rm -rf "$VENV"
        fail "$PYTHON cannot make a virtual environment" "on Debian and Ubuntu: sudo apt install python3-venv"
    }
    foundation >"$VENV/rnea_ros.foundation"
}

install_extras() {
    local log=$VENV/rnea_ros.log wanted=$1 arguments=()
    if [ "$ROS_FROM" = "ROS 2 from PyPI" ]; then
        wanted=$wanted,ros
    else
        # The messages of an installed ROS 2 are compiled against its own NumPy.
        "$PYTHON" -c 'import numpy; print(f"numpy=={numpy.__version__}")' >"$VENV/rnea_ros.constraints"
        arguments=(--constraint "$VENV/rnea_ros.constraints")
    fi
    say "Installing rnea_ros[$wanted]; the first time this takes a minute or three"
    if ! "$VENV/bin/python" -m pip --disable-pip-version-check install "${arguments[@]}" -e "$ROOT[$wanted]" 2>&1 |
        tee "$log" | show_packages; then
        say ""
        grep -E '^(ERROR|error)' "$log" >&2 || tail -n 20 "$log" >&2
        fail "the installation failed; everything it said is in $log" "is the package index reachable? then try again"
    fi
    printf '%s %s\n' "$(recipe)" "$1" >"$VENV/rnea_ros.installed"
}

# On a terminal the package that is being fetched, on one line; elsewhere nothing.
show_packages() {
    if [ -t 2 ]; then
        awk '/^Collecting|^Downloading|^Installing/ { printf "\r\033[K  %.70s", $0; fflush() } END { printf "\r\033[K" }' >&2
    else
        cat >/dev/null
    fi
}

use_environment() {
    local recipe_before="" extras_before="" extra missing=""
    choose_python
    exec 9<"$ROOT/setup.cfg"
    flock 9 # one installation at a time
    [ "$(cat "$VENV/rnea_ros.foundation" 2>/dev/null)" = "$(foundation)" ] || create
    [ -f "$VENV/rnea_ros.installed" ] && read -r recipe_before extras_before <"$VENV/rnea_ros.installed"
    for extra in ${1//,/ }; do
        case ",$extras_before," in *",$extra,"*) ;; *) missing=$missing,$extra ;; esac
    done
    if [ "$recipe_before" != "$(recipe)" ] || [ -n "$missing" ]; then
        missing=$extras_before$missing
        install_extras "${missing#,}"
    fi
    exec 9<&-
    export PATH="$VENV/bin:$PATH" PYTHONPATH="$ROOT${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1 MPLBACKEND=Agg
    [ "$ROS_FROM" != "ROS 2 from PyPI" ] || unset RMW_IMPLEMENTATION # only Fast DDS comes with the wheels
    cd "$ROOT" || exit 1
}
