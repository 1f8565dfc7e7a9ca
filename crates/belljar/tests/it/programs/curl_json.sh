# refused: curl ... no network
curl -fsSL https://api.example.com/items | jq '.[0]'
exit "${PIPESTATUS[0]}"
