# For the tests beside it: a Redis of their own in a folder of their own, which is the current one then.
cd "${AUTOPKGTEST_TMP:-$(mktemp -d)}"
redis-server --port 0 --unixsocket "$PWD/redis.sock" --unixsocketperm 777 --save '' --daemonize yes --pidfile "$PWD/redis.pid" >redis.log
trap 'kill "$(cat redis.pid)"' EXIT
export REDIS_URL="unix://$PWD/redis.sock"
for _ in $(seq 100); do redis-cli -s redis.sock ping >/dev/null 2>&1 && break || sleep 0.1; done
