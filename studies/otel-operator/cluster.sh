#!/usr/bin/env bash
# Starts the cluster of scripts/cluster with the OpenTelemetry Operator, and gives it the images and the account of this study. As root; wants
# Go, a JDK 17 and what `make shop` makes.
set -euo pipefail
cd "$(dirname "$0")/../.."
made=target/otel-operator
cluster=scripts/cluster/cluster.py
[ -e target/shop/.made ] || make shop
rm -rf $made
mkdir -p $made
# A service needs a fifth of what a JDK has.
jlink --output $made/java --strip-debug --no-header-files --no-man-pages --include-locales en --add-modules \
  java.se,jdk.unsupported,jdk.crypto.ec,jdk.zipfs,jdk.management,jdk.jfr,jdk.net,jdk.httpserver,jdk.naming.dns,jdk.localedata
$cluster start --share
$cluster operator
$cluster image $made/java/bin/java unladen-study/vets:1 --with $made/java=/jvm --with target/shop/vets-app.jar=/app.jar
# The operator's init container runs `cp /javaagent.jar …`.
$cluster image /bin/cp unladen-study/autoinstrumentation-java:1 --with /bin/cp=/bin/cp --with target/shop/agents/opentelemetry.jar=/javaagent.jar
account=$($cluster account)
# What deploy/kubernetes does not allow: objects of the operator's kind.
KUBECONFIG=$account target/release/unladen doctor studies/otel-operator --role | KUBECONFIG=target/cluster/kubeconfig target/cluster/bin/kubectl apply -f -
echo "Now: KUBECONFIG=$account target/release/unladen run studies/otel-operator"
