#!/usr/bin/env bash
# Goal: bash completion offers exactly what the program accepts. Method: the real program's script
# is sourced and asked as bash asks it; offered flags are compared with those in the command's help,
# in both directions.
set -uo pipefail
dovetail=$1
failed=0
script=$("$dovetail" completion bash) || exit 1
eval "$script"

# offers WORD…: prints the completions of the last word, one per line.
offers() {
  COMP_WORDS=(dovetail "$@") COMP_CWORD=$#
  COMPREPLY=()
  _dovetail
  printf '%s\n' "${COMPREPLY[@]}"
}
expect() {
  [[ $1 == "$2" ]] && return
  failed=1
  echo "FAILED: $3: '$1' instead of '$2'"
}
flags_in() { grep -oE -- '--[a-z][a-z-]*' | sort -u; }

expect "$(offers tr)" train "a command"
expect "$(offers bench tra | sort | tr '\n' ' ')" "train transport " "a command of a command"
expect "$(offers train job.yaml --res | sort | tr '\n' ' ')" "--result --resume " "flags"
expect "$(offers train job.yaml --resume '' | sort | tr '\n' ' ')" "auto never " "values"
expect "$(offers plan job.yaml --format d)" dot "values that the library checks"
expect "$(offers plan job.yaml --log-level e)" error "values"
expect "$(offers train job.yaml --result '')" "" "a name of a file is bash's to complete"
expect "$(offers train jo)" "" "likewise"
expect "$(offers completion b)" bash "a value in its place"
expect "$(offers scheduler --ch)" "" "a hidden flag"

for command in $(offers '' | grep -v '^-'); do
  below=$(offers "$command" '' | grep -v '^-')
  # These completions are values and not subcommands.
  [[ $command != completion && $command != schema ]] || below=
  if [[ -z $below ]]; then
    expect "$(offers "$command" -- | sort -u)" "$("$dovetail" "$command" --help | sed '/^Example/,$d' | flags_in)" "$command"
  fi
  for sub in $below; do
    expect "$(offers "$command" "$sub" -- | sort -u)" \
      "$("$dovetail" "$command" "$sub" --help | sed '/^Example/,$d' | flags_in)" "$command $sub"
  done
done
exit $failed
