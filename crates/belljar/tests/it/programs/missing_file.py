# refused: No such file or directory: '/data/sales.csv' ... --read /data/sales.csv
import csv

with open("/data/sales.csv") as file:
    print(sum(1 for _ in csv.reader(file)))
