#!/bin/bash
# Both rewards come from the database as the agent left it.
export PGHOST=db PGUSER=clerk PGPASSWORD=paper PGDATABASE=shop
wrong=$(psql -At -c 'SELECT count(*) FROM orders WHERE late <> (shipped > due)')
column=$([ "$wrong" = 0 ] && echo 1 || echo 0)
answer=$([ "$(cat answer.txt)" = 3 ] && echo 1 || echo 0)
echo "{\"column\": $column, \"answer\": $answer}" > /logs/verifier/reward.json
