#!/bin/sh
# Installs the component named $1 into /opt/parts, by the same recipe as outside containers. Use it
# only in a build stage that is discarded: pip.conf and ca-certificates.crt are settings of the
# building machine for its access to PyPI, and must not get into an image.
set -eu
cd /opt/racetrack
mkdir -p /etc/ssl/certs
cp ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
cp pip.conf /etc/pip.conf
set -a
# shellcheck source=/dev/null  # generated when an image is built
. ./versions.env
# Compile Python files now: programs in a container can't write to this folder later.
RACETRACK_CACHE=/tmp/cache UV_COMPILE_BYTECODE=1 python3 -m racetrack.install "$1" --prefix /opt/parts
