//! Programs that control planes, their nodes and their backups run, with real parts: etcd with TLS, a fake S3, an API server,
//! an HTTP proxy, haproxy.

mod backup;
mod default_proxy;
mod etcd;
mod metrics;
mod pull_secret;
mod recovery;
mod running;
mod shared_ingress;
