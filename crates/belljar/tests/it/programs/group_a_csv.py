import csv
import io
from collections import defaultdict
from datetime import datetime

RAW = """date,category,amount
2024-01-03,food,12.50
2024-01-09,"rent, flat",900
2024-02-01,food,7.25
2024-02-03,,3
"""


def load(text):
    for row in csv.DictReader(io.StringIO(text)):
        yield {**row, "amount": float(row["amount"]), "date": datetime.strptime(row["date"], "%Y-%m-%d").date()}


totals = defaultdict(lambda: defaultdict(float))
for row in load(RAW):
    totals[row["date"].strftime("%Y-%m (%b)")][row["category"] or "unknown"] += row["amount"]
for month, categories in sorted(totals.items()):
    print(f"{month:>14} | " + ", ".join(f"{c}={a:,.2f}" for c, a in sorted(categories.items())))
with open("out.csv", "w", newline="") as file:
    writer = csv.writer(file, quoting=csv.QUOTE_MINIMAL)
    writer.writerow(["month", "total"])
    writer.writerows((m, sum(c.values())) for m, c in totals.items())
print(open("out.csv").read(), dict(totals["2024-01 (Jan)"]))
