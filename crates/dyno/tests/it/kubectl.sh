#!/bin/sh
# A `kubectl` that keeps a Job in a folder, and runs here what is to run in a pod. It behaves as kubectl 1.34 did on a
# cluster with containerd.
#
# Files of the folder: `job` (what is in the Job's status), `pods` (a line for each: number, name, node), `seen` (the pods
# have been asked for, and run from then on), `events`, `away` (the API server is), `slow` (it is), `keeps` (nothing may be
# deleted).
state=$(dirname "$0")/state
mkdir -p "$state"
echo "$@" >> "$state/log"
while case "$1" in --*) true;; *) false;; esac; do shift; done
if [ -e "$state/away" ]; then
    echo 'The connection to the server 10.0.0.1:6443 was refused - did you specify the right host or port?' >&2
    exit 1
fi
asks_for() { grep -q "\"image\":\"$1" "$state/manifest"; }
case "$1 $2" in
"apply --filename=-")
    cat > "$state/manifest"
    asks_for refused/image && { echo 'forbidden: no quota' >&2; exit 1; }
    : > "$state/job"
    if asks_for restricted/image && ! grep -q '"runAsNonRoot":true' "$state/manifest"; then
        echo 'Warning: would violate PodSecurity "restricted:latest": runAsNonRoot != true' >&2
        : > "$state/pods"
        printf '{"items":[{"lastTimestamp":"2026-11-27T00:00:00Z","reason":"FailedCreate","message":"%s"}]}' \
            'Error creating: pods are forbidden: violates PodSecurity' > "$state/events"
    else
        n=$(grep -o '"completions":[0-9]*' "$state/manifest" | cut -d : -f 2)
        seq "$n" | while read -r nth; do echo "$((nth - 1)) pod-$nth k$nth"; done > "$state/pods"
    fi
    ;;
"get job,pods")
    [ ! -e "$state/slow" ] || sleep 1
    printf '{"items":['
    if [ -e "$state/job" ]; then
        printf '{"kind":"Job","metadata":{"name":"dyno"},"status":{%s}}' "$(cat "$state/job")"
        while read -r index name node; do
            printf ',{"kind":"Pod","metadata":{"name":"%s","annotations":' "$name"
            printf '{"batch.kubernetes.io/job-completion-index":"%s"}},"spec":{"nodeName":"%s"},"status":' "$index" "$node"
            if asks_for invalid/image; then
                printf '{"phase":"Pending","containerStatuses":[{"ready":false,"state":{"waiting":'
                printf '{"reason":"InvalidImageName","message":"cannot be parsed"}}}]}}'
            elif [ -e "$state/seen" ] && ! asks_for never/image; then
                printf '{"phase":"Running","containerStatuses":[{"ready":true,"state":{"running":{}}}]}}'
            else
                printf '{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False",'
                printf '"reason":"Unschedulable","message":"0/3 nodes are available"}]}}'
            fi
        done < "$state/pods"
    fi
    printf ']}\n'
    touch "$state/seen"
    ;;
"get events")
    cat "$state/events" 2>/dev/null || echo '{"items":[]}'
    ;;
"exec --stdin")
    pod=$3
    if ! grep -q " $pod " "$state/pods"; then
        echo "Error from server (NotFound): pods \"$pod\" not found" >&2
        exit 1
    fi
    shift 6
    export TEST_PODS="$state" TEST_POD="$pod"
    input=$state/input.$$ part=$state/part.$$
    mkfifo "$input"
    "$@" < "$input" &
    program=$!
    exec 3> "$input" 4<&0
    rm "$input"
    # Its input ends as soon as it has closed its output. That it has is certain once it has read: what is sent before
    # is more than a pipe holds.
    {
        output=$(readlink "/proc/$$/fd/1")
        for nth in 1 2 3 4 5 6 7 8; do
            dd bs=65536 count=1 > "$part"
            [ -s "$part" ] || exit
            [ "$(readlink "/proc/$program/fd/1")" = "$output" ] || exit
            cat "$part" >&3
        done
        exec cat >&3
    } <&4 > /dev/null 2>&1 &
    sender=$!
    exec 3>&- 4<&-
    wait "$program"
    code=$?
    kill "$sender" 2>/dev/null
    rm -f "$part"
    exit "$code"
    ;;
"delete job")
    if [ -e "$state/keeps" ]; then
        echo 'Error from server (Forbidden): jobs.batch is forbidden: cannot delete resource "jobs"' >&2
        exit 1
    fi
    rm -f "$state/job" "$state/pods" "$state/seen" "$state/events"
    ;;
*)
    echo "unknown command $*" >&2
    exit 2
    ;;
esac
