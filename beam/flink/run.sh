#!/bin/sh
# Runs the tests of beam/pipeline on Flink: Beam's job server, from the jars in the folder $1, on a
# loopback address, with a Flink of its own in the process. Further arguments are the test program's.
set -eu
jars=$1 port=${FLINK_PORT:-8099}
shift
dir=$(mktemp -d)
# A record, which is a partition's nodes or edges, must fit what each sort has of this.
echo 'taskmanager.memory.managed.size: 1g' >"$dir/flink-conf.yaml"
java -Xmx2g --add-opens=java.base/java.lang=ALL-UNNAMED --add-opens=java.base/java.util=ALL-UNNAMED --add-opens=java.base/java.nio=ALL-UNNAMED \
	-Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp "$jars/*" org.apache.beam.runners.flink.FlinkJobServerDriver \
	--flink-master='[local]' --flink-conf-dir="$dir" --job-host=127.0.0.1 --job-port="$port" --artifact-port=$((port - 1)) --expansion-port=0 --artifacts-dir="$dir/artifacts" >"$dir/log" 2>&1 &
server=$!
trap 'kill $server 2>/dev/null || :; wait $server 2>/dev/null || :; rm -rf "$dir"' EXIT
left=60
until curl -s --http2-prior-knowledge -o /dev/null "http://127.0.0.1:$port"; do
	left=$((left - 1))
	if [ $left -eq 0 ] || ! kill -0 $server; then
		cat "$dir/log"
		exit 1
	fi
	sleep 1
done
cd "$(dirname "$0")/.."
go test ./pipeline -timeout 30m -count 1 "$@" -args -runner=universal -endpoint="127.0.0.1:$port" -environment_type=LOOPBACK || { tail -50 "$dir/log"; exit 1; }
