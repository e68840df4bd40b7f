#!/bin/bash
# Works as those of database images do: root gives the data folder to the server's user, and then becomes that user.
set -euo pipefail
if [ "$(id -u)" = 0 ]; then
  chown postgres:postgres "$PGDATA"
  exec setpriv --reuid=postgres --regid=postgres --clear-groups "$0" "$@"
fi
chmod 700 "$PGDATA"
initdb --auth-host=scram-sha-256 --username="$POSTGRES_USER" --pwfile=<(echo "$POSTGRES_PASSWORD")
echo 'host all all all scram-sha-256' >> "$PGDATA/pg_hba.conf"
pg_ctl --wait --options="-c listen_addresses='' -c unix_socket_directories=/tmp" start
createdb --host=/tmp --username="$POSTGRES_USER" "$POSTGRES_DB"
for file in /docker-entrypoint-initdb.d/*.sql; do
  psql --host=/tmp --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" < "$file"
done
pg_ctl --wait stop
exec "$@" -c listen_addresses='*' -c unix_socket_directories=/tmp
