#!/usr/bin/env bash
# A Kubernetes cluster of two nodes on this machine, for tests. Needs root and control groups v1.
#
#     tests/kubernetes/rig.sh up             start it, check it, and leave it running
#     eval "$(tests/kubernetes/rig.sh env)"  let kubectl use it
#     tests/kubernetes/rig.sh load IMAGE…    copy images of the Docker engine to both nodes
#     tests/kubernetes/rig.sh check          check it: a pod on each node, names, a Service
#     tests/kubernetes/rig.sh cut NODE N     cut the network of a node for N seconds
#     tests/kubernetes/rig.sh down           end all of it; does nothing if nothing runs
#
# The control plane and each node have namespaces of their own (processes, mounts, network), joined
# by a bridge. Three processes keep them alive, so ending these three ends everything. The machine
# itself gets only the interface `racetrack-rig`, by which it reaches pods and Services, and control
# groups below `racetrack-rig`.
#
# The first `up` compiles Kubernetes (tests/kubernetes/programs.py), which takes about 15 minutes of
# CPU time. Later ones take 20 s.
#
# Exit codes: 0 done; 1 a component did not start (the end of its log is shown); 2 wrong usage;
# 3 something is missing on this machine.

set -euo pipefail

RIG_REPO=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
RIG_SCRIPT="$RIG_REPO/tests/kubernetes/rig.sh"
# shellcheck source=racetrack/install/bootstrap.sh
source "$RIG_REPO/racetrack/install/bootstrap.sh"
RIG="$CACHE/rig"

NODES=(node1 node2)
# By number of the node.
ROLES=("generator broker support" "engine")
INTERFACE=racetrack-rig
GROUP=racetrack-rig
NETWORK=10.77
CONTROL=$NETWORK.0.1
MACHINE=$NETWORK.0.254
PODS=$NETWORK.16.0/20
SERVICES=$NETWORK.128.0/20
DOMAIN=cluster.local
IMAGE=docker.io/racetrack/rig:1
CNI_PLUGINS=/usr/lib/cni
# The kubelet insists on these settings of the kernel. Each node sees them as files, so that the
# kubelet has nothing to change.
declare -A KERNEL_SETTINGS=([vm/overcommit_memory]=1 [kernel/panic]=10 [kernel/panic_on_oops]=1)

UP_WITHIN_S=120
DOWN_WITHIN_S=30
POLL_S=0.2
LOG_TAIL_LINES=20

main() {
    local command=${1:-}
    shift || true
    case $command in
        up) up ;;
        down) down ;;
        env) print_environment ;;
        load) load "$@" ;;
        check) need_running && check ;;
        cut) need_running && cut_network "$@" ;;
        # `up` calls these in namespaces of their own.
        _control) be_control ;;
        _node) be_node "$@" ;;
        -h | --help) usage ;;
        *) usage >&2 && exit 2 ;;
    esac
}

usage() { sed -n '2,/^$/s/^# \{0,1\}//p' "$RIG_SCRIPT"; }

tell() { printf '[rig] %s\n' "$*" >&2; }

stop_with() {
    tell "$*"
    exit 3
}

# --- Up and down ---------------------------------------------------------------------------------

up() {
    local began=$SECONDS number
    [[ ! -e $RIG ]] || stop_with "A rig is up, or was not ended. End it: $0 down"
    check_machine
    get_programs
    trap failed_up EXIT
    mkdir -p "$RIG/log"
    chmod 700 "$RIG"
    echo "$PROGRAMS" >"$RIG/programs"
    write_secrets
    make_image
    start_control
    for number in "${!NODES[@]}"; do start_node "$number"; done
    wait_for "the nodes to be ready" nodes_are_ready
    check
    trap - EXIT
    tell "Up after $((SECONDS - began)) s. To use it: eval \"\$($0 env)\""
}

failed_up() {
    local code=$? log
    tell "The rig did not come up. The ends of its logs:"
    for log in "$RIG"/log/*.log; do
        printf -- '--- %s\n' "${log##*/}" >&2
        tail -n "$LOG_TAIL_LINES" "$log" | cut -c -300 >&2
    done
    rm -rf "$CACHE/log/rig"
    mkdir -p "$CACHE/log"
    cp -r "$RIG/log" "$CACHE/log/rig"
    tell "The whole logs: $CACHE/log/rig"
    down
    exit $((code ? code : 1))
}

down() {
    local name
    for name in control "${NODES[@]}"; do end_namespaces "$name"; done
    ip link delete "$INTERFACE" 2>/dev/null || true
    remove_groups
    rm -rf --one-file-system "$RIG"
}

check_machine() {
    ((EUID == 0)) || stop_with "Only root can start containers. Call it again with sudo."
    [[ -d /sys/fs/cgroup/memory ]] || stop_with "The rig needs control groups v1; this machine has v2."
    # shellcheck disable=SC2034  # bootstrap.sh reads it
    APT_PACKAGES=("$RIG_REPO/tests/kubernetes/apt-packages.txt")
    find_python || true
    install_what_is_missing
}

# Sets PROGRAMS to the folder with Kubernetes' programs; compiles them if they are missing.
get_programs() {
    PROGRAMS=$(cd "$RIG_REPO" && "$SYSTEM_PYTHON" -m tests.kubernetes.programs)
}

need_running() {
    [[ -e $RIG/programs ]] || stop_with "No rig is up. Start one: $0 up"
    PROGRAMS=$(<"$RIG/programs")
}

print_environment() {
    need_running
    echo "export KUBECONFIG=$RIG/kubeconfig"
    echo "export PATH=$PROGRAMS:\$PATH"
}

kubectl() { "$PROGRAMS/kubectl" --kubeconfig "$RIG/kubeconfig" "$@"; }

# Waits until a command succeeds. Fails if it does not in time, or if a component has ended.
wait_for() {
    local what=$1 give_up=$((SECONDS + UP_WITHIN_S))
    shift
    until "$@" >/dev/null 2>&1; do
        if [[ -s $RIG/ended ]]; then
            tell "$(head -n 1 "$RIG/ended") ended while the rig waited for $what."
            return 1
        elif ((SECONDS > give_up)); then
            tell "$what: not within $UP_WITHIN_S s."
            return 1
        fi
        sleep "$POLL_S"
    done
}

# --- Namespaces and control groups ----------------------------------------------------------------

# Runs this script with the arguments from $3 on, in new namespaces: $1 is their name, $2 are
# options of unshare. They live as long as the process in the file $1.pid.
begin_namespaces() {
    local name=$1 options
    read -ra options <<<"$2"
    shift 2
    (
        close_descriptors
        join_group "$name"
        exec setsid unshare --mount --net --pid "${options[@]}" --propagation private --mount-proc \
            --fork --kill-child "$RIG_SCRIPT" "$@" </dev/null >"$RIG/log/$name.log" 2>&1
    ) &
    echo $! >"$RIG/$name.pid"
    disown
    wait_for "the namespaces of $name" first_process "$name"
}

# Prints the process id, outside of the namespaces, of the first process in them.
first_process() { pgrep --parent "$(<"$RIG/$1.pid")" --full "$RIG_SCRIPT _"; }

in_network_of() {
    local name=$1
    shift
    nsenter --target "$(first_process "$name")" --net "$@"
}

# Kills the processes of namespaces; their groups are empty some time later.
end_namespaces() {
    local pid
    [[ -e $RIG/$1.pid ]] || return 0
    pid=$(<"$RIG/$1.pid")
    # The process id may belong to another program by now.
    if grep -qs unshare "/proc/$pid/cmdline"; then kill -KILL "$pid"; fi
}

# Closes what the caller has open, such as a lock, which the rig would keep while it is up.
close_descriptors() {
    local descriptor
    for descriptor in /proc/self/fd/*; do
        descriptor=${descriptor##*/}
        if ((descriptor > 2)); then eval "exec $descriptor>&-"; fi
    done
}

# Prints the folder and the controllers of each hierarchy of control groups.
hierarchies() {
    awk '$3 == "cgroup" { gsub(/(rw|nosuid|nodev|noexec|relatime|xattr|release_agent=[^,]*),?/, "", $4)
        sub(/,$/, "", $4); print $2, $4 }' /proc/mounts
}

join_group() {
    local folder group file
    while read -r folder _; do
        for group in "$folder/$GROUP" "$folder/$GROUP/$1"; do
            mkdir -p "$group"
            for file in cpuset.cpus cpuset.mems; do
                if [[ -e $group/$file ]]; then cat "${group%/*}/$file" >"$group/$file"; fi
            done
        done
        echo "$BASHPID" >"$group/cgroup.procs"
    done < <(hierarchies)
}

remove_groups() {
    local folder give_up=$((SECONDS + DOWN_WITHIN_S))
    while read -r folder _; do
        # The kernel still removes processes that were killed.
        until find "$folder/$GROUP" -depth -type d -exec rmdir {} + 2>/dev/null || [[ ! -e $folder/$GROUP ]]; do
            ((SECONDS < give_up)) || stop_with "Processes are left in $folder/$GROUP."
            sleep "$POLL_S"
        done
    done < <(hierarchies)
}

# Starts a program in the background with a log of its own, and records its end.
run() {
    local name=$1
    shift
    {
        "$@" >"$RIG/log/$name.log" 2>&1 || true
        echo "$name" >>"$RIG/ended"
    } &
}

# Keeps the first process of the namespaces alive. Bash also reaps orphans.
stay() {
    wait
    sleep infinity
}

# --- The control plane ----------------------------------------------------------------------------

# One token for all components: only this machine reaches the rig.
write_secrets() {
    local token
    token=$(openssl rand -hex 16)
    echo "$token,rig,rig,system:masters" >"$RIG/tokens.csv"
    openssl genrsa -out "$RIG/service-accounts.key" 2048 2>/dev/null
    cat >"$RIG/kubeconfig" <<END
apiVersion: v1
kind: Config
clusters:
  - name: rig
    cluster: {server: "https://$CONTROL:6443", certificate-authority: $RIG/certificates/apiserver.crt}
users:
  - {name: rig, user: {token: $token}}
contexts:
  - {name: rig, context: {cluster: rig, user: rig}}
current-context: rig
END
    cat >"$RIG/Corefile" <<END
.:53 {
    errors
    kubernetes $DOMAIN {
        kubeconfig $RIG/kubeconfig
    }
}
END
}

start_control() {
    local number
    begin_namespaces control "" _control
    ip link add "$INTERFACE" type veth peer name machine netns "$(first_process control)"
    ip address add "$MACHINE/24" dev "$INTERFACE"
    ip link set "$INTERFACE" up
    for number in "${!NODES[@]}"; do
        ip route add "$(pods_of "$number")" via "$(address_of "$number")"
    done
    # The first node forwards to Services.
    ip route add "$SERVICES" via "$(address_of 0)"
    wait_for "the bridge" in_network_of control ip link show rig
    in_network_of control ip link set machine master rig up
    wait_for "the API server" kubectl get --raw /readyz
}

be_control() {
    local number
    PROGRAMS=$(<"$RIG/programs")
    ip link set lo up
    ip link add rig type bridge
    ip address add "$CONTROL/24" dev rig
    ip link set rig up
    for number in "${!NODES[@]}"; do
        ip route add "$(pods_of "$number")" via "$(address_of "$number")"
    done
    run_etcd
    run_api_server
    wait_for "the API server" kubectl get --raw /readyz
    local as_us=("--kubeconfig=$RIG/kubeconfig" --leader-elect=false --secure-port=0)
    run scheduler "$PROGRAMS/kube-scheduler" "${as_us[@]}"
    run controller-manager "$PROGRAMS/kube-controller-manager" "${as_us[@]}" \
        --service-account-private-key-file="$RIG/service-accounts.key" \
        --root-ca-file="$RIG/certificates/apiserver.crt"
    run dns "$PROGRAMS/coredns" -conf "$RIG/Corefile"
    stay
}

run_etcd() {
    run etcd "$PROGRAMS/etcd" --data-dir="$RIG/etcd" --unsafe-no-fsync \
        --listen-client-urls=http://127.0.0.1:2379 --advertise-client-urls=http://127.0.0.1:2379 \
        --listen-peer-urls=http://127.0.0.1:2380
}

run_api_server() {
    run api-server "$PROGRAMS/kube-apiserver" --etcd-servers=http://127.0.0.1:2379 \
        --bind-address="$CONTROL" --cert-dir="$RIG/certificates" \
        --service-cluster-ip-range="$SERVICES" --allow-privileged \
        --token-auth-file="$RIG/tokens.csv" --authorization-mode=RBAC \
        --kubelet-preferred-address-types=InternalIP \
        --service-account-issuer=https://kubernetes.default.svc \
        --service-account-key-file="$RIG/service-accounts.key" \
        --service-account-signing-key-file="$RIG/service-accounts.key"
}

# --- The nodes ------------------------------------------------------------------------------------

address_of() { echo "$NETWORK.0.$((11 + $1))"; }
pods_of() { echo "$NETWORK.$((16 + $1)).0/24"; }

labels_of() {
    local role labels=()
    for role in ${ROLES[$1]}; do labels+=("role.racetrack.dev/$role="); done
    IFS=, && echo "${labels[*]}"
}

nodes_are_ready() {
    kubectl wait --for=condition=Ready --timeout=1s node "${NODES[@]}"
}

start_node() {
    local number=$1 name=${NODES[$1]}
    mkdir -p "$RIG/$name"
    begin_namespaces "$name" "--uts --ipc --cgroup" _node "$number"
    in_network_of control ip link add "$name" type veth peer name eth0 netns "$(first_process "$name")"
    in_network_of control ip link set "$name" master rig up
}

be_node() {
    local number=$1 name=${NODES[$1]}
    PROGRAMS=$(<"$RIG/programs")
    hostname "$name"
    mount_folders "$name"
    wait_for "the network of $name" ip link show eth0
    join_network "$number"
    write_node_files "$number"
    run "$name-containerd" containerd --config /etc/containerd.toml
    wait_for "containerd of $name" ctr version
    ctr --namespace k8s.io images import "$RIG/image.tar"
    run "$name-kubelet" "$PROGRAMS/kubelet" --config=/etc/kubelet.yaml --kubeconfig="$RIG/kubeconfig" \
        --hostname-override="$name" --node-ip="$(address_of "$number")" --root-dir="$RIG/$name/kubelet" \
        --node-labels="$(labels_of "$number")"
    run "$name-proxy" "$PROGRAMS/kube-proxy" --config=/etc/kube-proxy.yaml
    stay
}

# Makes everything that the node's programs write outside of $RIG private to the node.
mount_folders() {
    local own="$RIG/$1" folder controllers setting groups
    mapfile -t groups < <(hierarchies)
    for folder in etc var; do
        mkdir -p "$own/$folder" "$own/$folder.work"
        mount -t overlay overlay -o "lowerdir=/$folder,upperdir=$own/$folder,workdir=$own/$folder.work" "/$folder"
    done
    mount -t tmpfs tmpfs /run
    mount -t sysfs sysfs /sys
    mount -t tmpfs tmpfs /sys/fs/cgroup
    for folder in "${groups[@]}"; do
        read -r folder controllers <<<"$folder"
        mkdir "$folder"
        mount -t cgroup -o "${controllers/#name=/none,name=}" cgroup "$folder"
    done
    for setting in "${!KERNEL_SETTINGS[@]}"; do
        mkdir -p "$own/kernel/${setting%/*}"
        echo "${KERNEL_SETTINGS[$setting]}" >"$own/kernel/$setting"
        mount --bind "$own/kernel/$setting" "/proc/sys/$setting"
    done
    mount --make-rshared /
}

join_network() {
    local other
    ip link set lo up
    ip address add "$(address_of "$1")/24" dev eth0
    ip link set eth0 up
    for other in "${!NODES[@]}"; do
        ((other == $1)) || ip route add "$(pods_of "$other")" via "$(address_of "$other")"
    done
    echo 1 >/proc/sys/net/ipv4/ip_forward
    # Answers between pods of one node must pass kube-proxy's rules, too.
    echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables
}

write_node_files() {
    local name=${NODES[$1]}
    mkdir -p /etc/cni/net.d
    cat >/etc/cni/net.d/rig.conflist <<END
{"cniVersion": "1.0.0", "name": "rig", "plugins": [
    {"type": "bridge", "bridge": "pods", "isGateway": true, "hairpinMode": true,
     "ipam": {"type": "host-local", "ranges": [[{"subnet": "$(pods_of "$1")"}]],
              "routes": [{"dst": "0.0.0.0/0"}]}}]}
END
    cat >/etc/containerd.toml <<END
version = 2
root = "$RIG/$name/containerd"
state = "/run/containerd"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "$IMAGE"
disable_apparmor = true
# Without it, pause containers need the capability CAP_SYS_RESOURCE.
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "$CNI_PLUGINS"
END
    cat >/etc/kubelet.yaml <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
clusterDNS: [$CONTROL]
clusterDomain: $DOMAIN
resolvConf: ""
evictionHard: {memory.available: 100Mi}
imageGCHighThresholdPercent: 100
failSwapOn: false
# With it, statistics and eviction fail on containerd 1.6.
featureGates: {KubeletSeparateDiskGC: false}
END
    cat >/etc/kube-proxy.yaml <<END
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
clusterCIDR: $PODS
hostnameOverride: $name
clientConnection: {kubeconfig: $RIG/kubeconfig}
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
END
}

# --- Images and the check -------------------------------------------------------------------------

# Makes the image of pause containers and of the check: one program, in the format of `docker save`.
make_image() {
    local folder="$RIG/image" digest
    mkdir "$folder"
    tar --create --file "$folder/layer.tar" --directory "$PROGRAMS" --owner=0 --group=0 pod
    digest=$(sha256sum "$folder/layer.tar" | cut -d ' ' -f 1)
    cat >"$folder/config.json" <<END
{"architecture": "$(dpkg --print-architecture)", "os": "linux", "config": {"Entrypoint": ["/pod"]},
 "rootfs": {"type": "layers", "diff_ids": ["sha256:$digest"]}}
END
    echo "[{\"Config\": \"config.json\", \"RepoTags\": [\"$IMAGE\"], \"Layers\": [\"layer.tar\"]}]" \
        >"$folder/manifest.json"
    tar --create --file "$RIG/image.tar" --directory "$folder" .
}

load() {
    local first second
    need_running
    (($#)) || stop_with "Name the images to copy, such as racetrack/airgap-mysql:0.1.0."
    first=$(first_process "${NODES[0]}") second=$(first_process "${NODES[1]}")
    tell "Copying $* to both nodes …"
    docker save "$@" | tee >(import "$second") | import "$first"
    # The second node may need longer.
    wait_for "the images on ${NODES[1]}" has_images "$second" "$@"
}

import() { nsenter --target "$1" --mount --net ctr --namespace k8s.io images import - >/dev/null; }

has_images() {
    local pid=$1 image
    shift
    for image; do
        nsenter --target "$pid" --mount --net ctr --namespace k8s.io images check "name==docker.io/$image" |
            grep --quiet "complete.*true"
    done
}

# Runs a pod on each node, which must reach the pods of both nodes by the name of their Service.
check() {
    local pod
    kubectl apply --filename "$RIG_REPO/tests/kubernetes/check.yaml" >/dev/null
    wait_for "the service account" kubectl --namespace rig-check get serviceaccount default
    kubectl --namespace rig-check rollout status daemonset/check --timeout="${UP_WITHIN_S}s" >/dev/null
    for pod in $(kubectl --namespace rig-check get pods --output name); do
        wait_for "$pod to reach the pods of both nodes" reaches_both "$pod"
    done
    kubectl delete namespace rig-check --timeout="${DOWN_WITHIN_S}s" >/dev/null
    tell "Checked: a pod on each node reaches the pods of both nodes by the Service's name."
}

# Takes a node off the bridge, so that nothing reaches it and nothing is refused, as if somebody had
# pulled its cable. It is put back even if this command is killed.
cut_network() {
    local node=$1 seconds=$2
    [[ " ${NODES[*]} " == *" $node "* ]] || stop_with "There is no node $node: ${NODES[*]}"
    (
        close_descriptors
        trap "" INT TERM HUP
        in_network_of control ip link set "$node" nomaster
        sleep "$seconds"
        in_network_of control ip link set "$node" master rig
    ) </dev/null >/dev/null 2>&1 &
    wait $!
}

reaches_both() {
    local answers
    answers=$(for _ in {1..12}; do kubectl --namespace rig-check exec "$1" -- /pod get http://check:8080; done)
    (($(sort --unique <<<"$answers" | wc -l) == ${#NODES[@]}))
}

main "$@"
