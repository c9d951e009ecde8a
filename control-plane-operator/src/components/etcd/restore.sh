set -eu
# A member with data keeps them: the snapshot is for a new cluster only.
if [ -e /var/lib/data/member/snap/db ]; then
  exit 0
fi
# The others are there already: this member joins them, and has its data from them.
if [ "$(cat /etc/etcd/clusterstate/state)" = existing ]; then
  exit 0
fi
rm -rf /var/lib/restore
mkdir -p /var/lib/restore
curl --fail --silent --show-error --location --output /var/lib/restore/snapshot "$RESTORE_URL_ETCD"
tool=etcdctl
if command -v etcdutl >/dev/null; then
  tool=etcdutl
fi
# Every member is told of all of them, and restores the same data: so they are one cluster.
set -- --name="$HOSTNAME" --initial-cluster="$ETCD_INITIAL_CLUSTER" \
  --initial-advertise-peer-urls="https://${HOSTNAME}.etcd-discovery.${NAMESPACE}.svc:2380"
# Whoever has watched the old cluster must not take the new one for it: revisions go on far above.
case "$("$tool" snapshot restore --help 2>&1)" in
  *--bump-revision*) set -- "$@" --bump-revision=1000000000 --mark-compacted ;;
esac
"$tool" snapshot restore /var/lib/restore/snapshot --data-dir=/var/lib/restore/data "$@"
# Renamed as a whole: a restore that is cut leaves no half of the data.
rm -rf /var/lib/data
mv /var/lib/restore/data /var/lib/data
rm -rf /var/lib/restore
