# What makes the images of a study's Compose files from what is on this machine; to be read by a script with `project` set. An image has one
# layer: the files of one part and the libraries that they are linked with. What has not changed is left as it is.
made=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../target" && pwd)/images
mkdir -p "$made"

image() { # NAME FILE[=PLACE]…   files and folders of this machine, at the same place in the image unless another is given
  local name=$project/$1 root file place sum
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

# Java without its tools, once.
jre() {
  [ -d "$made/jre" ] || jlink --add-modules ALL-MODULE-PATH --no-man-pages --no-header-files --output "$made/jre"
}
