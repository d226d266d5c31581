#!/bin/sh
# A hook for before_tool_call of run_command. It reads the request, one line of JSON.
# Exit 0: the command may run. Exit 2: it may not, and stderr is the reason.
if grep -Eq '"command":"[^"]*git push[^"]*(--force|-f )'; then
	echo "Force pushes are for people. Push to a new branch instead." >&2
	exit 2
fi
