#!/bin/sh
# What the server calls when a node joins that has missed something, where the nodes are on several machines
# (wsrep_sst_method). Nothing is copied: the node gets what it has missed from the changes that another node keeps in
# memory and on disk (gcache), or it stays out.
set -eu
role='' position='' bypass=no
while [ $# -gt 0 ]; do
    case $1 in
        --role) role=$2; shift ;;
        --gtid) position=$2; shift ;;
        --bypass) bypass=yes ;;
        --mysqld-args) break ;;
    esac
    shift
done
if [ "$role" = joiner ]; then
    echo 'ready here'
    # The server knows from its tables what it holds.
    echo '00000000-0000-0000-0000-000000000000:-1'
    exit
fi
if [ "$bypass" = no ]; then
    echo 'The node has missed more than is kept (gcache.size), and data are not copied between machines' >&2
    exit 1
fi
echo "done $position"
