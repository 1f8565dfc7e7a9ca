import argparse
import sys


def build():
    parser = argparse.ArgumentParser(prog="tool", description="Does things.")
    parser.add_argument("files", nargs="*", default=["-"])
    parser.add_argument("-n", "--count", type=int, default=1, help="how many (default: %(default)s)")
    parser.add_argument("--mode", choices=["fast", "slow"], default="fast")
    parser.add_argument("-v", "--verbose", action="count", default=0)
    commands = parser.add_mutually_exclusive_group()
    commands.add_argument("--json", action="store_true")
    commands.add_argument("--csv", dest="format", action="store_const", const="csv")
    return parser


def main(argv=None):
    args = build().parse_args(argv)
    print(args)
    return 0 if args.count else 2


print(main([]), main(["a", "b", "-n", "0", "-vv", "--csv"]), len(sys.argv))
build().print_help()
try:
    build().parse_args(["--mode", "odd"])
except SystemExit as error:
    print("exit", error.code)
if __name__ == "__main__":
    sys.exit(main())
