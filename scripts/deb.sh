#!/bin/bash
# Makes a Debian package of a program that is built already.
#   usage: scripts/deb.sh BINARY DIRECTORY      writes DIRECTORY/nearcrawl_VERSION_ARCH.deb and prints its path
#   DEB_VERSION=0.1.0-2   another version than that of Cargo.toml with -1
#   DEB_MAX_BINARY=BYTES  the most that the stripped program may take, 40 MB; 0 = any size (programs of cargo's profile dev)
#   DEB_COMPRESSION=none  quicker than xz, for tests
# What is in it is what `make install` lays down, packed as Debian's policy has it. The same sources and program give the same package.
set -euo pipefail
cd "$(dirname "$0")/.."
binary=${1:?usage: scripts/deb.sh BINARY DIRECTORY}
out=${2:?usage: scripts/deb.sh BINARY DIRECTORY}
[ -x "$binary" ] || { echo "deb: there is no $binary: run make build first" >&2; exit 1; }
version=${DEB_VERSION:-$(awk -F'"' '/^version/ { print $2; exit }' Cargo.toml)-1}
arch=$(dpkg --print-architecture)
max=${DEB_MAX_BINARY:-40000000}
maintainer=${DEB_MAINTAINER:-The nearcrawl contributors <nearcrawl@packages.invalid>}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}
export SOURCE_DATE_EPOCH

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
doc=$root/usr/share/doc/nearcrawl
strip --strip-unneeded --remove-section=.comment -o "$work/nearcrawl" "$binary"
size=$(stat -c %s "$work/nearcrawl")
if [ "$max" != 0 ] && [ "$size" -gt "$max" ]; then
    echo "deb: the stripped program has $size bytes, more than $max: build it with make build, or set DEB_MAX_BINARY" >&2
    exit 1
fi
# The make that may have started this has nothing to say to that one.
env -u MAKEFLAGS -u MAKELEVEL make --no-print-directory --silent install DESTDIR="$root" PREFIX=/usr BINARY="$work/nearcrawl" >"$work/log" || { cat "$work/log" >&2; exit 1; }

# A file that is never another one, so that dpkg does not ask about what the operator wrote into it.
install -m 644 packaging/nearcrawl.toml "$root/etc/nearcrawl/nearcrawl.toml"
install -D -m 644 packaging/nearcrawl.sysusers "$root/usr/lib/sysusers.d/nearcrawl.conf"
install -d "$doc"
install -m 644 data/ATTRIBUTION.md "$doc/ATTRIBUTION.md"
install -m 644 docs/OPERATING.md "$doc/OPERATING.md"
scripts/deb-copyright.py >"$doc/copyright"
chmod 644 "$doc/copyright"
gzip -9n <CHANGELOG.md >"$doc/changelog.gz"
gzip -9n >"$doc/changelog.Debian.gz" <<END
nearcrawl ($version) unstable; urgency=medium

  * Packaged; what changed is in changelog.gz.

 -- $maintainer  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
END
find "$root/usr/share/man" -type f -exec gzip -9n {} +

# Which libraries the program needs, and in which versions.
mkdir -p "$work/debian" "$root/DEBIAN"
printf 'Source: nearcrawl\n\nPackage: nearcrawl\nArchitecture: any\n' >"$work/debian/control"
if command -v dpkg-shlibdeps >/dev/null; then
    depends=$(cd "$work" && dpkg-shlibdeps -O --warnings=0 -e"$root/usr/bin/nearcrawl" 2>/dev/null | sed -n 's/^shlibs:Depends=//p')
fi
if [ -z "${depends:-}" ]; then
    depends=$(ldd "$work/nearcrawl" | awk '$3 ~ /^\// { print $3 }' | xargs -r -n 1 readlink -f | xargs -r dpkg -S 2>/dev/null | sed 's/:.*//' | sort -u | paste -sd, - | sed 's/,/, /g')
fi
# Packed relocations are no symbol, and dpkg-shlibdeps does not see who needs them: the C library reads them from 2.36 on.
relocations=$(objdump -p "$work/nearcrawl")
[[ "$relocations" != *GLIBC_ABI_DT_RELR* ]] || depends="${depends:+$depends, }libc6 (>= 2.36)"
installed=$(du -k --apparent-size -s "$root" | cut -f 1)
sed -e "s|@VERSION@|$version|" -e "s|@ARCH@|$arch|" -e "s|@MAINTAINER@|$maintainer|" -e "s|@SIZE@|$installed|" -e "s|@DEPENDS@|$depends|" \
    packaging/control.in >"$root/DEBIAN/control"
install -m 644 packaging/conffiles "$root/DEBIAN/conffiles"
for script in postinst prerm postrm; do install -m 755 "packaging/$script" "$root/DEBIAN/$script"; done
(cd "$root" && find . -type f ! -path './DEBIAN/*' -printf '%P\0' | LC_ALL=C sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
chmod 644 "$root/DEBIAN/md5sums" "$root/DEBIAN/control"
# Directories as everybody may read them, whatever the umask of who builds it.
find "$root" -type d -exec chmod 755 {} +

mkdir -p "$out"
package=$out/nearcrawl_${version}_$arch.deb
dpkg-deb --root-owner-group "-Z${DEB_COMPRESSION:-xz}" --build "$root" "$package" >/dev/null
echo "$package"
echo "deb: the stripped program has $size bytes, the package $(stat -c %s "$package")" >&2
