// refused: needs the network ... `context`
const response = await fetch("https://api.example.com/items?limit=10", { headers: { Accept: "application/json" } });
if (!response.ok) throw new Error(`HTTP ${response.status}`);
console.log((await response.json()).length);
