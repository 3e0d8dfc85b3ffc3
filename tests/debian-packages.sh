#!/bin/sh
# Installs the Debian packages that the tests of real programs use; elsewhere those tests are skipped.
set -eu
packages="bowtie2 bowtie2-examples samtools bcftools"
command -v dpkg-query >/dev/null 2>&1 && [ "$(id -u)" = 0 ] || exit 0
missing=""
for package in $packages; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
echo "installing Debian packages:$missing"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086
apt-get install -y -qq --no-install-recommends $missing >/dev/null
