#!/usr/bin/env bash
# The broker of a queue: with-folder.sh queue.sh QUEUE PORT PORT. The first port is the one that clients are told.
set -euo pipefail
case ${1:?which queue: kafka, rocketmq-push or rocketmq-pull} in
  kafka) part=kafka.sh ;;
  rocketmq-*) part=rocketmq.sh ;;
  *) echo "there is no queue \`$1\`: kafka, rocketmq-push or rocketmq-pull" >&2; exit 2 ;;
esac
shift
exec "$(dirname "$0")/$part" "$@"
