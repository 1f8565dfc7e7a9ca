import sqlite3
from contextlib import closing

with closing(sqlite3.connect("shop.db")) as db:
    db.row_factory = sqlite3.Row
    db.executescript("create table customer(id integer primary key, name text unique); create table sale(customer_id int references customer, total real);")
    with db:
        db.executemany("insert into customer(name) values (?)", [("Ana",), ("Bo",)])
        db.executemany("insert into sale values (:who, :total)", [{"who": 1, "total": 9.5}, {"who": 1, "total": 3}, {"who": 2, "total": 1}])
    rows = db.execute("select name, count(*) n, sum(total) total from customer join sale on customer_id = id group by name order by total desc").fetchall()
    print([dict(row) for row in rows], rows[0].keys(), tuple(rows[1]))
    try:
        with db:
            db.execute("insert into customer(name) values ('Cy')")
            db.execute("insert into customer(name) values ('Ana')")
    except sqlite3.IntegrityError as error:
        print("IntegrityError", error, db.execute("select count(*) from customer").fetchone()[0])
    db.create_function("shout", 1, lambda text: text.upper() + "!")
    print(db.execute("select shout(name), json_extract('{\"a\": [1, 2]}', '$.a[1]') from customer").fetchall()[0][:], db.total_changes)
    print([line for line in db.iterdump() if "sale" in line][:2])
with closing(sqlite3.connect("shop.db")) as again:
    print(again.execute("select name, row_number() over (order by name desc) from customer").fetchall(), again.execute("pragma table_info(sale)").fetchall())
