# refused: import pickle is refused ... json
import pickle

print(pickle.loads(pickle.dumps({"a": 1})))
