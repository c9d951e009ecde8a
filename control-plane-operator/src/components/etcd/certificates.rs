//! The certificates of etcd's members and of its clients.

use control_plane_component::Context;
use control_plane_component::certificate::Usage::{Both, Client};
use control_plane_component::certificate::{Form, Leaf, leaf};
use control_plane_component::names::{pods, service_and_localhost};

/// All of them, where etcd is ours.
pub(super) fn all(context: &Context<'_>) -> Vec<Leaf> {
    if !context.is_etcd_managed() {
        return Vec::new();
    }
    let members = || pods(context, "etcd-discovery");
    let addresses = ["127.0.0.1", "::1"].map(str::to_owned);
    vec![
        leaf(
            "etcd-client-tls",
            "etcd-signer",
            "etcd-client",
            "kubernetes",
            Client,
        )
        .form(Form::Named("etcd-client")),
        leaf(
            "etcd-server-tls",
            "etcd-signer",
            "etcd-server",
            "kubernetes",
            Both,
        )
        .names(service_and_localhost(context, "etcd-client"))
        .names(members())
        .form(Form::Named("server")),
        leaf(
            "etcd-peer-tls",
            "etcd-signer",
            "etcd-discovery",
            "kubernetes",
            Both,
        )
        .names(members())
        .names(addresses)
        .form(Form::Named("peer")),
        leaf(
            "etcd-metrics-client-tls",
            "etcd-metrics-signer",
            "etcd-metrics-client",
            "kubernetes",
            Client,
        )
        .form(Form::Named("etcd-client")),
    ]
}
