#!/usr/bin/env bash
# Makes docs/src/images/demo.png: the part "Bandwidth shares" of a demo's report, in the light theme.
#   narrows demo --out out/demo && docs/picture.sh out/demo/report.html
set -euo pipefail
report=${1:?usage: docs/picture.sh REPORT.html}
image=$(cd "$(dirname "$0")" && pwd)/src/images/demo.png
page=$(mktemp --suffix=.html)
trap 'rm -f "$page"' EXIT
# The other parts are hidden, so that a screenshot of the top of the page is this part alone.
style='<style>
  body > *:not(main), main > *:not(#rates), .page > *:not(main) { display: none !important; }
  html, body, main { margin: 0 !important; padding: 0 !important; }
  #rates { margin: 0 !important; border: 0 !important; border-radius: 0 !important; }
</style>'
awk -v style="$style" '{ if (!done && sub("</head>", style "</head>")) done = 1; print }' "$report" > "$page"
chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --force-device-scale-factor=2 \
  --blink-settings=preferredColorScheme=1 --window-size="${SIZE:-1280,490}" --virtual-time-budget=5000 \
  --screenshot="$image" "file://$page" 2>/dev/null
ls -l "$image"
