#!/bin/bash
psql -c 'UPDATE orders SET late = shipped > due'
psql -At -c 'SELECT count(*) FROM orders WHERE late' > answer.txt
