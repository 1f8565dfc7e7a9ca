//! Lines and columns are those of the code as written (A7).

use belljar_contract::{ErrorCode, Language};
use belljar_wire::RunCommand;

use crate::harness::{command, run, run_command};

/// A7: the line of a throw, under all that is stripped or moved by the transpiler.
#[test]
fn lines_survive_the_transpiler() {
    let before = "interface Row {
  id: number;
  name?: string;
}
type Id = Row['id'];
enum Colour { Red = 'red', Green = 'green' }
const enum Flag { A = 1 << 0, B = 1 << 1 }
namespace Shapes {
  export const sides = { square: 4 };
  export function area(w: number): number { return w * sides.square }
}
abstract class Base<T> { abstract run(x: T): void }
class Impl extends Base<Row> {
  constructor(private readonly label: string, public count = 0) { super() }
  run(row: Row): void {
    const checked = { ...row } satisfies Row;
    if ((checked as any).id! > 1) {
";
    let after = "
    }
  }
}
function helper(this: void, rows: readonly Row[]): void {
  for (const row of rows) new Impl(Colour.Red).run(row);
}
helper([{ id: Flag.B }]);
";
    let throwing = "      throw new Error(`bad ${this.label}`);";
    let outcome = run(&format!("{before}{throwing}{after}"));
    let error = outcome.failure();
    assert_eq!(outcome.place(), (ErrorCode::RuntimeThrown, "Error: bad red", Some(18), Some(13)));
    let stack = "    at run (main.ts:18:13)\n    at helper (main.ts:23:48)\n    at main.ts:25:1";
    assert_eq!(error.stack.as_deref(), Some(stack));
}

/// A7: errors are placed where they happen, whatever stands before them on the line.
#[test]
fn columns_count_characters() {
    for (code, line, column) in [
        ("throw new Error('x')", 1, 7),
        ("const é = '😀😀'; throw new Error(é)", 1, 23),
        ("/* 😀 */ null.x", 1, 9),
        ("\t\tnull.x", 1, 3),
        ("\r\n\r\nnull.x", 3, 1),
        ("const a: Array<string> = []; a[0].length", 1, 30),
        ("let x = 1,\n    y = x.z.w;", 2, 9),
        ("throw new Error(\n  'long ' +\n  1\n)", 1, 7),
        ("await (async () => {\n  await null;\n  null.x })()", 3, 3),
        ("const f = () => {\n\n  return missing };\nf()", 3, 10),
    ] {
        let outcome = run(code);
        let (_, _, at_line, at_column) = outcome.place();
        assert_eq!((at_line, at_column), (Some(line), Some(column)), "{code}");
    }
}

/// A7: frames are those of the agent's functions, callbacks of built-ins included.
#[test]
fn frames_are_the_agents_own() {
    let code = "const double = (x: number) => {
  if (x > 1) throw new Error('too big');
  return x * 2;
};
class Runner {
  go() { return [1, 2].map(double) }
  static async start() { return new Runner().go() }
}
await Runner.start();";
    let stack = "    at double (main.ts:2:20)\n    at go (main.ts:6:24)\n    at start \
        (main.ts:7:46)\n    at main.ts:9:14";
    assert_eq!(run(code).failure().stack.as_deref(), Some(stack));
}

/// A7: the file's name is the caller's, even when it looks like nothing.
#[test]
fn the_file_name_is_the_callers() {
    for name in ["main.ts", "dir/my file (1).ts", "é:1:2", ""] {
        let run = run_command(RunCommand { file_name: name.into(), ..command("\nnull.x") });
        let stack = format!("    at {name}:2:1");
        assert_eq!(run.failure().stack.as_deref(), Some(&*stack), "{name:?}");
    }
}

/// A7: JavaScript has its own lines too.
#[test]
fn javascript_is_mapped_too() {
    let code = "// comment\n\n\nconst f = () => null.x // more\n\nf()";
    let command = RunCommand { language: Language::JavaScript, ..command(code) };
    let outcome = run_command(command);
    assert_eq!(outcome.place().2, Some(4));
}
