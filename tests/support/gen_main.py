#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a cmocka main() for the TEST(...) functions of one source file."""
import re
import sys

source, output = sys.argv[1:3]
names = re.findall(r'^TEST\((\w+)\)', open(source, encoding='utf-8').read(), re.M)
if not names:
    sys.exit(f'{source}: no TEST(...) found')
with open(output, 'w', encoding='utf-8') as out:
    out.write('#include <stdarg.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <setjmp.h>\n#include <stdio.h>\n#include <cmocka.h>\n')
    for name in names:
        out.write(f'void {name}(void **state);\n')
    out.write('int main(void)\n{\n    const struct CMUnitTest tests[] = {\n')
    for name in names:
        out.write(f'        cmocka_unit_test({name}),\n')
    # Whole lines, so that results and log lines of one file are not mixed.
    out.write('    };\n    setvbuf(stdout, NULL, _IOLBF, 0);\n    return cmocka_run_group_tests(tests, NULL, NULL);\n}\n')
