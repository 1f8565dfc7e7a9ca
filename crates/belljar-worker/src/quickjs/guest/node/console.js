// Node's `console` module: the global.
(function (native) {
  "use strict";

  native.offer("console", native.console);
});
