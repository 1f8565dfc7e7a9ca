# refused: python3 ... --command python3
python3 -c 'import json; print(json.dumps({"a": 1}))'
