#!/bin/sh
# Install the Debian packages that the tests need: a browser for the report pages, OpenGL for the films.
# Silent when nothing is missing; safe to run again; does nothing on systems without apt-get. Never stops a build:
# without them the tests in question are skipped or fail, and say why.
set -eu

missing=""
if ! command -v chromium >/dev/null 2>&1; then
    missing="$missing chromium"
fi
# EGL and its software driver draw films without a screen or a graphics card
for package in libegl1 libgl1-mesa-dri; do
    if command -v dpkg-query >/dev/null 2>&1 &&
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)" != "installed" ]; then
        missing="$missing $package"
    fi
done
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null 2>&1; then
    echo "system-packages: not found:$missing; without apt-get, please install them yourself (Chromium; EGL from Mesa)"
    exit 0
fi
if [ "$(id -u)" -ne 0 ]; then
    echo "system-packages: not found:$missing; tests that need them cannot run. To install them:"
    echo "    sudo apt-get update && sudo apt-get install -y --no-install-recommends$missing"
    exit 0
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "system-packages: installing$missing"
export DEBIAN_FRONTEND=noninteractive
# word splitting of $missing is wanted: one argument a package
# shellcheck disable=SC2086
if ! { apt-get update -q && apt-get install -q -y --no-install-recommends $missing; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "system-packages: could not install$missing; tests that need them cannot run" >&2
fi
