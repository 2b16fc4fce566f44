# SPDX-License-Identifier: Apache-2.0
"""start.py NAME ARGS...: runs main() of NAME.py beside it.

Python keeps the bytecode of what a program imports, not of the program itself, and the tests start some
thousand peers."""
import sys

if __name__ == '__main__':
    __import__(sys.argv.pop(1)).main()
