const config = {
  host: process.env.APP_HOST ?? "localhost",
  port: parseInt(process.env.APP_PORT || "3000", 10),
  debug: process.env.DEBUG === "true",
  level: (process.env.LOG_LEVEL as "info" | undefined) ?? "info",
  production: process.env.NODE_ENV === "production",
} as const;
console.log(config, "APP_HOST" in process.env, typeof process.env.APP_PORT);
process.env.APP_PORT = "8080";
console.log(Number(process.env.APP_PORT), delete process.env.APP_PORT, process.env.APP_PORT);
const { APP_TOKEN: token = "none" } = process.env;
console.log(token, process.argv.slice(2), process.exitCode);
