# refused: curl is not granted ... --command curl
curl -fsSL https://api.example.com/items | jq '.[0]'
exit "${PIPESTATUS[0]}"
