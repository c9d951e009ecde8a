//! Tests of level node: our programs as pods on real kubelets. They need Linux and root; without it they report so and pass.
//!
//! `cargo test -p e2e --test nodes hosted_cluster::` runs those of a module.

#[path = "guest/main.rs"]
mod guest;
#[path = "highly_available/main.rs"]
mod highly_available;
#[path = "hosted_cluster/main.rs"]
mod hosted_cluster;
#[path = "karpenter/main.rs"]
mod karpenter;
#[path = "login/main.rs"]
mod login;
#[path = "migration_live/main.rs"]
mod migration_live;
#[path = "namespace_collision/main.rs"]
mod namespace_collision;
#[path = "node/main.rs"]
mod node;
#[path = "olm/main.rs"]
mod olm;
#[path = "platforms/main.rs"]
mod platforms;
mod readme;
#[path = "rollout/main.rs"]
mod rollout;
#[path = "side_by_side/main.rs"]
mod side_by_side;
#[path = "tunnel/main.rs"]
mod tunnel;
