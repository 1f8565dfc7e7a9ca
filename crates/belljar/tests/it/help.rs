//! The help texts people read first.

use crate::command::belljar;

#[test]
fn help_shows_the_commands_and_examples() {
    insta::assert_snapshot!(belljar(&["--help"]).stdout, @r"
    Runs the code LLM agents write, sealed in a sandbox that starts in under a millisecond

    Usage: belljar [OPTIONS] <COMMAND>

    Commands:
      run        Run TypeScript, JavaScript, Python or bash in a fresh, sealed cell
      session    Keep a sandbox alive between runs; checkpoint, roll back and fork it
      workflow   Run workflows of tools, code and decisions that survive crashes
      resume     Resume a durable run whose process has ended
      runs       List the durable runs of this project, or delete some
      blob       Print a value that was too large for a result
      tools      List, describe, call and search the tools of MCP servers
      approvals  Decide about tool calls that wait for approval
      audit      Show tool calls with their callers and decisions
      gc         Remove old records and free their space
      backup     Copy the whole store to a file, also while a host is running
      serve      Serve MCP clients: agents run code and call tools through Belljar
      demo       Show the idea in one command: 1.2 MB of commits in, 500 bytes out
      doctor     Test which layers of isolation this machine can enforce
      help       Print this message or the help of the given subcommand(s)

    Options:
          --config <PATH>    Configuration to use instead of the user's belljar.toml
          --state-dir <DIR>  Directory of the project's state, e.g. if the project is read-only
                             [default: BELLJAR_STATE_DIR, else .belljar in the project]
          --color <WHEN>     Colours: auto, always or never; `auto` follows NO_COLOR and CLICOLOR_FORCE
      -v, --verbose...       Log to standard error (-vv: everything)
      -h, --help             Print help
      -V, --version          Print version

    Examples:
      belljar demo                                   1.2 MB of commits in, 500 bytes out
      belljar run -c 'return 1 + 1'                  run code from the command line
      belljar run analyse.ts --context @data.json    run a file on data
      belljar workflow run release.yaml              tools, code and decisions; survives crashes
      belljar tools list                             MCP tools that code can call here
      belljar approvals                              tool calls that wait for a decision
      belljar doctor                                 what this machine can enforce
    ");
}

#[test]
fn help_of_run_shows_its_flags_by_kind() {
    let help = belljar(&["run", "--help"]).stdout;
    let (flags, _) = help.split_once("\n\nLimits:").unwrap();
    insta::assert_snapshot!(flags, @r"
    Run TypeScript, JavaScript, Python or bash in a fresh, sealed cell

    Usage: belljar run [OPTIONS] [FILE] [-- <ARGUMENT>...]

    Arguments:
      [FILE]         File with the code; `-` or a pipe without FILE reads standard input
      [ARGUMENT]...  Arguments for the code, after `--`: sys.argv, process.argv, $1

    Options:
      -c, --code <CODE>           Code to run
      -l, --language <LANGUAGE>   typescript (ts), javascript (js), python (py) or bash (sh) [default:
                                  by file name or engine, else typescript]
          --engine <NAME>         Engine to run it on [default: by language, see `[engines]` in
                                  belljar.toml] [possible values: quickjs, cpython, bash]
          --context <JSON|@FILE>  Value of `context` in the code: JSON, or @FILE (`@-`: standard input)
          --session <ID>          Run in this session of the running host (see `belljar session`)
          --json                  Print the whole result as JSON
          --artifacts <DIR>       Write returned files into this directory, which is created if needed
          --config <PATH>         Configuration to use instead of the user's belljar.toml
          --state-dir <DIR>       Directory of the project's state, e.g. if the project is read-only
                                  [default: BELLJAR_STATE_DIR, else .belljar in the project]
          --color <WHEN>          Colours: auto, always or never; `auto` follows NO_COLOR and
                                  CLICOLOR_FORCE
      -v, --verbose...            Log to standard error (-vv: everything)
      -h, --help                  Print help

    Tools:
          --tool <SERVER__TOOL>    Tool the code may use, with * and ? as wildcards. The code then has
                                   no other tools, and these need no approval unless a policy rule asks
          --intent <TEXT>          Purpose of the code, in words. The code gets the five best-matching
                                   tools, those named with --tool, and no others
          --durable                Keep a journal, so that `belljar resume` can continue after any end
                                   of this process
          --no-durable             Keep no journal even if a tool may ask: the clock runs as usual, and
                                   the run ends with this process [default: durable if a tool may ask]
          --no-wait                Fail at a tool call that needs approval, instead of waiting for a
                                   decision
          --max-output-tokens <N>  Store a value of more than about N tokens, and return a summary with
                                   a handle
          --cache[=<TIME>]         Reuse an earlier answer to the same code if it called only read-only
                                   tools [default: 10m]

    Grants:
          --workspace <DIR>           Directory that the code sees as /work, copy-on-write
          --commit                    Write the changes to the workspace directory if the run succeeds
          --commit-executable <NAME>  Also commit this name, which the host would execute, e.g. .git,
                                      .envrc
          --read <PATH>               File or directory the code may read, at the same path
          --write <PATH>              File or directory the code may change directly, at the same path
          --net <HOST[:PORT]>         Host the code may reach: a name, *.NAME or an address
          --env <NAME[=VALUE]>        Environment variable for the code; without VALUE, its current
                                      value
          --module <NAME>             Python module or builtin that restricted mode refuses, e.g.
                                      subprocess, eval
          --command <NAME>            Command beyond the default set, e.g. rm, git
          --permissive                Lift Python's restricted mode; the sandbox itself stays
    ");
}

#[test]
fn a6_help_of_run_shows_the_limits() {
    let help = belljar(&["run", "--help"]).stdout;
    let (flags, _) = help.split_once("\nExamples:").unwrap();
    let (_, limits) = flags.split_once("\nLimits:\n").unwrap();
    insta::assert_snapshot!(limits, @r"
          --timeout <TIME>        Wall time, e.g. 300ms, 30s, 5m [default: 30 s]
          --cpu <TIME>            CPU time [default: the wall time]
          --memory <SIZE>         Memory, e.g. 64MiB, 1GiB [default: 512 MiB]
          --max-code <SIZE>       Size of the code [default: 50,000 bytes]
          --max-context <SIZE>    Size of the context [default: 64 MiB]
          --max-output <SIZE>     Output kept per stream [default: 64 KiB]
          --max-result <SIZE>     Size of the value [default: 16 MiB]
          --processes <N>         Processes and threads [default: 32]
          --open-files <N>        Open files [default: 256]
          --disk <SIZE>           Total size of files the code may write [default: 256 MiB]
          --inodes <N>            Files in /work and /tmp [default: 50,000]
          --max-tool-calls <N>    Tool calls [default: 100]
          --tool-timeout <TIME>   Wall time of one tool call [default: 30 s]
          --max-net <N>           Network connections [default: 64]
          --max-net-bytes <SIZE>  Network bytes, each way [default: 1 GiB]
    ");
}

#[test]
fn help_of_run_has_examples_and_says_what_the_value_is() {
    let help = belljar(&["run", "--help"]).stdout;
    let (_, examples) = help.split_once("\nExamples:\n").unwrap();
    insta::assert_snapshot!(examples, @r#"
      belljar run -c '[1, 2, 3].map(n => n * n)'
      belljar run report.ts --context '{"year": 2026}' --timeout 5s --memory 64MiB
      curl -s https://example.org/data.json | belljar run -c 'context.length' --context @-
      echo 'return 6 * 7' | belljar run - --json
      belljar run resize.py -- in.png 640            arguments for the code: sys.argv[1:]
      belljar run -l python -c 'sum(range(10))'
      belljar run --engine quickjs -c '1 + 1'        instead of the engine that belljar.toml names
      belljar run fix.py --workspace . --commit      edit this directory if the run succeeds
      belljar run -l bash -c 'wc -l /work/*.md' --workspace docs
      belljar run -c 'await mcp.fs.readTextFile({path: "a.txt"})' --tool 'fs__read_*'
      belljar run sum.ts --intent 'read files'       with matching tools, as `tools search` shows them
      belljar run migrate.py --durable               `belljar resume` continues after a crash

    The value is the return value of the code, or its last expression; for a shell script, its last line
    if that is JSON. Without grants the code sees no file, no network, no environment and no other
    process. Exit status: 0 if the run succeeded, 1 if it failed, 2 if the arguments are invalid, 130 if
    it was interrupted.
    "#);
}

#[test]
fn the_version_is_the_packages() {
    let version = format!("belljar {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(belljar(&["--version"]).stdout, version);
}

#[test]
fn no_command_at_all_shows_help_and_fails() {
    let outcome = belljar(&[]);
    assert_eq!((outcome.status, outcome.stdout.as_str()), (Some(2), ""));
}
