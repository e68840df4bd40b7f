#!/bin/sh
# Turns a fresh Debian, whose root is the first argument, into the content of the base image. mmdebstrap runs
# it as a hook. $OFFSITE_PACKAGES is a node_modules with Node and npm.
set -eu
root=$1

# No services at install time, and no caches.
printf '#!/bin/sh\nexit 101\n' > "$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
cat > "$root/etc/apt/apt.conf.d/docker-clean" << 'END'
DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb /var/cache/apt/*.bin || true"; };
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
END

mkdir -p "$root/usr/local/lib/node_modules"
cp "$OFFSITE_PACKAGES"/node-linux-*/bin/node "$root/usr/local/bin/node"
cp -R "$OFFSITE_PACKAGES/npm" "$root/usr/local/lib/node_modules/npm"
for name in npm npx; do
  ln -s "../lib/node_modules/npm/bin/$name-cli.js" "$root/usr/local/bin/$name"
done
chmod 755 "$root/usr/local/bin/"*
chroot "$root" useradd --uid 1000 --create-home --shell /bin/bash node

# pip runs in the image, with the host's index, proxy and certificates. If PyPI does not answer, the build
# continues.
set --
for name in PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_TRUSTED_HOST http_proxy https_proxy no_proxy \
  HTTP_PROXY HTTPS_PROXY NO_PROXY; do
  eval "value=\${$name:-}"
  [ -z "$value" ] || set -- "$@" "$name=$value"
done
if [ -n "${OFFSITE_PEM:-}" ]; then
  cp "$OFFSITE_PEM" "$root/tmp/authorities.pem"
  set -- "$@" PIP_CERT=/tmp/authorities.pem
fi
echo "$OFFSITE_UV" > "$root/tmp/uv.txt"
# shellcheck disable=SC2086 # words
chroot "$root" /usr/bin/env -i "$@" HOME=/tmp PATH=/usr/local/bin:/usr/bin:/bin pip $OFFSITE_PIP -r /tmp/uv.txt ||
  echo "$OFFSITE_WITHOUT_UV"

for program in node npm git python3 pip pytest curl; do
  chroot "$root" /usr/bin/env HOME=/tmp PATH=/usr/local/bin:/usr/bin:/bin "$program" --version
done

# The folders stay: apt and dpkg expect them.
find "$root/var/log" "$root/var/lib/apt/lists" -type f -delete
find "$root/var/cache/apt" "$root/var/cache/debconf" "$root/var/cache/ldconfig" -type f -delete
find "$root/usr/share/doc" ! -name copyright ! -type d -delete
find "$root/tmp" "$root/usr/share/man" -mindepth 1 -delete
# The engine gives each container its own machine id.
: > "$root/etc/machine-id"
