#!/usr/bin/env bash
# A run in shards on one machine, two at a time; a shard that fails or is killed is gone on with by the same command.
#   examples/scale/local.sh TASK MODEL SHARDS OUT
set -euo pipefail
task=$1 model=$2 shards=$3 out=$4

seq "$shards" | xargs -P 2 -I{} aigo-bridge run "$task" --model "$model" --shard "{}/$shards" --out "$out/shards" --resume ||
    echo "some shards have failed samples, or were stopped: the merge says which" >&2
aigo-bridge merge "$out/shards" --out "$out/merged"
