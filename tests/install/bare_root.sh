#!/usr/bin/env bash
# Tries the README's commands on a bare Debian (debootstrap, minbase), as a newcomer would. Needs
# root and debootstrap.
#
#     tests/install/bare_root.sh trixie                 run the README's commands, as root
#     tests/install/bare_root.sh bookworm COMMAND…      run these commands instead
#     BARE_USER=newcomer tests/install/bare_root.sh …   as a user who may use sudo
#     BARE_ROOT=FOLDER tests/install/bare_root.sh …     use this Debian if it is there, and keep it
#
# The Debian contains a clone of the last commit. It has processes and mounts of its own, which end
# with this script, but the network of this machine. Its mirror, certificates and proxies are those
# of this machine. Environment variables are passed on, so they can change settings.
#
# Exit code: that of the first command that fails.
set -euo pipefail
COMMANDS=("./run_experiment.sh dh 5000 20 10 1.0" "./run_tests.sh --quick")
REPO=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
PATH_IN_ROOT=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

main() {
    local suite=${1:?which suite? bookworm or trixie}
    shift
    user=${BARE_USER:-root}
    root=${BARE_ROOT:-}
    if [[ -z $root ]]; then
        root=$(mktemp --directory --tmpdir "racetrack-$suite.XXXXXX")
        chmod 755 "$root"
        trap 'rm -r --one-file-system "$root"' EXIT
    fi
    [[ -e $root/etc/debian_version ]] || make_root "$suite"
    make_clone
    (($#)) || set -- "${COMMANDS[@]}"
    run_all "$@"
}

make_root() {
    debootstrap --variant=minbase ${BARE_USER:+--include=sudo} "$1" "$root" "$(mirror)"
    apt-config dump | grep -E '^Acquire::(http|https|Check-)' >"$root/etc/apt/apt.conf.d/90host" || true
    cp --recursive --dereference --parents /etc/{hosts,resolv.conf} "$root"
    for file in /etc/pip.conf /usr/local/share/ca-certificates; do
        [[ ! -e $file ]] || cp --recursive --parents "$file" "$root"
    done
    # No package may start a service.
    install /dev/stdin "$root/usr/sbin/policy-rc.d" <<<$'#!/bin/sh\nexit 101'
}

# Prints the Debian mirror in apt's configuration.
mirror() {
    local mirror
    # shellcheck disable=SC2016  # apt expands these
    mirror=$(apt-get indextargets --format '$(REPO_URI) $(ORIGIN)' 'Created-By: Packages' |
        sed -n 's/ Debian$//p' | head -n 1)
    echo "${mirror:-http://deb.debian.org/debian}"
}

# Makes the user, who may use sudo, and a clone of this repository in the user's home.
make_clone() {
    if ! chroot "$root" id "$user" &>/dev/null; then
        chroot "$root" useradd --create-home --shell /bin/bash "$user"
        echo "$user ALL=(ALL) NOPASSWD: ALL" >"$root/etc/sudoers.d/$user"
    fi
    home=$(chroot "$root" getent passwd "$user" | cut -d: -f6)
    rm -rf "$root$home/racetrack"
    git clone --quiet "$REPO" "$root$home/racetrack"
    chroot "$root" chown -R "$user:" "$home/racetrack"
}

# Runs each command with bash, in the clone.
run_all() {
    # shellcheck disable=SC2016  # the inner shells expand these
    unshare --mount --pid --fork --kill-child bash -ec '
        root=$1 user=$2 home=$3 path=$4
        shift 4
        mount -t proc proc "$root/proc"
        mount --rbind /sys "$root/sys"
        mount --rbind /dev "$root/dev"
        for command; do
            printf "\n%s\$ %s\n" "$user" "$command"
            chroot "$root" runuser -u "$user" -- \
                env --chdir="$home/racetrack" HOME="$home" PATH="$path" bash -c "$command"
        done' bash "$root" "$user" "$home" "$PATH_IN_ROOT" "$@"
}

unset JAVA_HOME TMPDIR
main "$@"
