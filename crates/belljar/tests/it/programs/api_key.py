# refused: OPENAI_API_KEY ... --env OPENAI_API_KEY
import os

key = os.environ["OPENAI_API_KEY"]
print(len(key))
