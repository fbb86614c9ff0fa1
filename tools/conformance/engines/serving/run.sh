#!/bin/sh
# run.sh GSRC PYTHON trains and exports a model, serves it, and asks it with client.py.
set -eu
gsrc=$1 python=$2
dir=$(mktemp -d)
server=
trap 'test -z "$server" || kill "$server" 2>/dev/null || true; rm -rf "$dir"' EXIT
"$gsrc" train gcn --data synthetic --out "$dir/run" --set train.epochs=5 >"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }
"$gsrc" build "$dir/run" --out "$dir/dist" >>"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }
"$gsrc" serve "$dir/dist" --data synthetic --updates --http 127.0.0.1:0 --grpc 127.0.0.1:0 2>"$dir/served" &
server=$!
for i in $(seq 600); do
	grep -q 'listening on grpc' "$dir/served" && break
	kill -0 "$server" || { cat "$dir/served"; exit 1; }
	sleep 0.1
done
"$python" "$(dirname "$0")/client.py" --http "$(sed -n 's,listening on http://,,p' "$dir/served")" --grpc "$(sed -n 's,listening on grpc://,,p' "$dir/served")"
kill "$server"
wait "$server" || { cat "$dir/served"; exit 1; }
server=
grep stopped "$dir/served"
