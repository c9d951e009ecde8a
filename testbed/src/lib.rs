//! The testbed: a real management cluster on one Linux machine, and what tests need around it.
//!
//! Nothing here imitates what can be had for real: etcd, the API server, the controller manager and the Cluster API
//! managers are the released programs, built from pinned Go modules.
//!
//! ```text
//! Testbed ── ControlPlane ── etcd, kube-apiserver, kube-controller-manager
//!    │
//!    └────── ClusterApi ──── stock managers with one set of types of the group table:
//!                            private:  manager ── its own capi-proxy ── API server
//!                            standard: manager ── API server
//! ```
//!
//! Ports are allocated, every testbed has a directory of its own, and several run side by side; see [`testbed`].

pub mod add_ons;
pub mod agents;
pub mod audit;
pub mod binaries;
pub mod calls;
pub mod capi_storage;
pub mod cargo;
pub mod certs;
pub mod client;
pub mod cloud;
pub mod cloud_proxy;
pub mod cluster;
pub mod cluster_api;
pub mod collision;
pub mod conditions;
pub mod control_plane;
pub mod crds;
pub mod dex;
pub mod embedded;
pub mod etcd;
pub mod failures;
pub mod fixtures;
pub mod guest;
pub mod hosted;
pub mod hosts;
pub mod images;
pub mod kubeconfig;
pub mod life;
pub mod lock;
pub mod managers;
pub mod migration;
pub mod modules;
pub mod namespaces;
pub mod node;
pub mod openshift;
pub mod operator;
pub mod payload;
pub mod platform;
pub mod ports;
pub mod process;
pub mod progress;
pub mod providers;
pub mod proxy;
pub mod raw;
pub mod registry;
pub mod relay;
pub mod rights;
pub mod service;
pub mod service_account;
pub mod signals;
pub mod simulation;
pub mod site;
pub mod switchable_proxy;
pub mod terminal;
pub mod testbed;
pub mod tls_proxy;
pub mod view;
pub mod virtual_machines;
pub mod wait;
pub mod work_dir;
