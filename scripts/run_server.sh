#!/usr/bin/env bash
# Starts `portico serve`, shows a first request and its answer once the server is ready, and keeps it running, as ./dev run does.
#   scripts/run_server.sh PROGRAM [FLAGS of portico serve]
set -euo pipefail
program=${1:?usage: scripts/run_server.sh PROGRAM [FLAGS]}
shift
here=$(dirname "${BASH_SOURCE[0]}")

# `log` = yes: only the server's log tells its address. It is not a terminal then, and progress comes in lines.
scheme=http host=127.0.0.1 port=30000 log=no certificates=no previous=''
for word in "$@"; do
  case $word in
    --port=*) port=${word#*=} ;;
    --host=*) host=${word#*=} ;;
    --config|--config=*) log=yes ;;
    --ssl-certfile|--ssl-certfile=*) scheme=https ;;
    --ssl-ca-certs|--ssl-ca-certs=*) certificates=yes ;;
  esac
  case $previous in
    --port) port=$word ;;
    --host) host=$word ;;
  esac
  previous=$word
done
[ "$port" = 0 ] && log=yes

# The address at which this machine reaches a server that listens on $host.
url() {
  case $host in
    0.0.0.0) host=127.0.0.1 ;;
    ::|'[::]') host=::1 ;;
  esac
  case $host in
    \[*) ;;
    *:*) host="[$host]" ;;
  esac
  echo "$scheme://$host:$port"
}

server='' reader='' folder='' stopped=no
trap 'stopped=yes; kill -TERM $server 2>/dev/null || true' INT TERM

# Passes the log on, and writes the address that it tells to $folder/address.
read_log() {
  trap '' INT TERM  # the server's last words come behind them
  local line
  while IFS= read -r line || [ -n "$line" ]; do
    printf '%s\n' "$line" >&2
    if [[ $line =~ \ ready:\ (https?)://(.*):([0-9]+)/v1$ ]]; then
      printf '%s\n' "${BASH_REMATCH[@]:1:3}" >"$folder/address.new"
      mv "$folder/address.new" "$folder/address"
    fi
  done <"$folder/log"
}

if [ $log = yes ]; then
  folder=$(mktemp -d)
  mkfifo "$folder/log"
  read_log &
  reader=$!
  "$program" serve "$@" 2>"$folder/log" &
else
  "$program" serve "$@" &
fi
server=$!

# A server that asks for clients' certificates answers none of our requests.
if [ $certificates = no ]; then
  until if [ $log = yes ]; then [ -f "$folder/address" ]; else curl -sgkf -o /dev/null "$(url)/health"; fi; do
    kill -0 $server 2>/dev/null || break
    sleep 0.2
  done
  if [ -f "$folder/address" ]; then { read -r scheme; read -r host; read -r port; } <"$folder/address"; fi
  if kill -0 $server 2>/dev/null; then "$here/first_answer.sh" "$(url)" || true; fi
fi
status=0
while true; do # a signal ends only the waiting
  wait $server && status=0 || status=$?
  kill -0 $server 2>/dev/null || break
done
[ $stopped = no ] || status=0
[ -z "$reader" ] || wait "$reader" || true
[ -z "$folder" ] || rm -rf "$folder"
exit $status
