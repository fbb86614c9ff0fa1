#!/bin/sh
# Starts Beam's job server, from the jars in the folder $1, on a loopback address, with a Flink of its own
# in the process, and runs the command that follows with flags that lead there. By variables: FLINK_HEAP of the
# process, FLINK_PARALLELISM, how many parts a stage has, FLINK_MANAGED and FLINK_NETWORK, the memory that they
# share; FLINK_PORT of the job server; FLINK_TIMES=1 prints what the process took.
set -eu
jars=$1 port=${FLINK_PORT:-8099} heap=${FLINK_HEAP:-2g} managed=${FLINK_MANAGED:-1g} parallelism=${FLINK_PARALLELISM:-1}
shift
dir=$(mktemp -d)
# A record, which is a partition's nodes or edges, must fit what each sort has of the managed memory.
cat >"$dir/flink-conf.yaml" <<END
taskmanager.memory.managed.size: $managed
taskmanager.numberOfTaskSlots: $parallelism
taskmanager.memory.network.min: ${FLINK_NETWORK:-64m}
taskmanager.memory.network.max: ${FLINK_NETWORK:-64m}
parallelism.default: $parallelism
io.tmp.dirs: $dir
END
java -Xmx"$heap" --add-opens=java.base/java.lang=ALL-UNNAMED --add-opens=java.base/java.util=ALL-UNNAMED --add-opens=java.base/java.nio=ALL-UNNAMED \
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
"$@" -runner=universal -endpoint="127.0.0.1:$port" -environment_type=LOOPBACK || { tail -50 "$dir/log"; exit 1; }
[ -z "${FLINK_TIMES:-}" ] || awk '{ printf "processor time of the job server and Flink: %.0f s\n", ($14 + $15) / 100 }' "/proc/$server/stat"
