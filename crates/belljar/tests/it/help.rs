//! The help texts people read first.

use crate::command::belljar;

#[test]
fn help_shows_the_commands_and_examples() {
    insta::assert_snapshot!(belljar(&["--help"]).stdout, @r"
    Runs the code LLM agents write, sealed in a sandbox that starts in under a millisecond

    Usage: belljar [OPTIONS] <COMMAND>

    Commands:
      run        Run TypeScript, JavaScript, Python or bash in a fresh, sealed cell
      session    Keep a sandbox between runs; checkpoint, roll back and fork it
      workflow   Run workflows of tools, code and decisions that survive crashes
      resume     Go on with a durable run whose process has ended
      runs       Show the durable runs of this project, or delete some
      blob       Print a value that was too large for a result
      tools      List, describe, call and find the tools of MCP servers
      approvals  Decide about tool calls that wait for a person
      audit      Show which tools were called, by whom, and how that was decided
      gc         Remove records that are over and old, and give their room back
      backup     Copy everything that is kept to a file, also while a host runs
      serve      Serve MCP clients: agents run code and call tools through this
      demo       Show the idea in one command: 1.2 MB of commits in, 500 bytes out
      doctor     Find out what this machine can enforce, by trying it
      help       Print this message or the help of the given subcommand(s)

    Options:
          --config <PATH>  Configuration to use instead of the user's belljar.toml
      -v, --verbose...     Log to standard error what is being done (-vv: everything)
      -h, --help           Print help
      -V, --version        Print version

    Examples:
      belljar demo                                   1.2 MB of commits in, 500 bytes out
      belljar run -c 'return 1 + 1'                  run code given on the spot
      belljar run analyse.ts --context @data.json    run a file on data
      belljar workflow run release.yaml              tools, code and decisions; survives crashes
      belljar tools list                             MCP tools that code can call here
      belljar approvals                              tool calls that wait for a decision
      belljar doctor                                 what this machine can enforce
    ");
}

#[test]
fn help_of_run_shows_its_flags_by_kind() {
    insta::assert_snapshot!(belljar(&["run", "--help"]).stdout, @r#"
    Run TypeScript, JavaScript, Python or bash in a fresh, sealed cell

    Usage: belljar run [OPTIONS] [FILE]

    Arguments:
      [FILE]  File with the code; `-` is standard input, also when it is left out in a pipe

    Options:
      -c, --code <CODE>           The code itself, taken literally
      -l, --language <LANGUAGE>   typescript (ts), javascript (js), python (py) or bash (sh) [default:
                                  by file name, else typescript]
          --context <JSON|@FILE>  What the code sees as `context`: JSON, or @FILE (`@-`: standard input)
          --session <ID>          Run it in this session of the host that runs here (`belljar session`)
          --json                  Print the whole result as JSON
          --artifacts <DIR>       Write the files that come back into this directory, which is made if
                                  need be
          --config <PATH>         Configuration to use instead of the user's belljar.toml
      -v, --verbose...            Log to standard error what is being done (-vv: everything)
      -h, --help                  Print help

    Tools:
          --tool <SERVER__TOOL>    Tool the code may use, with * and ? as patterns; no other then, and
                                   nobody is asked about these unless a rule of the policy asks
          --intent <TEXT>          What the code is for, in words: it gets the five tools that fit best,
                                   besides those named with --tool, and no others
          --durable                Keep a journal, so that `belljar resume` can go on after anything
                                   that ends this process
          --max-output-tokens <N>  A value of more than about N tokens is stored, and a summary with a
                                   handle is returned
          --cache[=<TIME>]         Answer from memory what was answered before, if only read-only tools
                                   were called [default: 10m]

    Grants:
          --workspace <DIR>           Directory the code works on a copy-on-write view of, at /work
          --commit                    Bring what it changed to the directory if the run succeeds
          --commit-executable <NAME>  Commit also this, which the host would execute, e.g. .git, .envrc
          --read <PATH>               File or directory the code may read, at its own path
          --write <PATH>              File or directory the code may change, at its own path, right away
          --env <NAME[=VALUE]>        Environment variable for the code; without a value, its value here
          --module <NAME>             Python module or builtin that restricted mode would refuse, e.g.
                                      subprocess, eval
          --command <NAME>            Command beyond the default set, e.g. rm, git
          --permissive                Refuse nothing at the level of Python; the sandbox stays as it is

    Limits:
          --timeout <TIME>       Wall time, e.g. 300ms, 30s, 5m [default: 30s]
          --cpu <TIME>           CPU time [default: the wall time]
          --memory <SIZE>        Memory, e.g. 64MiB, 1GiB [default: 512MiB]
          --max-code <SIZE>      Size of the code [default: 50KB]
          --max-context <SIZE>   Size of the context [default: 64MiB]
          --max-output <SIZE>    Output kept per stream [default: 64KiB]
          --max-result <SIZE>    Size of the value [default: 16MiB]
          --processes <N>        Processes and threads [default: 32]
          --disk <SIZE>          Files the code may write in all [default: 256MiB]
          --max-tool-calls <N>   Tool calls [default: 100]
          --tool-timeout <TIME>  Wall time of one tool call [default: 30s]

    Examples:
      belljar run -c '[1, 2, 3].map(n => n * n)'
      belljar run report.ts --context '{"year": 2026}' --timeout 5s --memory 64MiB
      curl -s https://example.org/data.json | belljar run -c 'context.length' --context @-
      echo 'return 6 * 7' | belljar run - --json
      belljar run -l python -c 'sum(range(10))'
      belljar run fix.py --workspace . --commit      let it edit this directory, if it succeeds
      belljar run -l bash -c 'wc -l /work/*.md' --workspace docs
      belljar run -c 'await mcp.fs.readTextFile({path: "a.txt"})' --tool 'fs__read_*'
      belljar run sum.ts --intent 'read files'       with the tools that fit; `tools search` shows which
      belljar run migrate.py --durable               `belljar resume` goes on after a crash

    The value is what the code returns, or else its last expression; of a shell script, its last line if
    that is JSON. Beyond what is granted, the code sees no file, no network, no environment and no other
    process. Exit status: 0 if the run succeeded, 1 if it failed, 2 if the
    arguments make no sense, 130 if it was interrupted.
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
