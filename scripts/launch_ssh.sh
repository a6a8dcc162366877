#!/usr/bin/env bash
# launch_ssh.sh JOB.yaml HOSTS [flags for every role]
#
# Runs a job's scheduler here and its servers and workers on the machines of the file HOSTS, one per line:
#     server HOST [ADDRESS]     HOST is an argument for ssh; others reach the role at ADDRESS (default: HOST's address)
#     worker HOST [ADDRESS]
# Every machine needs the program and the job file at the same paths as here. Ctrl-C stops all roles cleanly. The exit
# code is the scheduler's. See docs/multi-machine.md.
#
#   DOVETAIL_ADDRESS  address at which others reach the scheduler (default: tcp://<this machine's address>:4700)
#   DOVETAIL          the program (default: build/release/dovetail)
#   DOVETAIL_SSH      command to use instead of ssh, with options
set -uo pipefail

fail() {
  echo "launch_ssh: $*" >&2
  exit "${code:-2}"
}

[[ $# -ge 2 ]] || fail "usage: launch_ssh.sh JOB.yaml HOSTS [flags for every role]"
job=$1 hosts=$2
shift 2
[[ -r $job ]] || fail "the job file $job cannot be read"
[[ -r $hosts ]] || fail "the file of hosts $hosts cannot be read"
dovetail=${DOVETAIL:-$(cd "$(dirname "$0")/.." && pwd)/build/release/dovetail}
[[ -x $dovetail ]] || fail "$dovetail does not exist; build it: cmake --workflow --preset release"
address=${DOVETAIL_ADDRESS:-tcp://$(hostname -I 2>/dev/null | awk '{print $1}'):4700}
[[ $address =~ ^tcp://.+:[0-9]+$ ]] || fail "DOVETAIL_ADDRESS is '$address'; needs tcp://HOST:PORT"
read -ra ssh <<<"${DOVETAIL_SSH:-ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=5 -o ServerAliveCountMax=3}"

# Prints the IPv4 address of a host as seen from here, because on the host itself its name often means 127.0.1.1.
# Prints the name if it has no address.
number_of() {
  local found
  found=$(getent ahostsv4 "$1" </dev/null | awk 'NR == 1 {print $1}')
  echo "${found:-$1}"
}

roles=() machines=() addresses=()
line_number=0
while read -r role machine reached rest || [[ -n $role ]]; do
  line_number=$((line_number + 1))
  [[ -z $role || $role == \#* ]] && continue
  [[ $role == server || $role == worker ]] || fail "$hosts:$line_number: '$role' is neither server nor worker"
  [[ -n $machine ]] || fail "$hosts:$line_number: no host"
  [[ -z $rest || $rest == \#* ]] || fail "$hosts:$line_number: '$rest' is too much; ROLE HOST [ADDRESS]"
  roles+=("$role") machines+=("$machine") addresses+=("${reached:-$(number_of "${machine#*@}")}")
done <"$hosts"
count_of() { printf '%s\n' "${roles[@]}" | grep -c "^$1\$"; }
counted() { if (($1 == 1)); then echo "1 $2"; else echo "$1 $2s"; fi; }
servers=$(count_of server) workers=$(count_of worker)
((servers > 0 && workers > 0)) ||
  fail "$hosts names $(counted "$servers" server) and $(counted "$workers" worker); needs one of each"

# All processes must have the same job, so all of them are given the counts.
common=("$job" --set "cluster.servers=$servers" --set "cluster.workers=$workers")
# Only the scheduler gets --result: in a shared folder the files of other roles would overwrite its file.
result=()
while (($# > 0)); do
  case $1 in
    --result) result=("$1" "${2-}"); shift ;;
    --result=*) result=("$1") ;;
    *) common+=("$1") ;;
  esac
  shift $(($# > 0))
done
scratch=$(mktemp -d)
pids=() names=() pipes=() done_=()
scheduler_code=

# The key of this run, two lines, which is sent to every machine through its ssh connection. Empty if the job names its
# own key.
key=
if ! grep -q '^security:' "$job" && [[ "${common[*]}" != *security.* ]]; then
  "$dovetail" keygen "$scratch/job" </dev/null >/dev/null || fail "no key could be made"
  key=$(<"$scratch/job.key")
fi

# Runs on each machine: reads the key ("key" and two lines) or "start" from standard input, and runs the role. Another
# line, or the end of the input (a lost connection), stops the role. The signal is TERM, because background processes of
# a shell ignore INT.
# shellcheck disable=SC2016
remote_script='cd "$0" || exit 126
read -r word || exit 1
if [ "$word" = key ]; then
  umask_before=$(umask); umask 077; key=$(mktemp) || exit 1; umask "$umask_before"
  trap "rm -f $key" EXIT
  read -r public; read -r secret; printf "%s\n%s\n" "$public" "$secret" >"$key"
  set -- "$@" --set "security.curve.key=$key"
fi
exec 3<&0
"$@" </dev/null 3<&- & child=$!
{ read -r _ <&3; kill "$child"; } 2>/dev/null & watcher=$!
wait "$child"; code=$?
kill "$watcher" 2>/dev/null
exit "$code"'

# start NAME COMMAND…: starts a role in a separate session, so that the terminal's Ctrl-C reaches this script only. Only
# this script holds the other end of a role's input: however the script ends, the roles' inputs end, and they stop.
start() {
  local name=$1 pipe
  shift
  mkfifo "$scratch/${#pids[@]}"
  exec {pipe}<>"$scratch/${#pids[@]}"
  (
    exec <"$scratch/${#pids[@]}"
    for held in "${pipes[@]}" "$pipe" "$timer"; do exec {held}>&-; done
    exec setsid "$@" > >(exec sed -u "s|^|$name: |") 2>&1
  ) &
  pids+=($!) names+=("$name") pipes+=("$pipe") done_+=("")
  if [[ -n $key ]]; then printf 'key\n%s\n' "$key"; else echo start; fi >&"$pipe"
}

# Tells all that still run to stop.
stop() {
  local i
  for i in "${!pids[@]}"; do
    [[ -n ${done_[i]} ]] || echo stop >&"${pipes[i]}"
  done
}

# await_all SECONDS: waits for all to end, at most so long; false if some still run.
await_all() {
  local deadline=$((SECONDS + $1))
  while ((SECONDS < deadline)) && running; do wait_for_change; done
  ! running
}

# end SECONDS: as await_all; then cuts the connections, which ends what is left.
end() {
  local i
  await_all "$1" && return
  for i in "${!pids[@]}"; do
    [[ -n ${done_[i]} ]] && continue
    echo "launch_ssh: ${names[i]} did not stop in time; its connection is cut" >&2
    kill -KILL "${pids[i]}" 2>/dev/null
  done
}

running() {
  local i
  for i in "${!pids[@]}"; do [[ -n ${done_[i]} ]] || return 0; done
  return 1
}

# Waits a moment; records which roles have ended, and reports those that failed.
wait_for_change() {
  local i
  read -r -t 0.2 -u "$timer" _ || true
  for i in "${!pids[@]}"; do
    [[ -n ${done_[i]} ]] && continue
    kill -0 "${pids[i]}" 2>/dev/null && continue
    wait "${pids[i]}"
    done_[i]=$?
    ((i == 0)) && scheduler_code=${done_[0]}
    ((done_[i] == 0)) || [[ -n $stopping ]] || explain "${names[i]}" "${done_[i]}"
  done
}

# Explains a role's exit code. Errors that will not go away end the job; for others the scheduler decides.
explain() {
  local hopeless=1
  case $2 in
    255) echo "launch_ssh: $1 cannot be reached by ssh; stopping" >&2 ;;
    126 | 127) echo "launch_ssh: $1 has no directory $PWD or no program $dovetail; stopping" >&2 ;;
    2) echo "launch_ssh: $1 refused the job's configuration; stopping" >&2 ;;
    3) echo "launch_ssh: $1 met bad data; stopping" >&2 ;;
    *) echo "launch_ssh: $1 ended with code $2" >&2; hopeless='' ;;
  esac
  [[ -z $hopeless ]] || gave_up=$2
}

stopping='' gave_up=''
mkfifo "$scratch/timer"
exec {timer}<>"$scratch/timer"
trap 'stopping=130; stop' INT
trap 'stopping=143; stop' TERM HUP
trap 'stop; end 10; rm -rf "$scratch"' EXIT

local_run=(sh -c "$remote_script" "$PWD" "$dovetail")
start scheduler "${local_run[@]}" scheduler "${common[@]}" "${result[@]}" --listen "$address"
for i in "${!roles[@]}"; do
  command=$(printf '%q ' sh -c "$remote_script" "$PWD" "$dovetail" "${roles[i]}" "${common[@]}" \
    --scheduler "$address" --listen "tcp://${addresses[i]}:0")
  start "${roles[i]} ${machines[i]}" "${ssh[@]}" "${machines[i]}" "$command"
done

while [[ -z $scheduler_code && -z $stopping && -z $gave_up ]]; do wait_for_change; done
if [[ -n $gave_up && -z $stopping ]]; then
  stopping=$gave_up
  stop
fi
# Roles that do not know yet that the scheduler has ended would wait for it to come back.
await_all 5 || stop
end 30
exit "${stopping:-${scheduler_code:-1}}"
