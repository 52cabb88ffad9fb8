#!/usr/bin/env bash
# A MariaDB that is empty and listens on 127.0.0.1, without passwords: with-folder.sh mariadb.sh PORT.
set -euo pipefail
user=$(id -un)
mysql_install_db --no-defaults --user="$user" --datadir="$FOLDER/data" --auth-root-authentication-method=normal --skip-test-db \
  >"$FOLDER/install.log" 2>&1 || { cat "$FOLDER/install.log" >&2; exit 1; }
exec mariadbd --no-defaults --user="$user" --datadir="$FOLDER/data" --socket="$FOLDER/socket" --pid-file="$FOLDER/pid" \
  --bind-address=127.0.0.1 --port="${1:?which port}" --skip-name-resolve --skip-grant-tables --skip-log-bin --max-connections=256
