//! Tests of level control-plane: etcd, API server, managers and our programs as processes. They need no root,
//! except to install the Debian packages haproxy and tinyproxy where these are missing.
//!
//! One program, because each program of its own links everything again. `cargo xtask test` runs each test in a process of
//! its own; `cargo test -p e2e --test control_plane operator::` runs those of a module.

#[path = "aggregated_apis/main.rs"]
mod aggregated_apis;
#[path = "api_types/main.rs"]
mod api_types;
#[path = "break_glass/main.rs"]
mod break_glass;
#[path = "cluster_api/main.rs"]
mod cluster_api;
mod control_plane_at_rest;
#[path = "conversion/main.rs"]
mod conversion;
mod crds;
#[path = "differential/main.rs"]
mod differential;
mod doctor;
#[path = "fidelity/main.rs"]
mod fidelity;
#[path = "from_nothing/main.rs"]
mod from_nothing;
#[path = "guest_objects/main.rs"]
mod guest_objects;
#[path = "hosted_clusters_api/main.rs"]
mod hosted_clusters_api;
#[path = "hosted_clusters_faults/main.rs"]
mod hosted_clusters_faults;
#[path = "hosted_clusters_preview/main.rs"]
mod hosted_clusters_preview;
#[path = "install/main.rs"]
mod install;
#[path = "lost_responses/main.rs"]
mod lost_responses;
#[path = "migration/main.rs"]
mod migration;
#[path = "migration_fleet/main.rs"]
mod migration_fleet;
#[path = "migration_managers/main.rs"]
mod migration_managers;
#[path = "operator/main.rs"]
mod operator;
mod payload;
#[path = "programs/main.rs"]
mod programs;
#[path = "providers/main.rs"]
mod providers;
