// Node's `perf_hooks`: the clock of the web.
(function (native) {
  "use strict";

  const { performance } = native.global("performance");
  native.offer("perf_hooks", { performance });
});
