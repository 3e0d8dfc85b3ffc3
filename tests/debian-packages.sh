#!/bin/sh
# Installs the Debian packages that the tests of real programs use. Nothing to do: it ends at once, silently.
# Elsewhere, or without root, it says so, and those tests are skipped.
set -eu

tools="bowtie2 bowtie2-examples samtools bcftools environment-modules"
slurm="slurmctld slurmd slurm-client slurmdbd slurm-wlm-mysql-plugin mariadb-server munge"
sge="gridengine-master gridengine-exec gridengine-client"

skip() {
    echo "tests of real programs and schedulers may be skipped: $1" >&2
    exit 0
}

missing() {
    for package in $tools $slurm $sge; do
        dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || printf ' %s' "$package"
    done
}

command -v dpkg-query >/dev/null 2>&1 && command -v apt-get >/dev/null 2>&1 || skip "this is no Debian"
[ -n "$(missing)" ] || exit 0
[ "$(id -u)" = 0 ] || skip "only root can install$(missing)"

# Two suites may begin at once; the second finds nothing left to do.
exec 9>/var/lock/treadle-packages.lock
flock 9
wanted=$(missing)
[ -n "$wanted" ] || exit 0
echo "installing Debian packages:$wanted"

# The tests start daemons of their own: the packages must not start any, nor ask anything.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
    trap 'rm -f $policy' EXIT
    trap 'exit 1' HUP INT TERM
    printf '#!/bin/sh\nexit 101\n' >$policy
    chmod 755 $policy
fi
case $wanted in *gridengine*)
    for part in common master exec client; do
        echo "gridengine-$part shared/gridengineconfig boolean false"
        echo "gridengine-$part shared/gridenginecell string default"
        echo "gridengine-$part shared/gridenginemaster string localhost"
    done | debconf-set-selections
    ;;
esac
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086
apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300 $wanted >/dev/null
