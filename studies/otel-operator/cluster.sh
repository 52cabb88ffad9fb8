#!/usr/bin/env bash
# Starts the cluster of scripts/cluster with the OpenTelemetry Operator, and gives it the image and the account of this study. As root; wants Go and
# what `make build` makes.
set -euo pipefail
cd "$(dirname "$0")/../.."
unladen=target/release/unladen
cluster=scripts/cluster/cluster.py
$cluster start --share
$cluster operator
$cluster image $unladen unladen-study/shop:1
account=$($cluster account)
# What deploy/kubernetes does not allow: objects of the operator's kind.
KUBECONFIG=$account $unladen doctor studies/otel-operator --role | KUBECONFIG=target/cluster/kubeconfig target/cluster/bin/kubectl apply -f -
echo "Now: KUBECONFIG=$account $unladen run studies/otel-operator"
