#!/usr/bin/env bash
# Verified runs on the test cluster (rig.sh), each on a cluster of its own. Needs what rig.sh needs,
# a Docker engine (one is started if none answers), and images by `./race images`.
#
#     tests/kubernetes/runs.sh CASE…
#
#     kstreams  Kafka Streams with two replicas
#     flink     Flink with two TaskManagers
#     spark     Spark with two executors
#     brokers   Kafka Streams with two replicas, with two brokers and two pods of the generator
#     delete    flink, and the pod of a TaskManager is deleted
#     kill      flink, and all its pods are killed
#     drain     kstreams, and the engine's node is drained
#     cut       kstreams, and the network of the engine's node is cut for 20 s
#     scale     ./race scale kstreams with one and two replicas, in its shortest form
#     harness   kstreams, and the harness is killed: nothing of the run may be left
#     job       pg, and the harness is a Job, whose run folder is copied while it runs
#     kafka     pg, with a Kafka and a registry that are there already
#     engine    flink, with a Flink that is there already
#     tls       pg, with a Kafka outside the cluster that demands certificates
#     jobs      the same Job, interrupted by Ctrl-C, and then with its pod killed
#
# A case takes 3 to 5 minutes on two cores. Exit code: 0 if all passed: the runs were verified.

set -euo pipefail

REPO=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
# shellcheck source=racetrack/install/bootstrap.sh
source "$REPO/racetrack/install/bootstrap.sh"
RIG="$REPO/tests/kubernetes/rig.sh"
MACHINE=10.77.0.254 # this machine, as seen from the nodes
SHARED=(serve mysql redpanda loadgen debezium)
VERSION=0.1.0
GONE_WITHIN_S=150
POLL_S=1

main() {
    if [[ ${1:--h} == -* ]]; then
        sed -n '2,/^$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
        exit 0
    fi
    local engine name
    for name; do
        if ! declare -F "case_$name" >/dev/null; then
            echo "There is no case $name. See tests/kubernetes/runs.sh --help." >&2
            exit 2
        fi
    done
    cd "$REPO"
    find_python
    TESTS_PYTHON=$(python_of tests)
    trap end EXIT
    engine=$("$TESTS_PYTHON" -m tests.docker_engine up)
    eval "$engine"
    for name; do
        "case_$name"
        echo "[runs] $name: passed"
    done
}

end() {
    "$RIG" down
    "$TESTS_PYTHON" -m tests.docker_engine down >/dev/null || true
}

case_kstreams() { race kstreams; }
case_flink() { race flink; }
case_spark() { race spark; }
case_brokers() { BROKER_REPLICAS=2 LOADGEN_REPLICAS=2 race kstreams; }
case_delete() { race flink --fault delete:flink-taskmanager-1@12s; }
case_drain() { race kstreams --fault drain:node2@12s+5s; }
case_cut() { race kstreams --fault cut:node2@12s+20s; }
case_kill() { race flink --fault kill:engine@12s; }

case_scale() {
    begin kstreams
    on_the_rig ./race scale kstreams --replicas 1,2 --quick --repeats 1
    "$RIG" down
}

case_harness() {
    local harness
    begin kstreams
    start_race kstreams &
    until kubectl --namespace racetrack get pod kstreams-0 >/dev/null 2>&1; do sleep "$POLL_S"; done
    harness=$(pgrep --oldest --full "racetrack run_experiment kstreams")
    kill -KILL "$harness"
    gone_within_time
    "$RIG" down
}

case_job() {
    local logs runner seen
    logs=$(mktemp -d)
    begin postgres pgfeed harness
    start_job "$logs" &
    runner=$!
    until seen=$(cat "$logs"/*/curves.csv 2>/dev/null | wc -c) && ((seen)); do
        kill -0 "$runner" && sleep "$POLL_S"
    done
    echo "[runs] The copy has $seen bytes of curves while the Job runs."
    wait "$runner"
    (($(cat "$logs"/*/curves.csv | wc -c) > seen))
    gone_within_time
    rm -r "$logs"
    "$RIG" down
}

case_kafka() {
    local at=10.77.0.11 logs
    logs=$(mktemp -d)
    begin postgres pgfeed
    start_kafka "$at" "$logs"
    LOGS_FOLDER=$logs KAFKA_TOPIC_PREFIX=racetrack-rig. \
        KAFKA_BOOTSTRAP_SERVERS=$at:$(port_of outside) \
        REGISTRY_URL=http://$at:$(port_of registry)/apis/ccompat/v7 \
        on_the_rig ./run_experiment.sh pg 2000 10 5 1.0 --verify
    kubectl --namespace kafka get pod redpanda-0
    rm -r "$logs"
    "$RIG" down
}

case_engine() {
    local logs
    logs=$(mktemp -d)
    begin flink
    start_flink
    LOGS_FOLDER=$logs FLINK_GATEWAY_URL=http://10.77.0.12:$(port_of gateway flink) \
        on_the_rig ./run_experiment.sh flink 2000 10 5 1.0 --verify
    kubectl --namespace flink get pod flink-0
    rm -r "$logs"
    "$RIG" down
}

case_tls() {
    local line="" kafka
    begin postgres pgfeed
    coproc "$TESTS_PYTHON" -m tests.secured_kafka --certificate "$MACHINE"
    kafka=$COPROC_PID
    until [[ $line == *KEY_LOCATION* ]]; do
        read -r line <&"${COPROC[0]}"
        eval "$line"
    done
    on_the_rig ./run_experiment.sh pg 2000 10 5 1.0 --verify
    eval "exec ${COPROC[1]}>&-"
    wait "$kafka"
    unset "${!KAFKA_@}"
    "$RIG" down
}

# Starts Flink's session cluster in a namespace of its own, as users have one.
start_flink() {
    kubectl create namespace flink
    sed 's/resources: {.*/resources: {}/; s/^  ports:/  type: NodePort\n  ports:/' \
        racetrack/engines/flink/kubernetes/full/flink.yaml |
        kubectl --namespace flink apply --filename -
    kubectl --namespace flink create secret generic settings --from-env-file=.env \
        --from-env-file=racetrack/engines/flink/.env
    kubectl --namespace flink create configmap inside --from-env-file=racetrack/engines/inside.env
    kubectl --namespace flink rollout status statefulset/flink --timeout=180s
    kubectl --namespace flink rollout status statefulset/flink-taskmanager --timeout=180s
}

# Starts a Kafka with a registry in a namespace of its own; $1 is the address of a node, $2 a
# folder for a file.
start_kafka() {
    kubectl create namespace kafka
    sed 's/resources: {.*/resources: {}/; s/^  ports:/  type: NodePort\n  ports:/' kubernetes/base/redpanda.yaml |
        kubectl --namespace kafka apply --filename -
    kubectl --namespace kafka create secret generic settings --from-env-file=.env
    {
        grep --invert-match '^#' racetrack/engines/inside.env
        echo "KAFKA_OUTSIDE=$1:$(port_of outside)"
    } >"$2/inside.env"
    kubectl --namespace kafka create configmap inside --from-env-file="$2/inside.env"
    kubectl --namespace kafka rollout status statefulset/redpanda --timeout=120s
}

# Prints the port of the nodes that leads to the port $1 of this Kafka, or of the namespace $2.
port_of() {
    kubectl --namespace "${2:-kafka}" get services \
        --output "jsonpath={.items[*].spec.ports[?(@.name=='$1')].nodePort}"
}

case_jobs() {
    local logs runner code
    logs=$(mktemp -d)
    begin postgres pgfeed harness
    start_job "$logs" &
    until_engine_runs
    runner=$(pgrep --oldest --full "racetrack run_experiment pg")
    kill -INT "$runner"
    code=0 && wait $! || code=$?
    ((code == 130)) || fail "Ctrl-C ended the Job with $code."
    gone_within_time
    start_job "$logs" &
    until_engine_runs
    kubectl --namespace racetrack-job delete pod --selector racetrack.dev/job --grace-period=0 --force
    code=0 && wait $! || code=$?
    ((code == 1)) || fail "A lost Job ended with $code."
    gone_within_time
    rm -r "$logs"
    "$RIG" down
}

start_job() {
    LOGS_FOLDER=$1 KUBERNETES_JOB=true on_the_rig ./run_experiment.sh pg 2000 10 20 1.0 --verify
}

until_engine_runs() {
    until kubectl --namespace racetrack get pod postgres-0 >/dev/null 2>&1; do sleep "$POLL_S"; done
}

# Waits until nothing of a run and its Job is left.
gone_within_time() {
    local give_up=$((SECONDS + GONE_WITHIN_S))
    while kubectl get namespace racetrack >/dev/null 2>&1 ||
        kubectl get namespace racetrack-job >/dev/null 2>&1 ||
        kubectl get clusterrole racetrack-job >/dev/null 2>&1; do
        ((SECONDS < give_up)) || fail "Something of the run is still there."
        sleep "$POLL_S"
    done
}

fail() {
    echo "[runs] $*" >&2
    exit 1
}

# Runs one engine to its verified end.
race() {
    begin "$1"
    start_race "$@"
    "$RIG" down
}

begin() {
    local images=("${SHARED[@]}" "$@")
    images=("${images[@]/#/racetrack/airgap-}")
    "$RIG" up
    eval "$("$RIG" env)"
    "$RIG" load "${images[@]/%/:$VERSION}"
}

start_race() {
    local engine=$1
    shift
    ENGINE_REPLICAS=2 on_the_rig ./run_experiment.sh "$engine" 2000 10 5 1.0 --verify "$@"
}

on_the_rig() {
    KUBERNETES_CUT_COMMAND="$RIG cut" RUNTIME=kubernetes KUBERNETES_SMALL=true NOISE_GATE=false "$@"
}

main "$@"
