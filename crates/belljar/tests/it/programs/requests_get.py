# refused: api.example.com ... --net api.example.com
import requests

response = requests.get("https://api.example.com/items", timeout=5)
response.raise_for_status()
print(response.json())
