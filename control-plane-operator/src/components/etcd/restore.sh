set -eu
# A member with data keeps them: the snapshot is for a new cluster only.
if [ -e /var/lib/data/member/snap/db ]; then
  exit 0
fi
rm -rf /var/lib/restore
mkdir -p /var/lib/restore
curl --fail --silent --show-error --location --output /var/lib/restore/snapshot "$RESTORE_URL_ETCD"
tool=etcdctl
if command -v etcdutl >/dev/null; then
  tool=etcdutl
fi
"$tool" snapshot restore /var/lib/restore/snapshot --data-dir=/var/lib/restore/data
# Renamed as a whole: a restore that is cut leaves no half of the data.
rm -rf /var/lib/data
mv /var/lib/restore/data /var/lib/data
rm -rf /var/lib/restore
