"""Writes report-<month>.csv from orders.csv; the environment variable `month` names the month, such as 2024-03."""

import csv
import os
from collections import defaultdict
from decimal import Decimal

month = os.environ["month"]

with open("orders.csv", newline="", encoding="utf-8") as orders:
    # A later line of an order replaces the earlier one.
    latest = {row["order"]: row for row in csv.DictReader(orders)}

amounts = defaultdict(list)
for row in latest.values():
    if row["date"].startswith(f"{month}-"):
        amounts[row["region"]].append(Decimal(row["amount"]))

with open(f"report-{month}.csv", "w", newline="", encoding="utf-8") as report:
    writer = csv.writer(report, lineterminator="\n")
    writer.writerow(["region", "orders", "revenue"])
    for region, values in sorted(amounts.items(), key=lambda item: -sum(item[1])):
        writer.writerow([region, len(values), f"{sum(values):.2f}"])
