#!/usr/bin/env bash
# Exits with 0 if the load generator greets clients of its control port.
set -euo pipefail
port=${COMMAND_ENDPOINT##*:}
exec 3<>"/dev/tcp/127.0.0.1/$port"
IFS= read -r -t 2 greeting <&3
[[ $greeting == "LOADGEN Connected."* ]]
