#!/usr/bin/env bash
# A PostgreSQL with an empty database `shop` that listens on 127.0.0.1, without passwords: with-folder.sh postgresql.sh PORT
# [FILE]. FILE has statements to begin with, one a line. It refuses to run as root, so it is then started as the user `postgres`, whom
# Debian's package has made.
set -euo pipefail
port=${1:?which port}
first=$(realpath "${2:-/dev/null}")
bin=$(find /usr/lib/postgresql -maxdepth 2 -name bin | sort -V | tail -1)
[ -n "$bin" ] || { echo "PostgreSQL is missing: \`make debian\` installs it" >&2; exit 1; }
as=()
if [ "$(id -u)" = 0 ]; then
  chown postgres "$FOLDER"
  as=(setpriv --reuid postgres --regid postgres --init-groups)
fi
cd "$FOLDER"
"${as[@]}" "$bin/initdb" --pgdata data --username postgres --auth trust --no-sync >install.log 2>&1 || { cat install.log >&2; exit 1; }
echo 'CREATE DATABASE shop' | "${as[@]}" "$bin/postgres" --single -D data postgres >>install.log
"${as[@]}" "$bin/postgres" --single -D data shop <"$first" >>install.log
exec "${as[@]}" "$bin/postgres" -D data -h 127.0.0.1 -p "$port" -k "$FOLDER" -c max_connections=128
