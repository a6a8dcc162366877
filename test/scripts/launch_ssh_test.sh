#!/usr/bin/env bash
# Goal: launch_ssh.sh starts each role once with the same job, forwards a stop to all of them,
# leaves nothing behind, and reports each failure in one sentence. Method: ssh is replaced by a
# program that runs the command on this machine, and dovetail by a program that records its
# arguments and ends as the case wants.
# shellcheck disable=SC2016
set -uo pipefail
launch=$(cd "$(dirname "$0")/../.." && pwd)/scripts/launch_ssh.sh
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
failed=0

cat >ssh <<'SSH'
#!/usr/bin/env bash
[[ $1 == unreachable ]] && { echo "ssh: connect: No route" >&2; exit 255; }
shift
exec bash -c "$*"
SSH
# Ends at once with $<ROLE>_CODE if that is set; else waits for a signal, at most 20 s, and ends with 0 a moment later:
# a process that has announced its end is not gone yet.
cat >dovetail <<'ROLE'
#!/usr/bin/env bash
if [[ $1 == keygen ]]; then
  printf 'public P\nsecret S\n' >"$2.key"
  exit 0
fi
exec 9<> <(:)  # Nothing comes from it.
trap 'echo "$1 stopped" >>calls; read -rt 0.3 -u 9; exit 0' INT TERM
echo "$$" >>pids
for flag in "$@"; do
  [[ $flag == security.curve.key=* ]] || continue
  file=${flag#*=}
  echo "$file" >>key_files
  [[ $(stat -c %a "$file") == 600 && $(<"$file") == $'public P\nsecret S' ]] && echo "$1" >>keyed
done
# Signals may come from here on: bash 5.2 loses one that comes while it expands "$(…)".
echo "$*" >>calls
code=${1}_CODE
[[ -n ${!code:-} ]] && exit "${!code}"
for ((i = 0; i < 200; ++i)); do read -rt 0.1 -u 9 || true; done
exit 1
ROLE
chmod +x ssh dovetail
echo "job: x" >job.yaml
printf '# two and one\nserver alpha\nserver user@beta 10.0.0.2\nworker gamma\n' >hosts

# run NAME WANTED_CODE COMMAND…: output goes to `out`.
run() {
  local name=$1 want=$2 got
  shift 2
  rm -f calls pids key_files keyed
  touch calls pids key_files keyed
  timeout 60 env DOVETAIL="$dir/dovetail" DOVETAIL_SSH="$dir/ssh" DOVETAIL_ADDRESS=tcp://10.0.0.1:4700 "$@" >out 2>&1
  got=$?
  [[ $got == "$want" ]] || complain "$name" "exit code $got instead of $want"
  while read -r pid; do
    kill -0 "$pid" 2>/dev/null && complain "$name" "process $pid is left behind"
  done <pids
  while read -r file; do
    [[ ! -e $file ]] || complain "$name" "the key $file is left behind"
  done <key_files
  current=$name
}
complain() {
  failed=1
  echo "FAILED: $1: $2"
  sed 's/^/    /' out
}
said() { grep -qF -- "$1" out || complain "$current" "does not say: $1"; }
called() { grep -qF -- "$1" calls || complain "$current" "never called: $1 ($(cat calls))"; }

run "job done" 0 env scheduler_CODE=0 server_CODE=0 worker_CODE=0 "$launch" job.yaml hosts --result r.json --seed "a b"
called "scheduler job.yaml --set cluster.servers=2 --set cluster.workers=1 --seed a b --result r.json --listen tcp://10.0.0.1:4700"
called "server job.yaml --set cluster.servers=2 --set cluster.workers=1 --seed a b --scheduler tcp://10.0.0.1:4700 --listen tcp://alpha:0"
called "--listen tcp://10.0.0.2:0"
[[ $(sort -u keyed) == $'scheduler\nserver\nworker' ]] || complain "$current" "only these have the key: $(cat keyed)"
called "worker job.yaml"
[[ $(wc -l <calls) == 4 ]] || complain "job done" "$(wc -l <calls) processes instead of 4"

printf 'job: x\nsecurity: {insecure: true}\n' >own_keys.yaml
run "keys of its own" 0 env scheduler_CODE=0 server_CODE=0 worker_CODE=0 "$launch" own_keys.yaml hosts
grep -q "security.curve.key" calls && complain "$current" "hands out a key beside the job's own"

run "job failed" 1 env scheduler_CODE=1 "$launch" job.yaml hosts
said "scheduler ended with code 1"

run "lost worker is the scheduler's to judge" 143 env worker_CODE=9 \
  bash -c '"$0" "$@" & sleep 3; kill -TERM $!; wait $!' "$launch" job.yaml hosts
said "worker gamma ended with code 9"
[[ $(grep -c stopped calls) == 3 ]] || complain "$current" "not all were stopped: $(cat calls)"

run "interrupted" 130 bash -c 'set -m; "$0" "$@" & sleep 3; kill -INT $!; wait $!' "$launch" job.yaml hosts
[[ $(grep -c stopped calls) == 4 ]] || complain "$current" "not all were stopped: $(cat calls)"

# The launcher is killed, so it cannot stop the roles. They stop at the end of their standard input,
# so no other process may hold it open. Nobody waits for them, so this test does.
run "killed" 137 bash -c '
  "$0" "$@" & launcher=$!
  await() { for _ in $(seq 200); do "$@" && return; read -rt 0.1 <> <(:); done; }
  all_started() { [[ $(grep -c job.yaml calls) == 4 ]]; }
  all_gone() {
    while read -r pid; do kill -0 "$pid" && return 1; done <pids
    while read -r file; do [[ -e $file ]] && return 1; done <key_files
    return 0
  } 2>/dev/null
  await all_started
  kill -KILL $launcher
  await all_gone
  wait $launcher' "$launch" job.yaml hosts
[[ $(grep -c stopped calls) == 4 ]] || complain "$current" "not all were stopped: $(cat calls)"

printf 'server alpha\nworker unreachable\n' >lost
run "unreachable" 255 "$launch" job.yaml lost
said "launch_ssh: worker unreachable cannot be reached by ssh; stopping"

run "bad configuration" 2 env server_CODE=2 "$launch" job.yaml hosts
said "refused the job's configuration"

printf 'server alpha\nwroker gamma\n' >typo
run "wrong role" 2 "$launch" job.yaml typo
said "typo:2: 'wroker' is neither server nor worker"
printf 'server alpha\n' >few
run "no worker" 2 "$launch" job.yaml few
said "1 server and 0 workers"
run "no job" 2 "$launch" absent.yaml hosts
said "the job file absent.yaml cannot be read"

exit $failed
