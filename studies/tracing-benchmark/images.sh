#!/usr/bin/env bash
# Makes the images of compose.yaml from what is on this machine: Debian's packages (`make deps`), the server under test and what
# `make studies-deps` fetches. Each is a single layer: the files of one part and the libraries that they are linked with. What has not
# changed is left as it is.
#   images.sh [NAME…]      all of them without a name
set -euo pipefail
cd "$(dirname "$0")"
target=$(cd ../../target && pwd)
parts=$target/studies
made=$target/images
mkdir -p "$made"

image() { # NAME FILE[=PLACE]…   files and folders of this machine, at the same place in the image unless another is given
  local name=tracing-benchmark/$1 root file place sum
  root=$(mktemp -d "$made/root.XXXXXX")
  shift
  for file; do
    place=$root/${file#*=}
    mkdir -p "$(dirname "$place")"
    cp -rL "${file%%=*}" "$place"
  done
  mkdir -p "$root/tmp"
  { find "$root" -type f \( -perm -u+x -o -name '*.so*' \) -exec ldd {} + 2>/dev/null || true; } |
    { grep -oE '/[^ )]+\.so[^ )]*' || true; } | { grep -vF "$root" || true; } | sort -u | xargs -r cp -L --parents -t "$root"
  tar --sort=name --mtime=@0 --owner=1000 --group=1000 --numeric-owner -C "$root" -cf "$root.tar" .
  sum=$(sha256sum <"$root.tar" | cut -d' ' -f1)
  if [ "$(docker image inspect -f '{{.Config.Labels.sum}}' "$name" 2>/dev/null)" != "$sum" ]; then
    docker import --change "LABEL sum=$sum" --change 'USER 1000' --change 'ENV PATH=/usr/sbin:/usr/bin:/jre/bin' "$root.tar" "$name" >/dev/null
    echo "made: $name, $(du -h "$root.tar" | cut -f1)"
  fi
  rm -rf "$root" "$root.tar"
}

jre() {
  [ -d "$made/jre" ] || jlink --add-modules ALL-MODULE-PATH --no-man-pages --no-header-files --output "$made/jre"
}

# What the scripts in studies/parts and Elasticsearch's own call.
tools=(../parts/with-folder.sh=/with-folder.sh)
for tool in bash env basename cat cp dirname grep id ls mkdir mktemp readlink rm sed tr uname; do tools+=("$(command -v "$tool")=/usr/bin/$tool"); done

[ $# -gt 0 ] || set -- ping skywalking-ping mariadb redis jaeger zipkin oap elasticsearch prometheus
for name; do
  case $name in
    ping | skywalking-ping) image "$name" "$target/subjects/$name=/ping" ;;
    mariadb)
      # Empty, without passwords.
      [ -d "$made/mariadb" ] || mysql_install_db --no-defaults --user="$(id -un)" --datadir="$made/mariadb" --innodb-log-file-size=8M \
        --auth-root-authentication-method=normal --skip-test-db >/dev/null
      image mariadb /usr/sbin/mariadbd /usr/bin/mariadb-admin /usr/share/mysql "$made/mariadb=/data" ;;
    redis) image redis /usr/bin/redis-server /usr/bin/redis-cli ;;
    jaeger) image jaeger "$parts/jaeger/jaeger=/jaeger" jaeger=/settings ;;
    zipkin) jre && image zipkin "$made/jre=/jre" "$(echo "$parts"/zipkin/*.jar)=/zipkin.jar" ;;
    oap) jre && image oap "$made/jre=/jre" "${tools[@]}" ../parts/oap.sh=/oap.sh "$parts/oap/libs=/libs" oap=/settings ;;
    elasticsearch) jre && image elasticsearch "$made/jre=/jre" "${tools[@]}" ../parts/elasticsearch.sh=/elasticsearch.sh "$parts/elasticsearch=/elasticsearch" ;;
    prometheus) image prometheus /usr/bin/prometheus prometheus.yml=/prometheus.yml ;;
    *) echo "there is no image called $name" >&2; exit 2 ;;
  esac
done
