#!/bin/bash
# Does the package install, upgrade, go and leave nothing? In a small Debian made for it, of this machine's release, by debootstrap.
#   usage: scripts/deb-test.sh BINARY
# Needs root (chroot), and what scripts/debian-tree.sh needs. No systemd runs in the tree, so what
# the maintainer scripts say to it is not tested; the units are looked at by this machine's systemd-analyze.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/env.sh
binary=${1:?usage: scripts/deb-test.sh BINARY}
[ "$(id -u)" = 0 ] || { echo "deb-test: chroot needs root" >&2; exit 1; }
base=$(scripts/debian-tree.sh)
release=${base##*-}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/tree
cp -a "$base" "$tree"
version=$(awk -F'"' '/^version/ { print $2; exit }' Cargo.toml)
export DEB_COMPRESSION=none
one=$(DEB_VERSION=$version-1 scripts/deb.sh "$binary" "$work")
two=$(DEB_VERSION=$version-2 scripts/deb.sh "$binary" "$work" 2>/dev/null)
# Without a network, in whatever it does.
inside() { unshare --net chroot "$tree" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C "$@"; }
# As systemd starts it.
as_daemon() { inside runuser -u nearcrawl -- env STATE_DIRECTORY=/var/lib/nearcrawl "$@"; }
install_it() { cp "$1" "$tree/package.deb"; inside dpkg --install /package.deb </dev/null >>"$work/log" 2>&1; rm "$tree/package.deb"; }
# Everything but what dpkg and adduser keep for themselves.
everything() {
    (cd "$tree" && find . \( -path ./var/lib/dpkg -o -path ./var/log -o -path ./var/cache -o -path ./run \) -prune -o -print | LC_ALL=C sort |
        grep -v -E '^\./etc/(passwd|group|shadow|gshadow|subuid|subgid)-?$|^\./etc/\.pwd\.lock$')
}
passed=0
ok() { passed=$((passed + 1)); echo "  $1"; }
bad() { echo "deb-test: $1" >&2; [ ! -e "$work/log" ] || tail -n 20 "$work/log" >&2; exit 1; }
holds() { local what=$1; shift; if "$@" >"$work/said" 2>&1; then ok "$what"; else cat "$work/said" >&2; bad "$what: does not hold"; fi; }
gone() { [ ! -e "$tree$1" ] && [ ! -L "$tree$1" ]; }
has_user() { grep -q '^nearcrawl:' "$tree/etc/passwd"; }
ends_with() { # ends_with STATUS COMMAND…: its exit status
    local wanted=$1 status=0
    shift
    "$@" || status=$?
    [ "$status" = "$wanted" ] || { echo "exit status $status, not $wanted"; return 1; }
}

everything >"$work/before"
echo "install $(basename "$one")"
install_it "$one" || bad "dpkg --install failed"
while read -r file; do holds "there is $file" test -s "$tree$file"; done <<END
/etc/nearcrawl/nearcrawl.toml
/etc/nearcrawl/nearcrawl.example.toml
/usr/bin/nearcrawl
/usr/lib/systemd/system/nearcrawl.service
/usr/lib/systemd/system/nearcrawl-hierarchy.service
/usr/lib/systemd/system/nearcrawl-hierarchy.timer
/usr/lib/sysusers.d/nearcrawl.conf
/usr/share/man/man1/nearcrawl.1.gz
/usr/share/man/man1/nearcrawl-hierarchy-renew.1.gz
/usr/share/man/man5/nearcrawl.toml.5.gz
/usr/share/bash-completion/completions/nearcrawl
/usr/share/zsh/site-functions/_nearcrawl
/usr/share/fish/vendor_completions.d/nearcrawl.fish
/usr/share/doc/nearcrawl/copyright
/usr/share/doc/nearcrawl/ATTRIBUTION.md
/usr/share/doc/nearcrawl/changelog.gz
/usr/share/doc/nearcrawl/changelog.Debian.gz
END
holds "the files are those of the package" inside dpkg --verify nearcrawl
holds "there is the user nearcrawl" has_user
holds "nearcrawl --version" inside nearcrawl --version
holds "nothing is enabled" test -z "$(find "$tree/etc/systemd" -name '*nearcrawl*' 2>/dev/null)"
holds "there is no state" gone /var/lib/nearcrawl
holds "without a contact it does not start" ends_with 78 inside nearcrawl check
holds "without a contact nothing is renewed" ends_with 78 inside nearcrawl hierarchy renew
for page in man1/nearcrawl.1.gz man1/nearcrawl-hierarchy-renew.1.gz man5/nearcrawl.toml.5.gz; do
    if command -v man >/dev/null; then
        holds "$page can be rendered" test "$(MANWIDTH=100 man -l -E UTF-8 "$tree/usr/share/man/$page" 2>/dev/null | wc -l)" -gt 10
    fi
done
if command -v systemd-analyze >/dev/null; then
    units=$work/units
    mkdir -p "$units/usr/lib/systemd/system" "$units/usr/bin"
    cp "$tree"/usr/lib/systemd/system/nearcrawl* "$units/usr/lib/systemd/system"
    for stand_in in nearcrawl systemctl; do printf '#!/bin/sh\n' >"$units/usr/bin/$stand_in"; chmod +x "$units/usr/bin/$stand_in"; done
    for neighbour in sysinit.target basic.target multi-user.target shutdown.target timers.target time-set.target time-sync.target network-online.target nss-lookup.target; do
        printf '[Unit]\nDescription=neighbour\nDefaultDependencies=no\n' >"$units/usr/lib/systemd/system/$neighbour"
    done
    printf '[Unit]\nDescription=neighbour\nDefaultDependencies=no\n[Mount]\nWhat=/dev/null\nWhere=/\n' >"$units/usr/lib/systemd/system/-.mount"
    for unit in nearcrawl.service nearcrawl-hierarchy.service nearcrawl-hierarchy.timer; do
        holds "systemd has nothing to say about $unit" test -z "$(systemd-analyze verify --man=no --root="$units" "$unit" 2>&1)"
    done
fi

echo "its operator writes a contact, and it has a state"
printf 'contact = "ann@museum.or.ke"\n' >>"$work/mine"
cat "$tree/etc/nearcrawl/nearcrawl.toml" >>"$work/mine"
cp "$work/mine" "$tree/etc/nearcrawl/nearcrawl.toml"
mkdir -m 700 "$tree/var/lib/nearcrawl"
chroot "$tree" chown nearcrawl: /var/lib/nearcrawl
as_daemon nearcrawl check >"$work/said" 2>&1 || { cat "$work/said" >&2; bad "the configuration has mistakes"; }
ok "nearcrawl check has nothing against it"
holds "without a network nothing is renewed" ends_with 69 as_daemon timeout 600 nearcrawl hierarchy renew
holds "and nothing is in place" gone /var/lib/nearcrawl/hierarchy.snapshot
echo key >"$tree/var/lib/nearcrawl/key"

echo "upgrade to $(basename "$two")"
install_it "$two" || bad "the upgrade failed, or asked something"
holds "it is the second version" test "$(inside dpkg-query -W -f '${Version}' nearcrawl)" = "$version-2"
holds "the configuration is the operator's" cmp "$work/mine" "$tree/etc/nearcrawl/nearcrawl.toml"
holds "the state is there" test -s "$tree/var/lib/nearcrawl/key"

echo "remove"
inside dpkg --remove nearcrawl >>"$work/log" 2>&1 || bad "dpkg --remove failed"
holds "the program is gone" gone /usr/bin/nearcrawl
holds "the units are gone" gone /usr/lib/systemd/system/nearcrawl.service
holds "the configuration is there" cmp "$work/mine" "$tree/etc/nearcrawl/nearcrawl.toml"
holds "the state is there" test -s "$tree/var/lib/nearcrawl/key"

echo "purge"
inside dpkg --purge nearcrawl >>"$work/log" 2>&1 || bad "dpkg --purge failed"
holds "the configuration is gone" gone /etc/nearcrawl
holds "the state is gone" gone /var/lib/nearcrawl
holds "the user is gone" eval '! has_user'
everything >"$work/after"
holds "nothing else is left" diff "$work/before" "$work/after"
echo "deb-test: $passed checks hold, in a Debian $release without systemd"
