# Our own case: orders of three months, with what makes such files awkward: commas inside quotes, an order that was
# corrected further down (1003: other amount; 1006: other region), and refunds.
set -euo pipefail

cat > orders.csv <<'ORDERS'
order,date,region,customer,amount
1001,2024-02-27,North,"Birch, Ash and Sons",120.00
1002,2024-03-01,North,Harbour Bakery,80.10
1003,2024-03-02,South,"Lindt, Paul",1000.00
1004,2024-03-05,West,Quarry 7,40.20
1005,2024-03-09,South,Blue Door,19.95
1006,2024-03-11,West,"Moss, Reed",310.00
1007,2024-03-14,North,Harbour Bakery,0.20
1003,2024-03-02,South,"Lindt, Paul",100.00
1008,2024-03-20,West,Quarry 7,-15.25
1009,2024-03-28,East,"Field, ""The Barn""",64.00
1006,2024-03-11,North,"Moss, Reed",310.00
1010,2024-03-31,East,Blue Door,12.34
1011,2024-04-01,South,Harbour Bakery,99.99
1012,2024-04-03,East,"Lindt, Paul",250.50
1013,2024-04-18,South,Blue Door,-9.99
1012,2024-04-03,East,"Lindt, Paul",205.50
ORDERS

cat > test_report.py <<'TEST'
import csv
import os
import unittest


class ReportTest(unittest.TestCase):
    def setUp(self):
        with open(f"report-{os.environ['month']}.csv", newline="") as report:
            self.rows = list(csv.reader(report))

    def test_has_a_header(self):
        self.assertEqual(self.rows[0], ["region", "orders", "revenue"])

    def test_starts_with_the_region_of_the_highest_revenue(self):
        self.assertEqual(self.rows[1], ["North", "3", "390.30"])

    def test_counts_refunds(self):
        self.assertIn(["West", "2", "24.95"], self.rows)
TEST

git init --quiet --initial-branch main
git config user.name Offsite
git config user.email offsite@localhost
git add .
git commit --quiet -m "Orders from February to April"
