//! What all long-running programs share. Nothing here depends on the kinds of HyperShift.
//!
//! Without features, light enough for a sidecar:
//! - [`args`]: flags that programs flatten into theirs.
//! - [`telemetry`], [`admin`], [`health`], [`watchdog`]: the log; `/livez`, `/readyz` and `/metrics`; what they check.
//! - [`accept`], [`shutdown`]: accept loops, signals and graceful shutdown.
//! - [`error`]: exit codes, and an error with its causes on one line.
//! - [`files`]: permissions of new files.
//!
//! With feature `kube`:
//! - `client`, `deadline`: clients of the API server, whose requests have deadlines.
//! - `kubeconfig`: kubeconfigs of users, which are untrusted.
//! - `lease`, `fence`: leader election, and a client that rejects writes without the lease.
//! - `apply`: server-side apply and other writes with a precondition.
//! - `etcd`: a client of etcd: members, health, snapshots.
//! - `conditions`: conditions of objects.
//! - `controller`, `reconcile`, `watch`: the controller runner, errors of reconcilers, failures of watches.
//!
//! With feature `kubelets`: `kubelet_request`, certificate requests of kubelets.
//!
//! With feature `outbound`: `outbound`, requests to servers outside of the cluster.
//!
//! With feature `aws`: `aws`, `xml`, signatures and credentials of AWS, and what its services respond; `ec2`, its calls.
//!
//! With feature `rest`: `rest`, calls of the HTTP APIs of other clouds; `azure`, `google_cloud`, `ibm_cloud`, their tokens;
//! `azure_resources`, `google_resources`, calls that many resources have in common; `problem`, why a private link is not ready.
//!
//! With feature `testing`: `testing`, a mock API server, and a server of HTTP.

#![deny(missing_docs)]

pub mod accept;
pub mod admin;
#[cfg(feature = "kube")]
pub mod apply;
pub mod args;
#[cfg(feature = "aws")]
pub mod aws;
#[cfg(feature = "rest")]
pub mod azure;
#[cfg(feature = "rest")]
pub mod azure_resources;
#[cfg(feature = "kube")]
pub mod client;
#[cfg(feature = "kube")]
pub mod conditions;
#[cfg(feature = "kube")]
pub mod controller;
#[cfg(feature = "kube")]
pub mod deadline;
#[cfg(feature = "aws")]
pub mod ec2;
pub mod error;
#[cfg(feature = "kube")]
pub mod etcd;
#[cfg(feature = "kube")]
pub mod fence;
pub mod files;
#[cfg(feature = "rest")]
pub mod google_cloud;
#[cfg(feature = "rest")]
pub mod google_resources;
pub mod health;
#[cfg(feature = "rest")]
pub mod ibm_cloud;
#[cfg(feature = "kube")]
pub mod kubeconfig;
#[cfg(feature = "kubelets")]
pub mod kubelet_request;
#[cfg(feature = "kube")]
pub mod lease;
#[cfg(any(feature = "kube", feature = "outbound"))]
mod loopback;
#[cfg(feature = "outbound")]
pub mod outbound;
#[cfg(feature = "rest")]
pub mod problem;
#[cfg(feature = "kube")]
pub mod reconcile;
#[cfg(feature = "rest")]
pub mod rest;
pub mod shutdown;
pub mod telemetry;
#[cfg(all(feature = "kube", any(test, feature = "testing")))]
pub mod testing;
#[cfg(feature = "kube")]
pub mod watch;
pub mod watchdog;
#[cfg(feature = "aws")]
pub mod xml;
