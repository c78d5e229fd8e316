#!/usr/bin/env bash
# What some tests need and no Python package brings: a browser for the page, git for a project's
# history. What is missing is installed where that asks nobody (root, or sudo without a password, on
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
exit 0
