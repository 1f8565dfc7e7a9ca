cat > orders.json <<'JSON'
[{"id": 1, "customer": "ana", "total": 12.5, "tags": ["a", "b"]}, {"id": 2, "customer": "bo", "total": 3, "tags": []}, {"id": 3, "customer": "ana", "total": 7}]
JSON
jq -r '.[] | [.id, .customer, (.total | tostring)] | @csv' orders.json
jq 'group_by(.customer) | map({customer: .[0].customer, total: (map(.total) | add), n: length})' orders.json
jq -c '[.[] | select(.total > 5) | {id, tag: (.tags[0] // "none")}]' orders.json
jq --arg who bo '.[] | select(.customer == $who).total' orders.json
