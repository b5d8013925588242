#!/bin/sh
# Installs a part into /opt/parts by the same recipe as on a machine. For a stage whose files do not
# get into an image: pip.conf and ca-certificates.crt are how the building machine reaches PyPI.
set -eu
cd /opt/racetrack
mkdir -p /etc/ssl/certs
cp ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
cp pip.conf /etc/pip.conf
set -a
# shellcheck source=/dev/null  # made beside it when an image is built
. ./versions.env
# Nothing can be compiled later: an image's programs don't write there.
RACETRACK_CACHE=/tmp/cache UV_COMPILE_BYTECODE=1 python3 -m racetrack.install "$1" --prefix /opt/parts
