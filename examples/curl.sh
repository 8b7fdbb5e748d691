#!/usr/bin/env bash
# Stores, lists, gets and deletes a document over REST: POST /api/v1/tools/{name}, arguments in, reply out.
#
#   BASE=http://127.0.0.1:7433 TOKEN=pat_live_... examples/curl.sh
#
# BASE is the address of `shelf serve --http` (the default is its default). TOKEN may be left out when the
# server was started with --no-auth.
set -eu

base="${BASE:-http://127.0.0.1:7433}"
name="examples/curl.txt"

# call TOOL ARGUMENTS: prints the reply; fails when the server answers with an error.
call() {
    if [ -n "${TOKEN:-}" ]; then
        curl --silent --show-error --fail-with-body --header "Authorization: Bearer $TOKEN" \
            --header "Content-Type: application/json" --data "$2" "$base/api/v1/tools/$1"
    else
        curl --silent --show-error --fail-with-body \
            --header "Content-Type: application/json" --data "$2" "$base/api/v1/tools/$1"
    fi
    echo
}

echo "== add"
call add "{\"content\": \"Call the printer on Monday.\", \"name\": \"$name\", \"tags\": [\"example\"]}"

echo "== list"
call list '{"tags": ["example"], "paths_only": true}'

echo "== get"
reply="$(call get "{\"name\": \"$name\", \"include_content\": true}")"
echo "$reply"
case "$reply" in
    *'"content":"Call the printer on Monday."'*) ;;
    *) echo "the content did not come back as it was stored" >&2; exit 1 ;;
esac

echo "== delete_by_name"
call delete_by_name "{\"name\": \"$name\"}"
