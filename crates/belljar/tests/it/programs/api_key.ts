// refused: OPENAI_API_KEY is not set ... --env OPENAI_API_KEY
const key = process.env.OPENAI_API_KEY;
if (!key) throw new Error("OPENAI_API_KEY is not set");
console.log(key.length);
