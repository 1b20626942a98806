#!/usr/bin/env bash
# Shows a first request to a running server and its answer, as ./dev run does.
set -euo pipefail
url=${1:?usage: scripts/first_answer.sh URL}
body='{"messages": [{"role": "user", "content": "What is 7 plus 5?"}], "stream": true}'
options=-N
case $url in https:*) options=-Nk ;; esac # the certificate may be of this machine's own making
printf '\n  $ curl %s %s/v1/chat/completions \\\n      -H "content-type: application/json" \\\n      -d '"'%s'"'\n\n' "$options" "$url" "$body"
printf '  \033[1mWhat is 7 plus 5?\033[0m\n  '
curl -sg "$options" "$url/v1/chat/completions" -H 'content-type: application/json' -d "$body" |
  python3 -uc '
import json, sys
for line in sys.stdin:
    if line.startswith("data: {"):
        event = json.loads(line[6:])
    elif line.startswith("{\"error\""):
        event = json.loads(line)
    else:
        continue
    if "error" in event:
        sys.exit(event["error"]["message"])
    for choice in event["choices"]:
        print(choice["delta"].get("content") or "", end="", flush=True)
' || true # it has said why
printf '\n\n  The server keeps running at %s (Ctrl-C ends it).\n\n' "$url"
