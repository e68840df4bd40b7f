"""Writes report-<month>.csv. Plain, with floats for money; for amounts of this size that is still right to the cent."""

import csv
import os

month = os.environ["month"]
orders = {}
for row in csv.DictReader(open("orders.csv", newline="")):
    orders[row["order"]] = row

count = {}
revenue = {}
for row in orders.values():
    if row["date"][:7] == month:
        region = row["region"]
        count[region] = count.get(region, 0) + 1
        revenue[region] = revenue.get(region, 0) + float(row["amount"])

with open(f"report-{month}.csv", "w") as report:
    print("region,orders,revenue", file=report)
    for region in sorted(revenue, key=revenue.get, reverse=True):
        print(f"{region},{count[region]},{revenue[region]:.2f}", file=report)
