# shellcheck shell=bash
# Installs what the harness needs on a bare Debian or Ubuntu; sourced by the entry points.
#
# `bootstrap` sets HARNESS_PYTHON and PYTHONPATH, and puts the Java that it chooses first on PATH,
# where all programs look for it. It installs missing system packages with apt: those in
# apt-packages.txt, in the engines' apt-packages.txt, and in lists that an entry point adds to
# APT_PACKAGES. Everything else goes into the cache folder. `bootstrap` needs only bash and what
# every Debian has. If nothing is missing, it takes a few hundredths of a second.
#
# Where packages are missing and can't be installed, the stack can still run in Docker: then
# `bootstrap` only needs a Python, and exports RACETRACK_NOT_NATIVE with the reason. On a Mac the
# stack runs in Docker only. There `bootstrap` must work with bash 3.2, which lacks `local -n` and
# whose `set -u` rejects empty arrays.
#
# Exit codes: 2 if .env or a path is invalid, 3 if something is missing and can't be installed, 130
# if interrupted.

REPO=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
APT_PACKAGES=("$REPO/racetrack/install/apt-packages.txt" "$REPO"/racetrack/engines/*/apt-packages.txt)
CACHE="${RACETRACK_CACHE:-${XDG_CACHE_HOME:-${HOME:-$(getent passwd "$EUID" | cut -d: -f6)}/.cache}/racetrack}"
# This file exists while apt runs, so that the next call continues a set-up that was killed in apt.
APT_UNFINISHED="$CACHE/apt-unfinished"
# Versions of Java on which all parts run: Hadoop, in Apex, fails on 23 and newer.
JAVA_OLDEST=17 JAVA_NEWEST=21
JAVAS=/usr/lib/jvm
SYSTEM_JAVA=
# Other characters are wrong in a class path, a URL (Deephaven's = and é) or a configuration file.
# The same as in cache.py.
REFUSED='[^A-Za-z0-9 /._@+~()-]'
SYSTEM_PYTHON=
PYTHON_WILL_DO='
import glob, importlib.util, os, sys
library = "lib{}/libpython%d.%d.so*" % sys.version_info[:2]
if sys.platform == "darwin":
    fits = os.uname().machine == "arm64"
else:
    fits = any(glob.glob(f"{sys.base_prefix}/{library.format(sub)}") for sub in ("", "/*-linux-gnu*", "64"))
if not (
    sys.version_info >= (3, 11)
    and importlib.util.find_spec("ensurepip")
    and fits
):
    sys.exit(1)
print(sys.executable)'

bootstrap() {
    forget_the_shell
    require_usable_paths
    find_python || true
    if [[ $OSTYPE == darwin* ]]; then
        require_python_on_a_mac
    else
        install_what_is_missing
    fi
    export PYTHONPATH="$REPO"
    # shellcheck disable=SC2034  # the entry points use it
    HARNESS_PYTHON=$(python_of harness) || exit
}

# Prints the path of a component's Python, for example that of `harness`; installs the component if
# it is missing.
python_of() {
    local folder
    folder=$("$SYSTEM_PYTHON" -m racetrack.install --where "$1") || (($? == 1)) || return 2
    if [[ -z $folder ]]; then
        # The installer prints its own errors.
        "$SYSTEM_PYTHON" -m racetrack.install --keep-packages "$1" || return
        folder=$("$SYSTEM_PYTHON" -m racetrack.install --where "$1")
    fi
    echo "$folder/bin/python3"
}

# Makes file modes, locale and Python independent of the user's shell. The harness later reports the
# Python variables that are unset here.
forget_the_shell() {
    umask 022
    RACETRACK_UNSET=$(compgen -e PYTHON || true)
    # shellcheck disable=SC2086  # names have no blanks
    unset LANGUAGE $RACETRACK_UNSET
    export LC_ALL=C.UTF-8 PYTHONUTF8=1 RACETRACK_UNSET
}

require_usable_paths() {
    local name
    for name in REPO CACHE TMPDIR; do
        if [[ ${!name-} =~ $REFUSED ]]; then
            printf 'Error: %q contains %q. Services can not use such a path. %s\n' "${!name}" "${BASH_REMATCH[0]}" \
                "Move this checkout, or name another folder in RACETRACK_CACHE or TMPDIR." >&2
            exit 2
        fi
    done
}

install_what_is_missing() {
    local rows=()
    find_java || true
    missing_packages rows
    ((${#rows[@]})) || return 0
    if RACETRACK_NOT_NATIVE=$(why_not_installed) && containers_will_do; then
        export RACETRACK_NOT_NATIVE
        say "$RACETRACK_NOT_NATIVE: ${rows[*]%% *}; containers need only some of them"
        return 0
    fi
    unset RACETRACK_NOT_NATIVE
    with_set_up_lock install_packages "${rows[@]}"
    find_python || fail "There is no Python 3.11 or newer with venv here, and apt brought $(python_version_here)." \
        "Install one by hand (Ubuntu 22.04: apt-get install python3.11 python3.11-venv), or use" \
        "Debian 12 or 13, Ubuntu 24.04, or Docker."
    find_java || true
    rows=()
    missing_packages rows
    ((${#rows[@]} == 0)) || fail "apt installed everything, but these are still not found:" "${rows[@]/#/- }" \
        "Check PATH and call again; or use Docker."
}

# Prints why packages can't be installed; fails if they can.
why_not_installed() {
    if ! type -P apt-get >/dev/null; then
        echo "this is neither Debian nor Ubuntu, and packages are missing"
    elif ((EUID)) && ! may_sudo; then
        echo "Debian packages are missing that only root can install"
    else
        return 1
    fi
}

# Returns whether the harness can run here with Docker, and the user has not asked for processes.
containers_will_do() {
    local runtime=${RUNTIME:-$(sed -n 's/^RUNTIME=//p' "$REPO/.env")}
    [[ $runtime == auto || $runtime == compose ]] && [[ -n $SYSTEM_PYTHON ]] && type -P docker >/dev/null
}

require_python_on_a_mac() {
    [[ -n $SYSTEM_PYTHON ]] || fail "There is no Python 3.11 or newer for Apple silicon here ($(python_version_here))." \
        "Install one (brew install python@3.13, or https://www.python.org/downloads/macos/), and call" \
        "again; the stack itself runs in Docker. On an Intel Mac the harness can't run: cryptography is" \
        "no longer built for it."
}

say() { printf '[set-up] %s\n' "$*" >&2; }

fail() {
    printf 'Set-up failed: %s\n' "$1" >&2
    shift
    if (($#)); then printf '    %s\n' "$@" >&2; fi
    exit 3
}

# Sets SYSTEM_PYTHON to the first usable Python on PATH: new enough, with venv and, except on a Mac,
# with its shared library, which Debian packages separately.
find_python() {
    local candidate
    for candidate in python3 python3.{14,13,12,11} /usr/bin/python3; do
        if SYSTEM_PYTHON=$("$candidate" -ISc "$PYTHON_WILL_DO" 2>/dev/null); then return; fi
    done
    return 1
}

python_version_here() { python3 --version 2>/dev/null || echo none; }

# Appends `package why` of each missing package in APT_PACKAGES to the array named $1.
missing_packages() {
    local -n found=$1
    local list package present why
    for list in "${APT_PACKAGES[@]}"; do
        while read -r package present why; do
            if [[ -n $package && $package != '#'* ]] && ! is_present "$present"; then
                found+=("$package $why")
            fi
        done <"$list"
    done
}

is_present() {
    [[ ! -e $APT_UNFINISHED ]] || return 1
    case $1 in
        python) [[ -n $SYSTEM_PYTHON ]] ;;
        command:*) type -P "${1#*:}" >/dev/null ;;
        file:*) compgen -G "${1#*:}" >/dev/null ;;
        java) [[ -n $SYSTEM_JAVA ]] ;;
        *) fail "apt-packages.txt: no such check: $1" ;;
    esac
}

# Sets SYSTEM_JAVA to the first Java that fits, and puts it first on PATH. Candidates are the Java
# of JAVA_HOME, those on PATH, and the other installed ones.
find_java() {
    local candidate candidates
    mapfile -t candidates < <(type -aP java; compgen -G "$JAVAS/*/bin/java")
    for candidate in "${JAVA_HOME:+$JAVA_HOME/bin/java}" "${candidates[@]}"; do
        if SYSTEM_JAVA=$(resolved_java "$candidate") && java_fits "$SYSTEM_JAVA"; then
            PATH=${SYSTEM_JAVA%/java}:$PATH
            return
        fi
    done
    SYSTEM_JAVA=
    return 1
}

# Prints the path of the program that $1 links to or, if it is a script, starts.
resolved_java() {
    local java
    [[ -x $1 ]] || return 1
    java=$(readlink -f "$1")
    if [[ ! -r ${java%/bin/java}/release ]]; then
        java=$("$java" -XshowSettings:properties -version 2>&1 | sed -n 's/^ *java.home = //p')/bin/java
    fi
    echo "$java"
}

# Returns whether a Java is neither too old nor too new. Reads its release file, because starting
# Java takes ten times as long.
java_fits() {
    local major
    major=$(sed -nE 's/^JAVA_VERSION="(1\.)?([0-9]+).*/\2/p' "${1%/bin/java}/release" 2>/dev/null) || return 1
    ((major >= JAVA_OLDEST && major <= JAVA_NEWEST))
}

# Runs a command while holding the lock of the cache folder, so that one set-up runs at a time.
# racetrack/install/cache.py uses the same lock.
with_set_up_lock() {
    mkdir -p "$CACHE" 2>/dev/null || fail "The cache folder $CACHE is not writable." \
        "Make it writable, or point RACETRACK_CACHE at a folder that is."
    exec {lock}<>"$CACHE/install.lock"
    if ! flock --nonblock "$lock"; then
        say "another set-up is running in $CACHE: waiting for it"
        flock "$lock"
    fi
    "$@"
    exec {lock}>&-
}

# Installs packages; each argument is `package[|alternative…] why`.
install_packages() {
    local row packages=() command
    type -P apt-get >/dev/null || fail "This is neither Debian nor Ubuntu: there is no apt-get. Install these:" \
        "${@/#/- }" "and call again; or use Docker."
    local as_root=()
    if ((EUID)); then as_root=(sudo); fi
    command="${as_root[*]:+sudo }apt-get install --no-install-recommends"

    if ((EUID)) && ! may_sudo; then
        fail "Debian packages are missing that only root can install, and there is no usable sudo." \
            "Ask root to run:" \
            "apt-get update && apt-get install --no-install-recommends $(package_names "$@")" \
            "and call again; or use Docker."
    fi
    say "Debian packages are missing; ${as_root[*]:+with sudo, }apt fetches its list of packages, then installs"
    : >"$APT_UNFINISHED"
    : >"$CACHE/apt.log"
    run_apt update || apt_failed "$command" "$@"
    read -ra packages <<<"$(package_names "$@")"
    for row in "$@"; do say "    $(package_names "$row"): ${row#* }"; done
    # Configure packages that a killed set-up left unpacked: apt refuses to work before that.
    "${as_root[@]}" dpkg --configure -a >>"$CACHE/apt.log" 2>&1 || apt_failed "$command" "$@"
    run_apt install --yes --no-install-recommends --no-upgrade "${packages[@]}" || apt_failed "$command" "$@"
    rm "$APT_UNFINISHED"
    hash -r
}

# Returns whether sudo works. It may ask for a password only on a terminal.
may_sudo() {
    type -P sudo >/dev/null || return 1
    if [[ -t 0 && -t 2 ]]; then sudo -v; else sudo -n true 2>/dev/null; fi
}

# Runs apt-get: all output goes to the log, progress also to the screen. Without network there is an
# error for every package; apt_failed shows the first.
run_apt() {
    say "apt-get $1 …"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get --quiet -o Acquire::Retries=3 \
        -o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0 "$@" </dev/null 2>&1 |
        tee -a "$CACHE/apt.log" |
        sed -unE 's/^(Need to get|Fetched|Setting up (openjdk|maven|pypy|procps|netcat)|E: (Failed to fetch)?)/    &/; T; /^    E: Failed to fetch/d; p' >&2
}

# Prints one package per argument: the first alternative that apt offers, or the first if it offers
# none.
package_names() {
    local row name names=() choice
    for row in "$@"; do
        row=${row%% *}
        choice=${row%%|*}
        for name in ${row//|/ }; do
            # `apt-cache show` also knows packages of which there is only the name.
            if [[ $(apt-cache policy "$name" 2>/dev/null) == *"Candidate: "[^\(]* ]]; then
                choice=$name
                break
            fi
        done
        names+=("$choice")
    done
    echo "${names[*]}"
}

apt_failed() {
    local command=$1
    shift
    fail "apt could not install what is missing:" \
        "$(grep -m 1 '^E:' "$CACHE/apt.log")" \
        "Full log: $CACHE/apt.log. If the network failed, call again; by hand:" \
        "$command $(package_names "$@")" \
        "If this can't be installed, use Docker."
}
