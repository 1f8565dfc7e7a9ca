// Node's `os`, as the cell sees it: one processor, its own memory limit, nothing of the machine.
(function (native) {
  "use strict";

  const { architecture } = native;
  const priorities = { PRIORITY_LOW: 19, PRIORITY_BELOW_NORMAL: 10, PRIORITY_NORMAL: 0, PRIORITY_ABOVE_NORMAL: -7, PRIORITY_HIGH: -14, PRIORITY_HIGHEST: -20 };
  const signals = { SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGKILL: 9, SIGUSR1: 10, SIGUSR2: 12, SIGPIPE: 13, SIGALRM: 14, SIGTERM: 15 };
  const errno = { ENOENT: 2, EACCES: 13, EEXIST: 17, ENOTDIR: 20, EISDIR: 21, EINVAL: 22, EMFILE: 24, ENOSPC: 28 };
  native.offer("os", {
    EOL: "\n",
    devNull: "/dev/null",
    constants: { signals, errno, priority: priorities },
    platform: () => "linux",
    type: () => "Linux",
    release: () => "",
    version: () => "",
    machine: () => (architecture === "x64" ? "x86_64" : architecture),
    arch: () => architecture,
    endianness: () => "LE",
    hostname: () => "belljar",
    homedir: () => "/work",
    tmpdir: () => "/tmp",
    uptime: () => native.now() / 1000,
    loadavg: () => [0, 0, 0],
    totalmem: () => native.memoryLimit(),
    freemem: () => Math.max(0, native.memoryLimit() - native.residentBytes()),
    availableParallelism: () => 1,
    cpus: () => [{ model: "", speed: 0, times: { user: 0, nice: 0, sys: 0, idle: 0, irq: 0 } }],
    networkInterfaces: () => ({}),
    userInfo: () => ({ uid: 65534, gid: 65534, username: "nobody", homedir: "/work", shell: null }),
    getPriority: () => 0,
  });
});
