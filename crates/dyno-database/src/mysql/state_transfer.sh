#!/bin/sh
# Copies the data of a node to one that joins, as the server asks for it (wsrep_sst_method). All nodes are on
# this machine and belong to one user, so files are copied and nothing listens on a port.
set -eu
bypass=no
while [ $# -gt 0 ]; do
    case $1 in
        --role) role=$2; shift ;;
        --address) address=$2; shift ;;
        --datadir) data=$2; shift ;;
        --gtid) position=$2; shift ;;
        --parent) parent=$2; shift ;;
        --bypass) bypass=yes ;;
        --mysqld-args) break ;;
    esac
    shift
done
to=${address%/transfer}
# The server passes its own process to a node that joins; else it is what has started this script.
parent=${parent:-$PPID}

# Files that belong to one node and are not copied.
is_own() {
    case $1 in
        grastate.dat | gvwstate.dat | galera.cache | gcache.* | sst_in_progress) ;;
        transfer | transfer.new | transfer.wanted | tables_flushed | ibtmp* | ib_buffer_pool) ;;
        *) return 1 ;;
    esac
}

if [ "$role" = joiner ]; then
    rm -f "$address"
    : >"$to/transfer.wanted"
    echo "ready $address"
    until [ -e "$address" ]; do
        kill -0 "$parent"
        sleep 0.02
    done
    cat "$address"
    rm -f "$address" "$to/transfer.wanted"
    exit
fi
# The address comes from another node: nothing is removed or written where no node of Dyno's waits for it.
if [ "$to/transfer" != "$address" ] || [ ! -f "$to/transfer.wanted" ]; then
    echo "no node waits for data in $address" >&2
    exit 1
fi
if [ "$bypass" = no ]; then
    cd "$data"
    echo 'flush tables'
    until [ -s tables_flushed ]; do
        kill -0 "$parent"
        sleep 0.02
    done
    position=$(cat tables_flushed)
    rm -f tables_flushed
    for one in "$to"/*; do is_own "${one##*/}" || rm -rf "$one"; done
    for one in *; do
        is_own "$one" && continue
        # Temporary files may go while they are copied: what is still there is copied once more.
        cp -a "$one" "$to/" || [ ! -e "$one" ] || cp -a "$one" "$to/"
    done
    echo continue
fi
echo "$position" >"$address.new"
mv "$address.new" "$address"
echo "done $position"
