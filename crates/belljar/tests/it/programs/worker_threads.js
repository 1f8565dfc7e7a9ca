// refused: cannot be imported ... no threads
const { Worker, isMainThread } = require("worker_threads");
if (isMainThread) new Worker(__filename).on("message", console.log);
