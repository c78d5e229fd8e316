#!/usr/bin/env bash
# What some tests need and no Python package brings: a browser for the page, git for a project's
# history, node and a few packages for a generated client. What is missing is installed where that asks nobody (root, or sudo without a password, on
# Debian and Ubuntu; Homebrew on macOS); otherwise one line says what will not be tested.
set -uo pipefail

have_browser() {
  [ -n "${CHROMIUM:-}" ] && [ -x "${CHROMIUM}" ] && return
  command -v chromium chromium-browser google-chrome >/dev/null 2>&1 && return
  [ -x "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome" ]
}
install() {
  if command -v apt-get >/dev/null; then
    local as=()
    [ "$(id -u)" = 0 ] || as=(sudo -n)
    "${as[@]}" true 2>/dev/null || return 1
    # --no-install-recommends: fonts and drivers that a headless browser has no use for.
    export DEBIAN_FRONTEND=noninteractive
    "${as[@]}" apt-get update -qq >/dev/null 2>&1
    "${as[@]}" apt-get install -y -qq --no-install-recommends "$1" >/dev/null 2>&1
  elif command -v brew >/dev/null; then
    brew install --quiet "$1" >/dev/null 2>&1
  else
    return 1
  fi
}
have_browser || install chromium
have_browser || echo "not tested: the web page (no browser; install chromium, or set CHROMIUM to one)"
command -v git >/dev/null || install git
command -v git >/dev/null || echo "not tested: the history of projects (no git)"
# Packages of node lie beside the environment, and are fetched when the pinned versions change.
have_node() {
  command -v node >/dev/null && command -v npm >/dev/null && [ "$(node -p 'process.versions.node.split(".")[0]')" -ge 18 ]
}
bring_packages() {
  local pinned=tests/client/typescript place=.typescript
  # Written last: what was broken off is begun anew.
  cmp -s $pinned/package-lock.json $place/ready.json && return
  rm -rf $place && mkdir $place && cp $pinned/package.json $pinned/package-lock.json $place || return 1
  (cd $place && npm ci --ignore-scripts --no-audit --no-fund >/dev/null 2>&1) || return 1
  cp $pinned/package-lock.json $place/ready.json
}
have_node || { install nodejs && install npm; }
have_node && bring_packages || echo "not tested: a generated client (no node, or no npm registry)"
exit 0
