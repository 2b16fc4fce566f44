#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# npx_like.sh COMMAND ARGS...: starts COMMAND as package runners do, below a shell below a shell, and
# leaves a helper that has made a session of its own.
setsid sleep 600 </dev/null >/dev/null 2>&1 &
sh -c '"$@"; exit $?' runner "$@"
exit $?
