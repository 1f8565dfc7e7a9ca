def load(records):
    return [record["name"] for record in records]


print("loading")
print(load([{"name": "a"}, {"nome": "b"}]))
