#!/bin/sh
# The loop for a real SO-101 arm, from recordings that others made of one: import, loop, look.
#
#     sh examples/so101/arm.sh RECORDINGS [OUT [FLAGS OF trueup loop ...]]
set -eu
recordings=${1:?name the folder of the recordings, one folder per motion; README.md says where they come from}
out=${2:-out/so101}
shift; [ $# -eq 0 ] || shift

# the last of these is held out: the fit never sees it, and the diagnosis is made on it
motions="multisine chirp_sweep coupled_joints random_waypoints"
logs=""
for motion in $motions; do logs="$logs $out/logs/$motion.mcap"; done

trueup data import "$recordings" --mapping so101 --out "$out/logs"
# shellcheck disable=SC2086  # a list of files
trueup loop so101 --logs $logs --workspace "$out/loop" "$@"
echo "trueup board $out/loop   # the workspace page, served; or open $out/loop/index.html"
